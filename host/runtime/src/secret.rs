//! Secrets that are granted to a plugin, and what is told of their use.
//!
//! Where values come from is the caller's business; who writes uses down is the observer.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// One granted secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// What the project calls it: its uses are recorded under this name.
    pub name: String,
    pub value: SecretValue,
    pub action: SecretAction,
}

/// What a plugin may do with a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretAction {
    /// Read its value.
    Reveal,
    /// Have the host sign with it.
    Sign,
}

/// The bytes of a secret: never shown, one copy however often it is granted, overwritten when the
/// last grant is gone.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Arc<Zeroizing<Vec<u8>>>);

/// One use of a granted secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretUse<'a> {
    pub secret: &'a str,
    pub action: SecretAction,
    /// SHA-256 of the component that uses it, in hex.
    pub digest: &'a str,
}

/// Writes a use down; an error keeps the secret from being used.
pub type Recording = Box<dyn FnOnce() -> Result<(), String> + Send>;

impl SecretAction {
    /// As a manifest, a project and a record call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            SecretAction::Reveal => "reveal",
            SecretAction::Sign => "sign",
        }
    }
}

impl SecretValue {
    pub fn new(bytes: Zeroizing<Vec<u8>>) -> SecretValue {
        SecretValue(Arc::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value() {
        let value = SecretValue::new(Zeroizing::new(b"hunter2".to_vec()));
        let grant = SecretGrant { name: "TOKEN".into(), value, action: SecretAction::Sign };
        let shown = format!("{grant:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
        assert!(!shown.contains("104, 117"), "{shown}");
    }
}
