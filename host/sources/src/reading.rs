//! Reading what a connection has, without a buffer of its own.
//!
//! Each thread has one buffer that a read fills and that is copied from at its exact size: an
//! idle connection costs no memory, and a small message does not hold a large buffer alive.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::ready;

use bytes::Bytes;
use portway_net::listen::Reader;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of one read, which is also what a codec is fed at most.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES].into_boxed_slice());
}

/// The next bytes; none at the end. Nothing is lost if it is dropped before it is done.
pub(crate) async fn read_chunk(reader: &mut Reader) -> io::Result<Bytes> {
    poll_fn(|cx| {
        BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut *reader).poll_read(cx, &mut buffer))?;
            Ok(Bytes::copy_from_slice(buffer.filled())).into()
        })
    })
    .await
}
