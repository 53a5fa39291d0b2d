//! The services natively: stand-ins on the stage that [`crate::testing`] sets.
//!
//! Has the same names as `host/wasm.rs`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::blobs::Error as BlobError;
use crate::connect::{Credential, Error as ConnectError, Protection};
use crate::files::{Entry, Error as FileError, Move, OnExists};
use crate::log::Level;
use crate::secrets::Error as SecretError;
use crate::state::Error as StateError;
use crate::testing::folder::{self, Folder};
use crate::testing::{Event, PeerRead, PeerScript, Stage, StagedSecret, with_stage};
use crate::text::Error as TextError;
use crate::{HttpError, Request, RequestContent, Response};

/// Bytes of one read and names of one scan at most, as in the host.
const READ_BYTES_MAX: u32 = 1 << 20;
const SCAN_MAX: u32 = 1_000;

/// Bytes that would stay in the host.
#[derive(Clone, Debug)]
pub struct Blob(Arc<Vec<u8>>);

impl Blob {
    pub fn size(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>, BlobError> {
        part(&self.0, offset, u64::from(len)).map(<[u8]>::to_vec).ok_or(BlobError::OutOfRange)
    }
}

/// From an offset, shorter at the end; none: the offset is behind the end.
fn part(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let rest = bytes.get(usize::try_from(offset).ok()?..)?;
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
    rest.get(..len)
}

#[derive(Debug)]
pub struct BlobWriter(Vec<u8>);

impl BlobWriter {
    pub fn new() -> Self {
        BlobWriter(Vec::new())
    }

    pub fn write(&mut self, chunk: &[u8]) -> Result<(), BlobError> {
        self.0.extend_from_slice(chunk);
        Ok(())
    }

    pub fn copy(&mut self, source: &Blob, offset: u64, len: u64) -> Result<(), BlobError> {
        let bytes = part(&source.0, offset, len).filter(|bytes| bytes.len() as u64 == len);
        self.0.extend_from_slice(bytes.ok_or(BlobError::OutOfRange)?);
        Ok(())
    }

    pub fn finish(self) -> Result<Blob, BlobError> {
        Ok(Blob(Arc::new(self.0)))
    }
}

pub fn log_write(level: Level, text: &str) {
    with_stage(|stage| stage.logs.push((level, text.to_owned())));
}

pub fn log_notice(code: &str, text: &str) {
    with_stage(|stage| stage.notices.push((code.to_owned(), text.to_owned())));
}

pub fn progress_begin(index: u32) {
    note(Event::Begin(index));
}

pub fn progress_sent(index: u32) {
    note(Event::Sent(index));
}

fn note(event: Event) {
    with_stage(|stage| stage.events.push(event));
}

pub fn text_decode(bytes: &[u8], charset: &str) -> Result<String, TextError> {
    let last = last_character(charset)?;
    match bytes.iter().position(|byte| *byte > last) {
        Some(at) => Err(malformed(at)),
        None => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

pub fn text_encode(text: &str, charset: &str) -> Result<Vec<u8>, TextError> {
    let last = last_character(charset)?;
    let bytes = text.char_indices().map(|(at, character)| match u8::try_from(character) {
        Ok(byte) if byte <= last => Ok(byte),
        _ => Err(malformed(at)),
    });
    bytes.collect()
}

fn malformed(at: usize) -> TextError {
    TextError::Malformed(u32::try_from(at).unwrap_or(u32::MAX))
}

/// ASCII and latin-1 are all that is known natively.
fn last_character(charset: &str) -> Result<u8, TextError> {
    match charset.to_ascii_lowercase().as_str() {
        "ascii" | "us-ascii" => Ok(0x7F),
        "8859/1" | "iso-8859-1" | "latin1" => Ok(0xFF),
        _ => Err(TextError::UnknownCharset),
    }
}

pub fn secrets_reveal(slot: &str) -> Result<Vec<u8>, SecretError> {
    staged_secret(slot, |secret| match secret {
        StagedSecret::Reveal(value) => Some(value.clone()),
        StagedSecret::Sign(_) => None,
    })
}

pub fn secrets_hmac_sha256(slot: &str, data: &[u8]) -> Result<Vec<u8>, SecretError> {
    staged_secret(slot, |secret| match secret {
        StagedSecret::Sign(key) => {
            let mut signer = Hmac::<Sha256>::new_from_slice(key).ok()?;
            signer.update(data);
            Some(signer.finalize().into_bytes().to_vec())
        }
        StagedSecret::Reveal(_) => None,
    })
}

fn staged_secret(
    slot: &str,
    take: impl FnOnce(&StagedSecret) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, SecretError> {
    with_stage(|stage| match stage.secret_failures.pop_front() {
        Some(error) => Err(error),
        None => stage.secrets.get(slot).and_then(take).ok_or(SecretError::Denied),
    })
}

pub fn state_get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    with_stage(|stage| stage.state.get(key))
}

pub fn state_put(key: &str, value: &[u8]) -> Result<(), StateError> {
    with_stage(|stage| stage.state.put(key, value))
}

pub fn state_delete(key: &str) -> Result<(), StateError> {
    with_stage(|stage| stage.state.delete(key))
}

pub fn state_scan(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, StateError> {
    with_stage(|stage| stage.state.scan(prefix, after, limit))
}

#[derive(Debug)]
pub struct Connection {
    name: String,
    fresh: bool,
    /// None: it was given back.
    script: Option<PeerScript>,
}

pub fn connect_open(name: &str) -> Result<Connection, ConnectError> {
    with_stage(|stage| {
        let kept = stage.kept.remove(name);
        let fresh = kept.is_none();
        stage.events.push(Event::Open { peer: name.to_owned(), fresh });
        let script = match kept {
            Some(script) => Ok(script),
            None => stage
                .peers
                .get_mut(name)
                .and_then(|dials| dials.pop_front())
                .unwrap_or(Err(ConnectError::Denied)),
        };
        Ok(Connection { name: name.to_owned(), fresh, script: Some(script?) })
    })
}

impl Connection {
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    pub fn write(&mut self, bytes: &[u8], _timeout_ms: u32) -> Result<(), ConnectError> {
        let result = self.script.as_mut().and_then(|script| script.writes.pop_front()).unwrap_or(Ok(()));
        if result.is_ok() {
            note(Event::Write(bytes.to_vec()));
        }
        result
    }

    pub fn read(&mut self, max: u32, _timeout_ms: u32) -> Result<Vec<u8>, ConnectError> {
        let Some(script) = self.script.as_mut() else { return Err(ConnectError::Closed) };
        match script.reads.pop_front() {
            None => Err(ConnectError::Timeout),
            Some(PeerRead::Fails(error)) => Err(error),
            Some(PeerRead::Bytes(mut bytes)) => {
                let max = usize::try_from(max).unwrap_or(usize::MAX);
                if bytes.len() > max {
                    script.reads.push_front(PeerRead::Bytes(bytes.split_off(max)));
                }
                Ok(bytes)
            }
        }
    }

    pub fn protection(&self) -> Protection {
        self.script.as_ref().map_or(Protection::None, |script| script.protection)
    }

    pub fn start_tls(&mut self, _timeout_ms: u32) -> Result<(), ConnectError> {
        let Some(script) = self.script.as_mut() else { return Err(ConnectError::Closed) };
        if !matches!(script.protection, Protection::Wanted | Protection::Required) {
            return Err(ConnectError::Denied);
        }
        note(Event::StartTls);
        if let Some(error) = script.tls_failure.take() {
            return Err(error);
        }
        script.protection = Protection::Tls;
        Ok(())
    }

    pub fn has_credentials(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.credentials)
    }

    pub fn write_credential(&mut self, credential: Credential, timeout_ms: u32) -> Result<(), ConnectError> {
        if !self.has_credentials() || self.protection() != Protection::Tls {
            return Err(ConnectError::Denied);
        }
        self.write(format!("<{credential:?}>\r\n").as_bytes(), timeout_ms)
    }

    pub fn keep(mut self) {
        if let Some(script) = self.script.take() {
            with_stage(|stage| {
                stage.events.push(Event::Keep);
                stage.kept.insert(self.name.clone(), script);
            });
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.script.is_some() {
            note(Event::Close);
        }
    }
}

pub fn http_send(request: Request) -> Result<Response, HttpError> {
    let body = match request.content {
        RequestContent::None => Some(Vec::new()),
        RequestContent::OfMessage => None,
        RequestContent::Body(body) => {
            Some(body.into_bytes().map_err(|error| HttpError::Other(error.to_string()))?)
        }
    };
    with_stage(|stage| {
        let is_meant = |name: &str| match request.url.strip_prefix(name) {
            Some(rest) => name.contains("://") || rest.starts_with(":/"),
            None => false,
        };
        let granted = stage.apis.iter_mut().find(|(name, _)| is_meant(name));
        let Some((_, answers)) = granted else {
            return Err(HttpError::Denied("no API of this name is granted".into()));
        };
        let (method, url, headers) = (request.method, request.url, request.headers);
        stage.events.push(Event::Ask { method, url, headers, body });
        answers.pop_front().unwrap_or(Err(HttpError::Timeout))
    })
}

pub fn http_send_all(requests: Vec<Request>) -> Vec<Result<Response, HttpError>> {
    requests.into_iter().map(http_send).collect()
}

pub fn clock_now_ms() -> u64 {
    with_stage(|stage| stage.now_ms()).unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// An open file.
#[derive(Debug)]
pub struct File {
    identity: u64,
    bytes: folder::Bytes,
}

impl File {
    pub fn size(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    pub fn identity(&self) -> String {
        self.identity.to_string()
    }

    pub fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>, FileError> {
        if let Some(error) = with_stage(|stage| stage.take_file_failure("read")) {
            return Err(error);
        }
        let bytes = self.bytes.borrow();
        Ok(part(&bytes, offset, u64::from(len.min(READ_BYTES_MAX))).unwrap_or_default().to_vec())
    }

    pub fn slice(&self, offset: u64, len: u64) -> Result<Blob, FileError> {
        let bytes = self.bytes.borrow();
        let bytes = part(&bytes, offset, len).filter(|bytes| bytes.len() as u64 == len);
        let bytes = bytes.ok_or_else(|| FileError::Other("the file ends before the part does".into()))?;
        Ok(Blob(Arc::new(bytes.to_vec())))
    }
}

/// Runs one operation, unless the stage says that it fails.
fn on_folder<T>(
    operation: &str,
    folder: &str,
    run: impl FnOnce(&mut Folder) -> Result<T, FileError>,
) -> Result<T, FileError> {
    with_stage(|stage| {
        if let Some(error) = stage.take_file_failure(operation) {
            return Err(error);
        }
        run(stage.folders.get_mut(folder).ok_or(FileError::Denied)?)
    })
}

pub fn files_scan(
    folder: &str,
    path: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Entry>, FileError> {
    on_folder("scan", folder, |folder| Ok(folder.scan(path, after, limit.min(SCAN_MAX))))
}

pub fn files_stat(folder: &str, path: &str) -> Result<Entry, FileError> {
    on_folder("stat", folder, |folder| folder.stat(path))
}

pub fn files_open(folder: &str, path: &str) -> Result<File, FileError> {
    on_folder("open", folder, |folder| {
        let file = folder.get(path).ok_or(FileError::NotFound)?;
        Ok(File { identity: file.identity, bytes: file.bytes.clone() })
    })
}

pub fn files_put(folder: &str, path: &str, bytes: &[u8], on_exists: OnExists) -> Result<(), FileError> {
    let file = with_stage(|stage| stage.new_file(bytes));
    on_folder("put", folder, |folder| {
        if on_exists == OnExists::Fail && folder.get(path).is_some() {
            return Err(FileError::Exists);
        }
        folder.insert(path, file);
        Ok(())
    })?;
    note(Event::Put { folder: folder.to_owned(), path: path.to_owned(), bytes: bytes.to_vec() });
    Ok(())
}

pub fn files_put_blob(folder: &str, path: &str, blob: &Blob, on_exists: OnExists) -> Result<(), FileError> {
    files_put(folder, path, &blob.0, on_exists)
}

pub fn files_append(folder: &str, path: &str, bytes: &[u8]) -> Result<(), FileError> {
    let fresh = with_stage(|stage| stage.new_file(b""));
    on_folder("append", folder, |folder| {
        if folder.get(path).is_none() {
            folder.insert(path, fresh.clone());
        }
        if let Some(file) = folder.get_mut(path) {
            file.bytes.borrow_mut().extend_from_slice(bytes);
            file.modified_ms = fresh.modified_ms;
        }
        Ok(())
    })?;
    note(Event::Append { folder: folder.to_owned(), path: path.to_owned(), bytes: bytes.to_vec() });
    Ok(())
}

pub fn files_sync(folder: &str, path: &str) -> Result<(), FileError> {
    on_folder("sync", folder, |_| Ok(()))?;
    note(Event::Sync { folder: folder.to_owned(), path: path.to_owned() });
    Ok(())
}

pub fn files_move(from_to: Move<'_>) -> Result<(), FileError> {
    let taken = on_folder("stat", from_to.to_folder, |folder| Ok(folder.get(from_to.to_path).is_some()))?;
    if taken && from_to.on_exists == OnExists::Fail {
        return Err(FileError::Exists);
    }
    let file =
        on_folder("move", from_to.folder, |folder| folder.remove(from_to.path).ok_or(FileError::NotFound))?;
    on_folder("move", from_to.to_folder, |folder| {
        folder.insert(from_to.to_path, file);
        Ok(())
    })
}

pub fn files_remove(folder: &str, path: &str) -> Result<(), FileError> {
    on_folder("remove", folder, |folder| folder.remove(path).map(drop).ok_or(FileError::NotFound))
}

impl Stage {
    fn take_file_failure(&mut self, operation: &str) -> Option<FileError> {
        let at = self.file_failures.iter().position(|(wanted, ..)| wanted == operation)?;
        match self.file_failures.get_mut(at) {
            Some((_, works, _)) if *works > 0 => {
                *works -= 1;
                None
            }
            _ => Some(self.file_failures.remove(at).2),
        }
    }
}
