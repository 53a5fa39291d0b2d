//! Between the words of the model and those of the WIT packages.
//!
//! What comes from a guest is checked here: every limit the types cannot say. An `Err` is a
//! sentence about how the guest broke the contract.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use portway_bindings::portway::host::blobs::{Blob, Body};
use portway_bindings::portway::plugin::types as wit;
use portway_model::attributes::{HOST_PREFIX, NAME_BYTES_MAX, PAIRS_MAX, VALUE_BYTES_MAX};
use portway_model::{Attributes, Failure, Key, Later, Trouble};
use wasmtime::component::Resource;

use crate::guest::{Guest, PluginFacts};
use crate::opening::Opening;
use crate::things::Things;

/// Bodies up to this are handed over inline.
pub(crate) const INLINE_BYTES_MAX: usize = 256 << 10;
/// Bytes of inline bodies in one call; what is over is handed over as blobs.
pub(crate) const BATCH_INLINE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a ticket.
pub(crate) const TICKET_BYTES_MAX: usize = 4096;
/// Every u32 of the contract is below this: JavaScript's integers are not all of them.
const U32_END: u32 = 1 << 31;
/// Every u64 of the contract is below this: the first integer a double does not hold.
const U64_END: u64 = 1 << 53;

/// How a guest broke the contract.
pub(crate) type Lie = String;

/// What a plugin is opened for.
pub(crate) fn context_of(opening: &Opening) -> wit::Context {
    wit::Context {
        origin: opening.origin.clone(),
        destination: opening.destination.clone(),
        settings: opening.settings.clone(),
        attributes: opening.attributes.pairs().to_vec(),
    }
}

/// Bytes on their way in.
pub(crate) fn body_of(things: &mut Things, bytes: &Bytes) -> Body {
    body_within(things, bytes, &mut { INLINE_BYTES_MAX })
}

/// The same for one of several bodies, which together have so much left for inline ones.
pub(crate) fn body_within(things: &mut Things, bytes: &Bytes, inline_left: &mut usize) -> Body {
    if bytes.len() <= INLINE_BYTES_MAX.min(*inline_left) {
        *inline_left -= bytes.len();
        return Body::Inline(bytes.to_vec());
    }
    Body::Blob(Resource::new_own(things.add_blob(bytes.clone())))
}

/// Bytes a guest gave.
pub(crate) fn body_in(guest: &mut Guest, body: Body) -> Result<Bytes, Lie> {
    match body {
        Body::Inline(bytes) => Ok(bytes.into()),
        Body::Blob(blob) => blob_in(guest, &blob),
    }
}

/// A blob a guest gave.
pub(crate) fn blob_in(guest: &mut Guest, blob: &Resource<Blob>) -> Result<Bytes, Lie> {
    guest.things.take_blob(blob.rep()).ok_or_else(|| "a blob whose call has returned".into())
}

/// A guest's failure; texts beyond their limits are cut, which harms nobody.
pub(crate) fn failure_in(failure: wit::Failure) -> Failure {
    Failure::new(failure.code, failure.text)
}

pub(crate) fn later_in(later: wit::Later) -> Result<Later, Lie> {
    if later.after_ms.is_some_and(|ms| ms >= U32_END) {
        return Err("`after-ms` of 2^31 or more".into());
    }
    Ok(Later { failure: failure_in(later.failure), after_ms: later.after_ms })
}

pub(crate) fn trouble_in(trouble: wit::Trouble) -> Result<Trouble, Lie> {
    Ok(match trouble {
        wit::Trouble::Unavailable(later) => Trouble::Unavailable(later_in(later)?),
        wit::Trouble::Misconfigured(failure) => Trouble::Misconfigured(failure_in(failure)),
    })
}

/// A key; an empty one is none.
pub(crate) fn key_in(key: Option<String>, what: &str) -> Result<Option<Key>, Lie> {
    match key {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => match Key::new(&text) {
            Some(key) => Ok(Some(key)),
            None => Err(format!("{what} of {} bytes, at most {} are allowed", text.len(), Key::BYTES_MAX)),
        },
    }
}

/// Attributes; the host's own names are dropped and counted.
pub(crate) fn attributes_in(
    facts: &PluginFacts,
    mut pairs: Vec<(String, String)>,
) -> Result<Attributes, Lie> {
    let given = pairs.len();
    pairs.retain(|(name, _)| !name.starts_with(HOST_PREFIX));
    if pairs.len() < given {
        facts.dropped_attributes.fetch_add((given - pairs.len()) as u64, Ordering::Relaxed);
    }
    Attributes::new(pairs).map_err(|error| match error {
        portway_model::attributes::AttributesError::TooMany(pairs) => {
            format!("{pairs} attributes, at most {PAIRS_MAX} are allowed")
        }
        portway_model::attributes::AttributesError::Name(name) => {
            format!("attribute name `{name}` is not 1 to {NAME_BYTES_MAX} bytes of lower-case ASCII")
        }
        portway_model::attributes::AttributesError::Value(name) => {
            format!("value of attribute `{name}` is longer than {VALUE_BYTES_MAX} bytes")
        }
        portway_model::attributes::AttributesError::Stored => "attributes that cannot be read".into(),
    })
}

pub(crate) fn ticket_in(ticket: Vec<u8>) -> Result<Bytes, Lie> {
    if ticket.len() > TICKET_BYTES_MAX {
        return Err(format!("a ticket of {} bytes, at most {TICKET_BYTES_MAX} are allowed", ticket.len()));
    }
    Ok(ticket.into())
}

/// A number that must be below 2^53.
pub(crate) fn number_in(number: u64, what: &str) -> Result<u64, Lie> {
    if number >= U64_END {
        return Err(format!("`{what}` of 2^53 or more"));
    }
    Ok(number)
}

/// A number that must be below 2^31.
pub(crate) fn small_number_in(number: u32, what: &str) -> Result<u32, Lie> {
    if number >= U32_END {
        return Err(format!("`{what}` of 2^31 or more"));
    }
    Ok(number)
}

/// What is left until a moment, for a guest.
pub(crate) fn millis_until(deadline: tokio::time::Instant) -> u32 {
    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
    u32::try_from(left.as_millis()).unwrap_or(U32_END - 1).min(U32_END - 1)
}

/// One verdict a message, no more and no less.
pub(crate) fn check_count(what: &str, got: usize, wanted: usize) -> Result<(), Lie> {
    if got == wanted { Ok(()) } else { Err(format!("{got} {what} for {wanted}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_beyond_their_limits_are_a_lie_and_the_hosts_are_dropped() {
        let facts = PluginFacts::for_test();
        let given = |name: &str, value: String| attributes_in(&facts, vec![(name.to_owned(), value)]);
        assert!(given("Upper", String::new()).unwrap_err().contains("lower-case"));
        assert!(given("", String::new()).is_err());
        assert!(given("a", "x".repeat(VALUE_BYTES_MAX + 1)).unwrap_err().contains("longer than"));
        assert!(attributes_in(&facts, vec![("a".into(), String::new()); PAIRS_MAX + 1]).is_err());
        assert_eq!(given("portway.source", "forged".into()).map(|kept| kept.pairs().len()), Ok(0));
        assert_eq!(facts.dropped_attributes.load(Ordering::Relaxed), 1);
        assert_eq!(given("type", "ORU".into()).map(|kept| kept.pairs().len()), Ok(1));
    }

    #[test]
    fn keys_tickets_and_numbers_have_their_limits() {
        assert_eq!(key_in(Some(String::new()), "a key"), Ok(None));
        assert!(key_in(Some("k".repeat(257)), "a key").unwrap_err().contains("257 bytes"));
        assert!(ticket_in(vec![0; TICKET_BYTES_MAX]).is_ok());
        assert!(ticket_in(vec![0; TICKET_BYTES_MAX + 1]).is_err());
        assert_eq!(number_in(U64_END - 1, "occurred-ms"), Ok(U64_END - 1));
        assert!(number_in(U64_END, "occurred-ms").unwrap_err().contains("2^53"));
        assert!(small_number_in(U32_END, "timeout-ms").unwrap_err().contains("2^31"));
        assert!(check_count("verdicts", 2, 3).is_err());
    }
}
