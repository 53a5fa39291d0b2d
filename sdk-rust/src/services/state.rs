//! Small values that this use of the plugin keeps for its destination; needs a grant of the type
//! `state`.
//!
//! What is put or deleted belongs to the message at hand and is stored with its outcome: if it was
//! sent or filtered, and not if it is retried, quarantined or not tried. In order, a message sees
//! what the messages before it wrote.

use crate::host;

/// Why a key could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    Denied,
    /// A key, a value or the number of either is above its limit.
    QuotaExceeded,
    Unavailable(String),
    Other(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Denied => f.write_str("no state is granted"),
            Error::QuotaExceeded => f.write_str("more than may be kept"),
            Error::Unavailable(text) => write!(f, "the state cannot be reached: {text}"),
            Error::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// None: there is no such key.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    host::state_get(key)
}

/// Keys have 1 to 256 bytes and no zero byte, values at most 64 KiB.
pub fn put(key: &str, value: &[u8]) -> Result<(), Error> {
    host::state_put(key, value)
}

/// Fine where there is none.
pub fn delete(key: &str) -> Result<(), Error> {
    host::state_delete(key)
}

/// Keys in byte order, after `after`; at most 1,000.
pub fn scan(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, Error> {
    host::state_scan(prefix, after, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn natively_state_is_what_a_test_granted_within_the_hosts_limits() {
        testing::reset();
        assert_eq!(get("a"), Err(Error::Denied));
        testing::grant_state([("a", "1")]);
        assert_eq!(get("a"), Ok(Some(b"1".to_vec())));
        put("b", b"2").unwrap();
        put("c", b"3").unwrap();
        delete("a").unwrap();
        assert_eq!(scan("", None, 10).unwrap(), ["b", "c"]);
        assert_eq!(scan("", Some("b"), 1).unwrap(), ["c"]);
        assert_eq!(testing::state("b"), Some(b"2".to_vec()));
        assert_eq!(put(&"k".repeat(257), b""), Err(Error::QuotaExceeded));
        assert_eq!(put("v", &[0; (64 << 10) + 1]), Err(Error::QuotaExceeded));
        assert!(matches!(put("", b""), Err(Error::Other(_))));
        testing::fail_state(Error::Unavailable("away".into()));
        assert_eq!(get("b"), Err(Error::Unavailable("away".into())));
        assert_eq!(get("b"), Ok(Some(b"2".to_vec())));
    }
}
