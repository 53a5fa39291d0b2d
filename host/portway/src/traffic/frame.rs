//! MLLP frames as a peer sends and reads them: strict, and within a limit.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const START: u8 = 0x0B;
const END: [u8; 2] = [0x1C, 0x0D];

/// Puts a message into a frame.
pub fn write_frame(into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    into.push(START);
    write(into);
    into.extend_from_slice(&END);
}

/// Reads frames from a connection.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    buffer: BytesMut,
    bytes_max: usize,
    /// Bytes of the buffer known to hold no end.
    searched: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(reader: R, bytes_max: usize) -> Self {
        FrameReader { reader, buffer: BytesMut::new(), bytes_max, searched: 0 }
    }

    /// The next message without its frame; none at a clean end. Safe to cancel: what was read
    /// is kept.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            self.buffer.reserve(16 << 10);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                let clean = self.buffer.is_empty();
                return if clean { Ok(None) } else { Err(broken("the connection ended inside a frame")) };
            }
        }
    }

    fn take_frame(&mut self) -> io::Result<Option<Bytes>> {
        match self.buffer.first() {
            None => return Ok(None),
            Some(&START) => {}
            Some(_) => return Err(broken("bytes that are no MLLP frame")),
        }
        let from = self.searched.max(1);
        let rest = self.buffer.get(from..).unwrap_or_default();
        let Some(at) = rest.windows(2).position(|pair| pair == END) else {
            if self.buffer.len() > self.bytes_max {
                return Err(broken("a frame without an end"));
            }
            // The last byte may be the first of an end.
            self.searched = self.buffer.len().saturating_sub(1);
            return Ok(None);
        };
        let mut frame = self.buffer.split_to(from + at + END.len()).freeze();
        self.searched = 0;
        frame.truncate(from + at);
        frame.advance(1);
        Ok(Some(frame))
    }
}

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_whatever_the_pieces() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, |into| into.extend_from_slice(b"one"));
        write_frame(&mut bytes, |_| {});
        write_frame(&mut bytes, |into| into.extend_from_slice(b"\x1ctwo\r"));
        for piece in 1..bytes.len() {
            let mut reader = FrameReader::new(Pieces(bytes.clone().into(), piece), 100);
            let mut frames = Vec::new();
            while let Some(frame) = reader.next().await.unwrap() {
                frames.push(frame);
            }
            assert_eq!(frames, [&b"one"[..], b"", b"\x1ctwo\r"], "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn a_frame_that_is_none_or_does_not_end_is_an_error() {
        for bytes in [&b"HTTP/1.1 200"[..], b"\x0bhalf", &[b"\x0b", &[b'x'; 200][..]].concat()] {
            assert!(FrameReader::new(bytes, 100).next().await.is_err());
        }
    }

    /// Hands out so many bytes at a time.
    struct Pieces(Bytes, usize);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let piece = self.1.min(self.0.len());
            into.put_slice(&self.0.split_to(piece));
            std::task::Poll::Ready(Ok(()))
        }
    }
}
