//! Native code on disk, so that a component is compiled once.
//!
//! Only this engine writes here. A file is taken only if it belongs to this user, nobody else
//! may write it, and its content has the hash it begins with; anything else is compiled anew
//! and replaced. Files appear whole by a rename, so two processes at once are safe.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::{CompileError, Compiler};
use crate::load::hex;

/// Begins every file; changes with the layout.
const MAGIC: &[u8; 16] = b"portway-native-1";
const HASH_BYTES: usize = 32;
/// Bytes of native code at most: code is some four times the component.
pub(crate) const NATIVE_BYTES_MAX: usize = 512 << 20;

/// Where native code comes from: the disk, or the compiler.
pub(crate) struct NativeCode {
    dir: Option<PathBuf>,
    compiler: Compiler,
    engine_key: String,
    compiled: AtomicU64,
}

impl NativeCode {
    /// Makes the folder if there is none.
    pub fn new(engine: &Engine, dir: Option<PathBuf>, compiler: Compiler) -> io::Result<NativeCode> {
        if let Some(dir) = &dir {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut hasher = KeyHasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let key = hasher.0.chain_update(env!("CARGO_PKG_VERSION")).finalize();
        let engine_key = hex(key.get(..8).unwrap_or_default());
        Ok(NativeCode { dir, compiler, engine_key, compiled: AtomicU64::new(0) })
    }

    /// How many components were compiled and not found.
    pub fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// The component of these bytes, whose SHA-256 is `digest`, in the first of some engines that
    /// takes it. All of them run the same native code.
    pub async fn component(
        &self,
        engines: &[&Engine],
        digest: &str,
        bytes: &[u8],
    ) -> Result<Component, CompileError> {
        let path = self.dir.as_ref().map(|dir| dir.join(format!("{digest}-{}.native", self.engine_key)));
        if let Some(path) = &path {
            match read(path) {
                Ok(Some(native)) => match adopt_first(engines, &native) {
                    Ok(component) => return Ok(component),
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "native code is compiled anew")
                    }
                },
                Ok(None) => {}
                Err(error) => tracing::warn!(path = %path.display(), %error, "native code is compiled anew"),
            }
        }
        let Some(engine) = engines.first() else {
            return Err(CompileError::Invalid("there is no engine".into()));
        };
        let native = self.compiler.compile(engine, bytes).await?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(path) = &path
            && let Err(error) = write(path, &native)
        {
            // It runs without; the next start compiles again.
            tracing::warn!(path = %path.display(), %error, "native code cannot be kept");
        }
        adopt_first(engines, &native).map_err(|error| CompileError::Invalid(format!("{error:#}")))
    }
}

/// The error is that of the last engine.
fn adopt_first(engines: &[&Engine], native: &[u8]) -> wasmtime::Result<Component> {
    let mut adopted = Err(wasmtime::format_err!("there is no engine"));
    for engine in engines {
        adopted = adopt(engine, native);
        if adopted.is_ok() {
            break;
        }
    }
    adopted
}

/// Makes native code runnable.
#[expect(
    unsafe_code,
    reason = "the bytes came from this engine's own compiler in this process, from its child over a pipe, \
              or from a file of this user that nobody else may write and whose content hash was checked"
)]
fn adopt(engine: &Engine, native: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: see the reason above; a version or setting that does not match is an error of
    // `deserialize` itself.
    unsafe { Component::deserialize(engine, native) }
}

/// None if there is no file; an error if there is one that must not be used.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut file = match File::options().read(true).custom_flags(no_follow()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is no regular file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(refused("others may read or write it"));
    }
    if metadata.len() > (NATIVE_BYTES_MAX + MAGIC.len() + HASH_BYTES) as u64 {
        return Err(refused("it is too large"));
    }
    let mut head = [0; MAGIC.len() + HASH_BYTES];
    file.read_exact(&mut head)?;
    let (magic, hash) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(refused("it is of another version"));
    }
    let mut native = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(NATIVE_BYTES_MAX as u64).read_to_end(&mut native)?;
    if Sha256::digest(&native).as_slice() != hash {
        return Err(refused("its content does not have its hash"));
    }
    Ok(Some(native))
}

fn write(path: &Path, native: &[u8]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{serial}.tmp", std::process::id()));
    // One left over from a process of the same number that died.
    let _ = fs::remove_file(&temporary);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(MAGIC)?;
        file.write_all(&Sha256::digest(native))?;
        file.write_all(native)?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

/// A hasher whose result does not depend on the standard library's.
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.clone().finalize();
        hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }
}
