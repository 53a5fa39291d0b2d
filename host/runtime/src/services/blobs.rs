//! `blobs`: large bodies that stay in the host. Always granted, within a quota.

use bytes::Bytes;
use portway_bindings::portway::host::blobs::{Blob, Error, Writer};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use super::{LOOK, define};
use crate::guest::Guest;
use crate::things::QuotaExceeded;

/// Bytes of one read or write.
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 20;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut blobs = linker.instance("portway:host/blobs@0.1.0")?;
    blobs.resource("blob", ResourceType::host::<Blob>(), |mut store: StoreContextMut<'_, Guest>, rep| {
        store.data_mut().things.take_blob(rep);
        Ok(())
    })?;
    blobs.resource(
        "writer",
        ResourceType::host::<Writer>(),
        |mut store: StoreContextMut<'_, Guest>, rep| {
            store.data_mut().things.take_writer(rep);
            Ok(())
        },
    )?;
    define(
        &mut blobs,
        "[method]blob.size",
        LOOK,
        |_| 0,
        |guest, (blob,): (Resource<Blob>,)| {
            // A handle whose call has returned has no size any more.
            Ok((guest.things.blob(blob.rep()).map_or(0, |bytes| bytes.len() as u64),))
        },
    )?;
    define(
        &mut blobs,
        "[method]blob.read",
        LOOK,
        |(_, _, len): &(Resource<Blob>, u64, u32)| CHUNK_BYTES_MAX.min(*len as usize),
        |guest, (blob, offset, len)| Ok((read(guest, &blob, offset, len),)),
    )?;
    define(
        &mut blobs,
        "[constructor]writer",
        LOOK,
        |(): &()| 0,
        |guest, ()| Ok((Resource::<Writer>::new_own(guest.things.add_writer()),)),
    )?;
    define(
        &mut blobs,
        "[method]writer.write",
        LOOK,
        |(_, chunk): &(Resource<Writer>, Vec<u8>)| chunk.len(),
        |guest, (writer, chunk)| Ok((write(guest, &writer, &chunk),)),
    )?;
    define(
        &mut blobs,
        "[method]writer.copy",
        LOOK,
        |(_, _, _, len): &(Resource<Writer>, Resource<Blob>, u64, u64)| {
            usize::try_from(*len).unwrap_or(usize::MAX)
        },
        |guest, (writer, blob, offset, len)| Ok((copy(guest, &writer, &blob, offset, len),)),
    )?;
    define(
        &mut blobs,
        "[static]writer.finish",
        LOOK,
        |_| 0,
        |guest, (writer,): (Resource<Writer>,)| {
            let bytes = guest.things.take_writer(writer.rep()).ok_or(Error::Gone);
            Ok((bytes.map(|bytes| Resource::<Blob>::new_own(guest.things.add_blob(bytes))),))
        },
    )
}

fn read(guest: &mut Guest, blob: &Resource<Blob>, offset: u64, len: u32) -> Result<Vec<u8>, Error> {
    let bytes = guest.things.blob(blob.rep()).ok_or(Error::Gone)?;
    let start = usize::try_from(offset).map_err(|_| Error::OutOfRange)?;
    let rest = bytes.get(start..).ok_or(Error::OutOfRange)?;
    let len = (len as usize).min(CHUNK_BYTES_MAX).min(rest.len());
    Ok(rest.get(..len).unwrap_or(rest).to_vec())
}

fn write(guest: &mut Guest, writer: &Resource<Writer>, chunk: &[u8]) -> Result<(), Error> {
    if !guest.things.has_writer(writer.rep()) {
        return Err(Error::Gone);
    }
    if chunk.len() > CHUNK_BYTES_MAX {
        return Err(Error::OutOfRange);
    }
    guest.things.write(writer.rep(), chunk).map_err(|QuotaExceeded| Error::QuotaExceeded)
}

fn copy(
    guest: &mut Guest,
    writer: &Resource<Writer>,
    blob: &Resource<Blob>,
    offset: u64,
    len: u64,
) -> Result<(), Error> {
    if !guest.things.has_writer(writer.rep()) {
        return Err(Error::Gone);
    }
    let part =
        part(guest.things.blob(blob.rep()).ok_or(Error::Gone)?, offset, len).ok_or(Error::OutOfRange)?;
    guest.things.write(writer.rep(), &part).map_err(|QuotaExceeded| Error::QuotaExceeded)
}

/// A part of bytes, uncopied; none if it is not all there.
fn part(bytes: &Bytes, offset: u64, len: u64) -> Option<Bytes> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}
