//! `connect`: TCP and TLS connections by slot. The host dials, keeps and closes, and writes
//! credentials itself.

use std::time::Duration;

use portway_bindings::portway::host::connect::{Connection, Credential, Error, Protection};
use portway_net::tcp::{self, TcpError};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};

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
    )?;
    link_protection(&mut connect)
}

/// TLS and credentials.
fn link_protection(connect: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    define(
        connect,
        "[method]connection.protection",
        LOOK,
        |_| 0,
        |guest, (handle,): (Handle,)| {
            let connection = guest.things.connection(handle.rep());
            Ok((connection.map_or(Protection::None, |connection| protection(connection.protection())),))
        },
    )?;
    define_waiting(
        connect,
        "[method]connection.start-tls",
        SYSTEM,
        |_| 0,
        |guest, (handle, timeout_ms): (Handle, u32)| {
            Box::pin(async move { Ok((start_tls(guest, &handle, timeout_ms).await,)) })
        },
    )?;
    define(
        connect,
        "[method]connection.has-credentials",
        LOOK,
        |_| 0,
        |guest, (handle,): (Handle,)| {
            Ok(
                (guest
                    .things
                    .connection(handle.rep())
                    .is_some_and(|connection| connection.has_credentials()),),
            )
        },
    )?;
    define_waiting(
        connect,
        "[method]connection.write-credential",
        SYSTEM,
        |_| 0,
        |guest, (handle, credential, timeout_ms): (Handle, Credential, u32)| {
            Box::pin(async move { Ok((write_credential(guest, &handle, credential, timeout_ms).await,)) })
        },
    )
}

async fn start_tls(guest: &mut Guest, handle: &Handle, timeout_ms: u32) -> Result<(), Error> {
    let within = guest.wait_of(Duration::from_millis(u64::from(timeout_ms)));
    let connection = guest.things.connection(handle.rep()).ok_or(Error::Closed)?;
    guest.call.in_service = true;
    let started = connection.start_tls(within).await;
    guest.call.in_service = false;
    started.map_err(error)
}

async fn write_credential(
    guest: &mut Guest,
    handle: &Handle,
    credential: Credential,
    timeout_ms: u32,
) -> Result<(), Error> {
    let within = guest.wait_of(Duration::from_millis(u64::from(timeout_ms)));
    let connection = guest.things.connection(handle.rep()).ok_or(Error::Closed)?;
    let credential = match credential {
        Credential::Plain => tcp::Credential::Plain,
        Credential::User => tcp::Credential::User,
        Credential::Password => tcp::Credential::Password,
    };
    guest.call.reached = true;
    guest.call.in_service = true;
    let written = connection.write_credential(credential, within).await;
    guest.call.in_service = false;
    written.map_err(error)
}

fn protection(protection: tcp::Protection) -> Protection {
    match protection {
        tcp::Protection::None => Protection::None,
        tcp::Protection::Wanted => Protection::Wanted,
        tcp::Protection::Required => Protection::Required,
        tcp::Protection::Tls => Protection::Tls,
    }
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
        TcpError::Untrusted(text) => Error::Untrusted(text),
        TcpError::Other(text) => Error::Other(text),
    }
}
