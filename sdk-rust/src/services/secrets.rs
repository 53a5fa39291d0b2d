//! Granted secrets by slot. Most plugins need none: the host attaches credentials.
//!
//! Each use is counted, and recorded before the plugin has its answer. A value belongs into no
//! log line, answer or message.

use crate::host;

/// Why a secret could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not granted, or not for this.
    Denied,
    NotFound,
    /// Its use could not be recorded.
    Unavailable(String),
    Other(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Denied => f.write_str("the secret is not granted for this"),
            Error::NotFound => f.write_str("there is no such secret"),
            Error::Unavailable(text) => write!(f, "the secret cannot be used now: {text}"),
            Error::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// The value; needs a grant of the type `reveal`.
pub fn reveal(slot: &str) -> Result<Vec<u8>, Error> {
    host::secrets_reveal(slot)
}

/// A signature made in the host, 32 bytes; needs a grant of the type `sign`.
pub fn hmac_sha256(slot: &str, data: &[u8]) -> Result<Vec<u8>, Error> {
    host::secrets_hmac_sha256(slot, data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn natively_a_secret_is_what_a_test_granted_for_that_use_alone() {
        testing::reset();
        assert_eq!(reveal("pass"), Err(Error::Denied));
        testing::grant_reveal("pass", "hunter2");
        testing::grant_sign("key", "key");
        assert_eq!(reveal("pass"), Ok(b"hunter2".to_vec()));
        assert_eq!(reveal("key"), Err(Error::Denied));
        assert_eq!(hmac_sha256("pass", b"hello"), Err(Error::Denied));
        let signed: String =
            hmac_sha256("key", b"hello").unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        // printf 'hello' | openssl dgst -sha256 -hmac key
        assert_eq!(signed, "9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b");
        testing::fail_secrets(Error::Unavailable("full".into()));
        assert_eq!(reveal("pass"), Err(Error::Unavailable("full".into())));
        assert_eq!(reveal("pass"), Ok(b"hunter2".to_vec()));
    }
}
