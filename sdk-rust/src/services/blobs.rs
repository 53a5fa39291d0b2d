//! Large bodies that stay in the host. A blob lives until the call that gave or made it
//! returns, or until it is handed over.

use crate::host;

/// What is read or written at once.
pub const CHUNK_BYTES: u32 = 256 * 1024;

/// Why a blob could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The call it belonged to has returned.
    Gone,
    OutOfRange,
    QuotaExceeded,
    Unavailable(String),
    Other(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Gone => f.write_str("the body is gone with the call it belonged to"),
            Error::OutOfRange => f.write_str("the body is shorter than what was asked for"),
            Error::QuotaExceeded => f.write_str("the quota for large bodies is used up"),
            Error::Unavailable(text) => write!(f, "the body cannot be had now: {text}"),
            Error::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// Bytes that stay in the host.
#[derive(Debug)]
pub struct Blob(pub(crate) host::Blob);

impl Blob {
    /// Hands bytes to the host.
    pub fn from_bytes(bytes: &[u8]) -> Result<Blob, Error> {
        let mut writer = BlobWriter::new();
        writer.write(bytes)?;
        writer.finish()
    }

    /// In bytes.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// At most 1 MiB; shorter only at the end.
    pub fn read(&self, offset: u64, len: u32) -> Result<Vec<u8>, Error> {
        self.0.read(offset, len)
    }

    /// All of it, in the plugin's memory.
    pub fn read_all(&self) -> Result<Vec<u8>, Error> {
        let size = self.size();
        let mut all = Vec::with_capacity(usize::try_from(size).map_err(|_| Error::OutOfRange)?);
        while (all.len() as u64) < size {
            let chunk = self.read(all.len() as u64, CHUNK_BYTES)?;
            if chunk.is_empty() {
                return Err(Error::OutOfRange);
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

/// Makes a blob.
#[derive(Debug)]
pub struct BlobWriter(host::BlobWriter);

impl BlobWriter {
    /// Nothing written yet.
    #[expect(clippy::new_without_default, reason = "it makes something in the host")]
    pub fn new() -> Self {
        BlobWriter(host::BlobWriter::new())
    }

    /// Any number of bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        bytes.chunks(CHUNK_BYTES as usize).try_for_each(|chunk| self.0.write(chunk))
    }

    /// Part of a blob, copied inside the host.
    pub fn copy(&mut self, source: &Blob, offset: u64, len: u64) -> Result<(), Error> {
        self.0.copy(&source.0, offset, len)
    }

    /// No more is written.
    pub fn finish(self) -> Result<Blob, Error> {
        self.0.finish().map(Blob)
    }
}
