//! `files`: granted folders by slot. What a folder lets through is decided by `net`.
//!
//! Everything here may wait for a disk, so it runs on threads that may block.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use portway_bindings::portway::host::blobs::Blob;
use portway_bindings::portway::host::files::{Entry, Error, File, OnExists};
use portway_net::folder::{self, Folder, FolderError};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use super::blobs::CHUNK_BYTES_MAX;
use super::{LOOK, SYSTEM, define, define_waiting};
use crate::guest::Guest;
use crate::things::QuotaExceeded;

type OpenFile = Resource<File>;
type Named = (String, String);

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut files = linker.instance("portway:host/files@0.1.0")?;
    files.resource("file", ResourceType::host::<File>(), |mut store: StoreContextMut<'_, Guest>, rep| {
        store.data_mut().things.drop_file(rep);
        Ok(())
    })?;
    link_file(&mut files)?;
    define_waiting(
        &mut files,
        "scan",
        SYSTEM,
        |(_, _, _, limit): &(String, String, Option<String>, u32)| (*limit as usize).min(1_000) * 256,
        |guest, (folder, path, after, limit)| {
            Box::pin(async move {
                let found =
                    on(guest, &folder, move |folder| folder.scan(&path, after.as_deref(), limit)).await;
                Ok((found.map(|entries| entries.into_iter().map(entry).collect::<Vec<_>>()),))
            })
        },
    )?;
    define_waiting(
        &mut files,
        "stat",
        SYSTEM,
        |_| 0,
        |guest, (folder, path): Named| {
            Box::pin(
                async move { Ok((on(guest, &folder, move |folder| folder.stat(&path)).await.map(entry),)) },
            )
        },
    )?;
    define_waiting(
        &mut files,
        "open",
        SYSTEM,
        |_| 0,
        |guest, (folder, path): Named| {
            Box::pin(async move {
                let opened = on(guest, &folder, move |folder| folder.open(&path)).await;
                Ok((opened.map(|file| OpenFile::new_own(guest.things.add_file(file))),))
            })
        },
    )?;
    link_changes(&mut files)
}

fn link_file(files: &mut wasmtime::component::LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    define(
        files,
        "[method]file.size",
        SYSTEM,
        |_| 0,
        |guest, (file,): (OpenFile,)| Ok((guest.things.file(file.rep()).map_or(0, |file| file.size()),)),
    )?;
    define(
        files,
        "[method]file.identity",
        LOOK,
        |_| 0,
        |guest, (file,): (OpenFile,)| {
            Ok((guest.things.file(file.rep()).map_or_else(String::new, |file| file.identity()),))
        },
    )?;
    define_waiting(
        files,
        "[method]file.read",
        SYSTEM,
        |(_, _, len): &(OpenFile, u64, u32)| CHUNK_BYTES_MAX.min(*len as usize),
        |guest, (file, offset, len)| {
            Box::pin(async move { Ok((read(guest, &file, offset, len).await.map(|bytes| bytes.to_vec()),)) })
        },
    )?;
    define_waiting(
        files,
        "[method]file.slice",
        SYSTEM,
        |(_, _, len): &(OpenFile, u64, u64)| usize::try_from(*len).unwrap_or(usize::MAX),
        |guest, (file, offset, len)| {
            Box::pin(async move {
                let bytes = slice(guest, &file, offset, len).await;
                Ok((bytes.map(|bytes| Resource::<Blob>::new_own(guest.things.add_blob(bytes))),))
            })
        },
    )
}

fn link_changes(files: &mut wasmtime::component::LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    define_waiting(
        files,
        "put",
        SYSTEM,
        |(_, _, bytes, _): &(String, String, Vec<u8>, OnExists)| bytes.len(),
        |guest, (folder, path, bytes, on_exists)| {
            Box::pin(async move {
                Ok((change(guest, &folder, move |folder| folder.put(&path, &bytes, taken(on_exists))).await,))
            })
        },
    )?;
    define_waiting(
        files,
        "put-blob",
        SYSTEM,
        |_| 0,
        |guest, (folder, path, blob, on_exists): (String, String, Resource<Blob>, OnExists)| {
            Box::pin(async move {
                let Some(bytes) = guest.things.blob(blob.rep()).cloned() else {
                    return Ok((Err(Error::Other("the blob's call has returned".into())),));
                };
                guest.meter.owe(SYSTEM.per_byte * bytes.len() as u64);
                let put =
                    move |folder: &Folder| folder.put_from(&path, &mut Cursor::new(&bytes), taken(on_exists));
                Ok((change(guest, &folder, put).await,))
            })
        },
    )?;
    define_waiting(
        files,
        "append",
        SYSTEM,
        |(_, _, bytes): &(String, String, Vec<u8>)| bytes.len(),
        |guest, (folder, path, bytes)| {
            Box::pin(async move {
                Ok((change(guest, &folder, move |folder| folder.append(&path, &bytes)).await,))
            })
        },
    )?;
    define_waiting(
        files,
        "sync",
        SYSTEM,
        |_| 0,
        |guest, (folder, path): Named| {
            Box::pin(async move { Ok((change(guest, &folder, move |folder| folder.sync(&path)).await,)) })
        },
    )?;
    define_waiting(
        files,
        "move",
        SYSTEM,
        |_| 0,
        |guest, (folder, path, to, to_path, on_exists): (String, String, String, String, OnExists)| {
            Box::pin(async move {
                let Some(target) = granted(guest, &to) else { return Ok((Err(Error::Denied),)) };
                let moved = move |folder: &Folder| folder.move_to(&path, &target, &to_path, taken(on_exists));
                Ok((change(guest, &folder, moved).await,))
            })
        },
    )?;
    define_waiting(
        files,
        "remove",
        SYSTEM,
        |_| 0,
        |guest, (folder, path): Named| {
            Box::pin(async move { Ok((change(guest, &folder, move |folder| folder.remove(&path)).await,)) })
        },
    )
}

fn granted(guest: &mut Guest, name: &str) -> Option<Arc<Folder>> {
    guest.reach.folders.get(name).map(|granted| guest.things.folder(name, granted))
}

/// Changes something in a granted folder, which others may see.
async fn change<T: Send + 'static>(
    guest: &mut Guest,
    name: &str,
    work: impl FnOnce(&Folder) -> Result<T, FolderError> + Send + 'static,
) -> Result<T, Error> {
    guest.call.reached = true;
    on(guest, name, work).await
}

/// Does something in a granted folder, on a thread that may block.
async fn on<T: Send + 'static>(
    guest: &mut Guest,
    name: &str,
    work: impl FnOnce(&Folder) -> Result<T, FolderError> + Send + 'static,
) -> Result<T, Error> {
    let folder = granted(guest, name).ok_or(Error::Denied)?;
    blocking(guest, move || work(&folder)).await
}

async fn blocking<T: Send + 'static>(
    guest: &mut Guest,
    work: impl FnOnce() -> Result<T, FolderError> + Send + 'static,
) -> Result<T, Error> {
    match guest.serve(tokio::task::spawn_blocking(work)).await {
        Ok(done) => done.map_err(error),
        Err(lost) => Err(Error::Other(lost.to_string())),
    }
}

async fn read(guest: &mut Guest, file: &OpenFile, offset: u64, len: u32) -> Result<Bytes, Error> {
    let file = guest.things.file(file.rep()).ok_or(Error::NotFound)?;
    blocking(guest, move || file.read(offset, len)).await
}

/// Read at once: the file may change before the blob is used.
async fn slice(guest: &mut Guest, file: &OpenFile, offset: u64, len: u64) -> Result<Bytes, Error> {
    let file = guest.things.file(file.rep()).ok_or(Error::NotFound)?;
    let wanted = usize::try_from(len).unwrap_or(usize::MAX);
    guest.things.hold(wanted).map_err(|QuotaExceeded| Error::Other("more than a call may hold".into()))?;
    blocking(guest, move || {
        let mut bytes = Vec::with_capacity(wanted);
        while bytes.len() < wanted {
            let left = u32::try_from(wanted - bytes.len()).unwrap_or(u32::MAX);
            let chunk =
                file.read(offset.saturating_add(bytes.len() as u64), left.min(folder::READ_BYTES_MAX))?;
            if chunk.is_empty() {
                return Err(FolderError::Other("the file ends before the part does".into()));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.into())
    })
    .await
}

fn entry(entry: folder::Entry) -> Entry {
    Entry {
        name: entry.name,
        size: entry.size,
        modified_ms: entry.modified_ms,
        identity: entry.identity,
        is_folder: entry.is_folder,
    }
}

fn taken(on_exists: OnExists) -> folder::OnExists {
    match on_exists {
        OnExists::Fail => folder::OnExists::Fail,
        OnExists::Replace => folder::OnExists::Replace,
    }
}

fn error(error: FolderError) -> Error {
    match error {
        FolderError::Denied => Error::Denied,
        FolderError::NotFound => Error::NotFound,
        FolderError::Exists => Error::Exists,
        FolderError::NotAFile => Error::NotAFile,
        FolderError::Full => Error::Full,
        FolderError::Unsupported => Error::Unsupported,
        FolderError::Unavailable(text) => Error::Unavailable(text),
        FolderError::Other(text) => Error::Other(text),
    }
}
