//! `connect`: TCP and TLS connections by slot. The host dials, keeps and closes.

use std::time::Duration;

use portway_bindings::portway::host::connect::{Connection, Error};
use portway_net::tcp::TcpError;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use super::{LOOK, SYSTEM, define, define_waiting};
use crate::guest::Guest;

/// Bytes of one read.
const READ_BYTES_MAX: u32 = 1 << 20;

type Handle = Resource<Connection>;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut connect = linker.instance("portway:host/connect@0.1.0")?;
    connect.resource(
        "connection",
        ResourceType::host::<Connection>(),
        |mut store: StoreContextMut<'_, Guest>, rep| {
            store.data_mut().things.take_connection(rep);
            Ok(())
        },
    )?;
    define_waiting(
        &mut connect,
        "open",
        SYSTEM,
        |_| 0,
        |guest, (name,): (String,)| Box::pin(async move { Ok((open(guest, &name).await,)) }),
    )?;
    define(
        &mut connect,
        "[method]connection.is-fresh",
        LOOK,
        |_| 0,
        |guest, (handle,): (Handle,)| {
            Ok((guest.things.connection(handle.rep()).is_some_and(|connection| connection.is_fresh()),))
        },
    )?;
    define_waiting(
        &mut connect,
        "[method]connection.write",
        SYSTEM,
        |(_, bytes, _): &(Handle, Vec<u8>, u32)| bytes.len(),
        |guest, (handle, bytes, timeout_ms)| {
            Box::pin(async move { Ok((write(guest, &handle, &bytes, timeout_ms).await,)) })
        },
    )?;
    define_waiting(
        &mut connect,
        "[method]connection.read",
        SYSTEM,
        |_| 0,
        |guest, (handle, max, timeout_ms): (Handle, u32, u32)| {
            Box::pin(async move {
                let read = read(guest, &handle, max, timeout_ms).await;
                if let Ok(bytes) = &read {
                    guest.meter.owe(SYSTEM.per_byte * bytes.len() as u64);
                }
                Ok((read,))
            })
        },
    )?;
    define(
        &mut connect,
        "[static]connection.keep",
        LOOK,
        |_| 0,
        |guest, (handle,): (Handle,)| {
            if let Some(connection) = guest.things.take_connection(handle.rep()) {
                connection.keep();
            }
            Ok(())
        },
    )
}

async fn open(guest: &mut Guest, name: &str) -> Result<Handle, Error> {
    let pool = guest.reach.tcp.get(name).cloned().ok_or(Error::Denied)?;
    let within = guest.wait_of(Duration::MAX);
    let opened = guest.serve(tokio::time::timeout(within, pool.open())).await;
    match opened {
        Ok(Ok(connection)) => Ok(Handle::new_own(guest.things.add_connection(connection))),
        Ok(Err(failed)) => Err(error(failed)),
        Err(_) => Err(Error::Timeout),
    }
}

async fn write(guest: &mut Guest, handle: &Handle, bytes: &[u8], timeout_ms: u32) -> Result<(), Error> {
    let within = guest.wait_of(Duration::from_millis(u64::from(timeout_ms)));
    let connection = guest.things.connection(handle.rep()).ok_or(Error::Closed)?;
    guest.call.reached = true;
    guest.call.in_service = true;
    let written = connection.write(bytes, within).await;
    guest.call.in_service = false;
    written.map_err(error)
}

async fn read(guest: &mut Guest, handle: &Handle, max: u32, timeout_ms: u32) -> Result<Vec<u8>, Error> {
    let within = guest.wait_of(Duration::from_millis(u64::from(timeout_ms)));
    let connection = guest.things.connection(handle.rep()).ok_or(Error::Closed)?;
    guest.call.in_service = true;
    let read = connection.read(max.min(READ_BYTES_MAX) as usize, within).await;
    guest.call.in_service = false;
    read.map(|bytes| bytes.to_vec()).map_err(error)
}

fn error(error: TcpError) -> Error {
    match error {
        TcpError::Denied(_) => Error::Denied,
        TcpError::Busy => Error::Busy,
        TcpError::Unreachable(text) => Error::Unreachable(text),
        TcpError::Timeout => Error::Timeout,
        TcpError::Closed => Error::Closed,
        TcpError::Other(text) => Error::Other(text),
    }
}
