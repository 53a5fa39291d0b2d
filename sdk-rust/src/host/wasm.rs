//! The services in the host: calls of the generated imports.
//!
//! Has the same names as `host/native.rs`.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::blobs::Error as BlobError;
use crate::connect::{Credential, Error as ConnectError, Protection};
use crate::files::{Entry, Error as FileError, Move, OnExists};
use crate::glue::http as glue_http;
use crate::glue::services::portway::host as wit;
use crate::log::Level;
use crate::secrets::Error as SecretError;
use crate::state::Error as StateError;
use crate::text::Error as TextError;
use crate::{HttpError, Request, Response};

/// Bytes that stay in the host.
#[derive(Debug)]
pub struct Blob(pub wit::blobs::Blob);

impl Blob {
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    pub fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>, BlobError> {
        self.0.read(offset, len).map_err(blob_error)
    }
}

#[derive(Debug)]
pub struct BlobWriter(wit::blobs::Writer);

impl BlobWriter {
    pub fn new() -> Self {
        BlobWriter(wit::blobs::Writer::new())
    }

    pub fn write(&mut self, chunk: &[u8]) -> Result<(), BlobError> {
        self.0.write(chunk).map_err(blob_error)
    }

    pub fn copy(&mut self, source: &Blob, offset: u64, len: u64) -> Result<(), BlobError> {
        self.0.copy(&source.0, offset, len).map_err(blob_error)
    }

    pub fn finish(self) -> Result<Blob, BlobError> {
        wit::blobs::Writer::finish(self.0).map(Blob).map_err(blob_error)
    }
}

fn blob_error(error: wit::blobs::Error) -> BlobError {
    match error {
        wit::blobs::Error::Gone => BlobError::Gone,
        wit::blobs::Error::OutOfRange => BlobError::OutOfRange,
        wit::blobs::Error::QuotaExceeded => BlobError::QuotaExceeded,
        wit::blobs::Error::Unavailable(text) => BlobError::Unavailable(text),
        wit::blobs::Error::Other(text) => BlobError::Other(text),
    }
}

pub fn clock_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub fn log_write(level: Level, text: &str) {
    let level = match level {
        Level::Trace => wit::log::Level::Trace,
        Level::Debug => wit::log::Level::Debug,
        Level::Info => wit::log::Level::Info,
        Level::Warn => wit::log::Level::Warn,
        Level::Error => wit::log::Level::Error,
    };
    wit::log::write(level, text);
}

pub fn log_notice(code: &str, text: &str) {
    wit::log::notice(code, text);
}

thread_local! {
    /// The message at hand.
    static BEGUN: Cell<u32> = const { Cell::new(0) };
}

pub fn progress_begin(index: u32) {
    BEGUN.set(index);
    wit::progress::begin(index);
}

pub fn progress_sent(index: u32) {
    wit::progress::sent(index);
}

pub fn text_decode(bytes: &[u8], charset: &str) -> Result<String, TextError> {
    wit::text::decode(bytes, charset).map_err(text_error)
}

pub fn text_encode(text: &str, charset: &str) -> Result<Vec<u8>, TextError> {
    wit::text::encode(text, charset).map_err(text_error)
}

fn text_error(error: wit::text::Error) -> TextError {
    match error {
        wit::text::Error::UnknownCharset => TextError::UnknownCharset,
        wit::text::Error::Malformed(at) => TextError::Malformed(at),
        wit::text::Error::Other(text) => TextError::Other(text),
    }
}

pub fn secrets_reveal(slot: &str) -> Result<Vec<u8>, SecretError> {
    wit::secrets::reveal(slot).map_err(secret_error)
}

pub fn secrets_hmac_sha256(slot: &str, data: &[u8]) -> Result<Vec<u8>, SecretError> {
    wit::secrets::hmac_sha256(slot, data).map_err(secret_error)
}

fn secret_error(error: wit::secrets::Error) -> SecretError {
    match error {
        wit::secrets::Error::Denied => SecretError::Denied,
        wit::secrets::Error::NotFound => SecretError::NotFound,
        wit::secrets::Error::Unavailable(text) => SecretError::Unavailable(text),
        wit::secrets::Error::Other(text) => SecretError::Other(text),
    }
}

pub fn state_get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    wit::state::get(key).map_err(state_error)
}

pub fn state_put(key: &str, value: &[u8]) -> Result<(), StateError> {
    wit::state::put(key, value).map_err(state_error)
}

pub fn state_delete(key: &str) -> Result<(), StateError> {
    wit::state::delete(key).map_err(state_error)
}

pub fn state_scan(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, StateError> {
    wit::state::scan(prefix, after, limit).map_err(state_error)
}

fn state_error(error: wit::state::Error) -> StateError {
    match error {
        wit::state::Error::Denied => StateError::Denied,
        wit::state::Error::QuotaExceeded => StateError::QuotaExceeded,
        wit::state::Error::Unavailable(text) => StateError::Unavailable(text),
        wit::state::Error::Other(text) => StateError::Other(text),
    }
}

#[derive(Debug)]
pub struct Connection(wit::connect::Connection);

pub fn connect_open(name: &str) -> Result<Connection, ConnectError> {
    wit::connect::open(name).map(Connection).map_err(connect_error)
}

impl Connection {
    pub fn is_fresh(&self) -> bool {
        self.0.is_fresh()
    }

    pub fn write(&mut self, bytes: &[u8], timeout_ms: u32) -> Result<(), ConnectError> {
        self.0.write(bytes, timeout_ms).map_err(connect_error)
    }

    pub fn read(&mut self, max: u32, timeout_ms: u32) -> Result<Vec<u8>, ConnectError> {
        self.0.read(max, timeout_ms).map_err(connect_error)
    }

    pub fn protection(&self) -> Protection {
        match self.0.protection() {
            wit::connect::Protection::None => Protection::None,
            wit::connect::Protection::Wanted => Protection::Wanted,
            wit::connect::Protection::Required => Protection::Required,
            wit::connect::Protection::Tls => Protection::Tls,
        }
    }

    pub fn start_tls(&mut self, timeout_ms: u32) -> Result<(), ConnectError> {
        self.0.start_tls(timeout_ms).map_err(connect_error)
    }

    pub fn has_credentials(&self) -> bool {
        self.0.has_credentials()
    }

    pub fn write_credential(&mut self, credential: Credential, timeout_ms: u32) -> Result<(), ConnectError> {
        let credential = match credential {
            Credential::Plain => wit::connect::Credential::Plain,
            Credential::User => wit::connect::Credential::User,
            Credential::Password => wit::connect::Credential::Password,
        };
        self.0.write_credential(credential, timeout_ms).map_err(connect_error)
    }

    pub fn keep(self) {
        wit::connect::Connection::keep(self.0);
    }
}

fn connect_error(error: wit::connect::Error) -> ConnectError {
    match error {
        wit::connect::Error::Denied => ConnectError::Denied,
        wit::connect::Error::Busy => ConnectError::Busy,
        wit::connect::Error::Unreachable(text) => ConnectError::Unreachable(text),
        wit::connect::Error::Timeout => ConnectError::Timeout,
        wit::connect::Error::Closed => ConnectError::Closed,
        wit::connect::Error::Untrusted(text) => ConnectError::Untrusted(text),
        wit::connect::Error::Other(text) => ConnectError::Other(text),
    }
}

pub fn http_send(request: Request) -> Result<Response, HttpError> {
    let request = request_out(request)?;
    glue_http::outcome_in(wit::http::send(request))
}

/// Where one cannot be handed over, the others are asked all the same.
pub fn http_send_all(requests: Vec<Request>) -> Vec<Result<Response, HttpError>> {
    let made: Vec<_> = requests.into_iter().map(request_out).collect();
    let (mut outcomes, mut asked) = (Vec::with_capacity(made.len()), Vec::with_capacity(made.len()));
    for request in made {
        outcomes.push(request.map(|request| asked.push(request)).err());
    }
    let mut answers = wit::http::send_all(asked).into_iter();
    let outcome = |error: Option<HttpError>| match error {
        Some(error) => Err(error),
        None => match answers.next() {
            Some(answer) => glue_http::outcome_in(answer),
            None => Err(HttpError::Other("the host gave no answer".into())),
        },
    };
    outcomes.into_iter().map(outcome).collect()
}

fn request_out(request: Request) -> Result<wit::http::Request, HttpError> {
    glue_http::request_out(request, BEGUN.get()).map_err(|later| HttpError::Other(later.failure.text))
}

/// An open file.
#[derive(Debug)]
pub struct File(wit::files::File);

impl File {
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    pub fn identity(&self) -> String {
        self.0.identity()
    }

    pub fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>, FileError> {
        self.0.read(offset, len).map_err(file_error)
    }

    pub fn slice(&self, offset: u64, len: u64) -> Result<Blob, FileError> {
        self.0.slice(offset, len).map(Blob).map_err(file_error)
    }
}

fn file_error(error: wit::files::Error) -> FileError {
    match error {
        wit::files::Error::Denied => FileError::Denied,
        wit::files::Error::NotFound => FileError::NotFound,
        wit::files::Error::Exists => FileError::Exists,
        wit::files::Error::NotAFile => FileError::NotAFile,
        wit::files::Error::Full => FileError::Full,
        wit::files::Error::Unsupported => FileError::Unsupported,
        wit::files::Error::Unavailable(text) => FileError::Unavailable(text),
        wit::files::Error::Other(text) => FileError::Other(text),
    }
}

fn on_exists(on_exists: OnExists) -> wit::files::OnExists {
    match on_exists {
        OnExists::Fail => wit::files::OnExists::Fail,
        OnExists::Replace => wit::files::OnExists::Replace,
    }
}

fn entry(entry: wit::files::Entry) -> Entry {
    Entry {
        name: entry.name,
        size: entry.size,
        modified_ms: entry.modified_ms,
        identity: entry.identity,
        is_folder: entry.is_folder,
    }
}

pub fn files_scan(
    folder: &str,
    path: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Entry>, FileError> {
    let entries = wit::files::scan(folder, path, after, limit).map_err(file_error)?;
    Ok(entries.into_iter().map(entry).collect())
}

pub fn files_stat(folder: &str, path: &str) -> Result<Entry, FileError> {
    wit::files::stat(folder, path).map(entry).map_err(file_error)
}

pub fn files_open(folder: &str, path: &str) -> Result<File, FileError> {
    wit::files::open(folder, path).map(File).map_err(file_error)
}

pub fn files_put(folder: &str, path: &str, bytes: &[u8], taken: OnExists) -> Result<(), FileError> {
    wit::files::put(folder, path, bytes, on_exists(taken)).map_err(file_error)
}

pub fn files_put_blob(folder: &str, path: &str, blob: &Blob, taken: OnExists) -> Result<(), FileError> {
    wit::files::put_blob(folder, path, &blob.0, on_exists(taken)).map_err(file_error)
}

pub fn files_append(folder: &str, path: &str, bytes: &[u8]) -> Result<(), FileError> {
    wit::files::append(folder, path, bytes).map_err(file_error)
}

pub fn files_sync(folder: &str, path: &str) -> Result<(), FileError> {
    wit::files::sync(folder, path).map_err(file_error)
}

pub fn files_move(from_to: Move<'_>) -> Result<(), FileError> {
    let Move { folder, path, to_folder, to_path, on_exists: taken } = from_to;
    wit::files::move_(folder, path, to_folder, to_path, on_exists(taken)).map_err(file_error)
}

pub fn files_remove(folder: &str, path: &str) -> Result<(), FileError> {
    wit::files::remove(folder, path).map_err(file_error)
}
