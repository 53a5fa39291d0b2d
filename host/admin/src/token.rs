//! The control token: who may read it may control the engine.
//!
//! A new one at each start, in a file of the data folder that only the engine's user can read.
//! The file also says where the engine listens, so that commands find it.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use portway_model::code;
use serde::{Deserialize, Serialize};

/// 32 random bytes, as 64 hexadecimal digits. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    pub fn random() -> Self {
        let bytes: [u8; 32] = rand::random();
        Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// For the header of a request.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes as long whichever byte differs.
    pub(crate) fn matches(&self, given: &[u8]) -> bool {
        let wanted = self.0.as_bytes();
        let different = wanted.iter().zip(given).fold(0_u8, |different, (a, b)| different | (a ^ b));
        std::hint::black_box(different) == 0 && wanted.len() == given.len()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How commands reach a running engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlFile {
    pub address: SocketAddr,
    pub token: Token,
}

/// Why the control file could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cannot write the control token `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the control token `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the control token `{path}` is damaged")]
    Damaged { path: PathBuf },
}

impl TokenError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            TokenError::Write { .. } => code::TOKEN_NOT_WRITTEN,
            TokenError::Read { .. } | TokenError::Damaged { .. } => code::TOKEN_UNREADABLE,
        }
    }
}

impl ControlFile {
    /// Its name in the data folder.
    pub const NAME: &str = "control.json";

    /// Replaces what an earlier engine left. Readable by this user alone from its first byte on.
    pub fn write(&self, data_dir: &Path) -> Result<(), TokenError> {
        let path = data_dir.join(Self::NAME);
        let temporary = data_dir.join(format!("{}.{}", Self::NAME, std::process::id()));
        let written = self.write_new(&temporary).and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|source| {
            let _ = fs::remove_file(&temporary);
            TokenError::Write { path, source }
        })
    }

    fn write_new(&self, path: &Path) -> io::Result<()> {
        // What a dead process of the same number left is not written into: its mode is unknown.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()
    }

    /// Reads what the running engine wrote, or the last one that ran.
    pub fn read(data_dir: &Path) -> Result<ControlFile, TokenError> {
        let path = data_dir.join(Self::NAME);
        let bytes = fs::read(&path).map_err(|source| TokenError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&bytes).map_err(|_| TokenError::Damaged { path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_file_is_private_and_replaced_at_each_start() {
        let dir = tempfile::tempdir().unwrap();
        let mut last = None;
        for port in [1, 2] {
            let file = ControlFile { address: ([127, 0, 0, 1], port).into(), token: Token::random() };
            file.write(dir.path()).unwrap();
            assert_eq!(ControlFile::read(dir.path()).unwrap(), file);
            assert_ne!(last.replace(file.token.clone()), Some(file.token));
        }
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(dir.path().join(ControlFile::NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_the_whole_token_matches() {
        let token = Token::random();
        assert!(token.matches(token.reveal().as_bytes()));
        assert!(!token.matches(&token.reveal().as_bytes()[..63]));
        assert!(!token.matches(b""));
        assert!(!token.matches(Token::random().reveal().as_bytes()));
        assert!(!format!("{token:?}").contains(token.reveal()));
    }
}
