//! `secrets`: granted secrets by slot, to read or to sign with.
//!
//! A use is told to the observer before it happens, and one that cannot be written down does not
//! happen. What was asked for and is not granted is a notice: somebody should look at that plugin.

use hmac::{Hmac, Mac};
use portway_bindings::portway::host::secrets::Error;
use portway_model::code;
use sha2::Sha256;
use wasmtime::component::Linker;

use super::{SYSTEM, WORK, define_waiting};
use crate::fault_text::{Lines, cut, escape};
use crate::guest::Guest;
use crate::secret::{SecretAction, SecretUse, SecretValue};

/// Bytes of a name that a notice repeats.
const NAME_BYTES_MAX: usize = 64;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut secrets = linker.instance("portway:host/secrets@0.1.0")?;
    define_waiting(
        &mut secrets,
        "reveal",
        SYSTEM,
        |_| 0,
        |guest, (name,): (String,)| {
            Box::pin(async move {
                let granted = take(guest, &name, SecretAction::Reveal).await;
                Ok((granted.map(|value| value.bytes().to_vec()),))
            })
        },
    )?;
    define_waiting(
        &mut secrets,
        "hmac-sha256",
        WORK,
        |(_, data): &(String, Vec<u8>)| data.len(),
        |guest, (name, data)| {
            Box::pin(async move {
                let granted = take(guest, &name, SecretAction::Sign).await;
                Ok((granted.and_then(|key| sign(&key, &data)),))
            })
        },
    )
}

/// The granted secret, once its use is counted and, where it has to be, written down.
async fn take(guest: &mut Guest, slot: &str, action: SecretAction) -> Result<SecretValue, Error> {
    let granted = guest.reach.secrets.get(slot).filter(|grant| grant.action == action);
    let Some(grant) = granted.cloned() else {
        let slot = escape(cut(slot, NAME_BYTES_MAX), Lines::One);
        let text = format!("asked to {} the secret of slot `{slot}`, which is not granted", action.as_str());
        guest.call.observer.notice(code::SECRET_DENIED, &text);
        return Err(Error::Denied);
    };
    let used = SecretUse { secret: &grant.name, action, digest: &guest.facts.digest };
    let recording = guest.call.observer.secret(used);
    if let Some(recording) = recording {
        let recorded = guest.serve(tokio::task::spawn_blocking(recording)).await;
        recorded.map_err(|lost| lost.to_string()).flatten().map_err(Error::Unavailable)?;
    }
    Ok(grant.value)
}

fn sign(key: &SecretValue, data: &[u8]) -> Result<Vec<u8>, Error> {
    let signer = Hmac::<Sha256>::new_from_slice(key.bytes());
    let mut signer = signer.map_err(|error| Error::Other(error.to_string()))?;
    signer.update(data);
    Ok(signer.finalize().into_bytes().to_vec())
}
