//! Secrets on the stage: granted by a test, by slot.

use crate::secrets::Error;
use crate::testing::with_stage;

/// What a slot is granted.
#[derive(Clone, Debug)]
pub(crate) enum StagedSecret {
    Reveal(Vec<u8>),
    Sign(Vec<u8>),
}

/// Grants a secret to be read.
pub fn grant_reveal(slot: &str, value: impl AsRef<[u8]>) {
    let secret = StagedSecret::Reveal(value.as_ref().to_vec());
    with_stage(|stage| stage.secrets.insert(slot.to_owned(), secret));
}

/// Grants a key to sign with.
pub fn grant_sign(slot: &str, key: impl AsRef<[u8]>) {
    let secret = StagedSecret::Sign(key.as_ref().to_vec());
    with_stage(|stage| stage.secrets.insert(slot.to_owned(), secret));
}

/// The next use of a secret fails.
pub fn fail_secrets(error: Error) {
    with_stage(|stage| stage.secret_failures.push_back(error));
}
