//! Many (message, destination) pairs as one bound value.
//!
//! A pair is one number of a JSON array: the message, counted from the lowest of them, above the
//! 32 bits of the destination. SQL takes it apart with
//! `SELECT ? + (value >> 32), value & 4294967295 FROM json_each(?)`.

use portway_model::{DestinationId, MessageId};

use crate::number::stored;
use crate::script::IntArray;

/// Messages may lie this far apart in one array.
const SPAN_MAX: i64 = 1 << 31;

/// Pairs whose messages are close enough to each other.
pub(crate) struct Pairs {
    /// The lowest message.
    pub(crate) first: i64,
    pub(crate) json: String,
}

impl Pairs {
    /// In as many arrays as are needed: one, but for messages billions apart.
    pub(crate) fn of(pairs: impl Iterator<Item = (MessageId, DestinationId)>) -> Vec<Pairs> {
        let mut rest: Vec<(i64, i64)> =
            pairs.map(|(message, destination)| (stored(message.0), i64::from(destination.0))).collect();
        let mut arrays = Vec::new();
        while let Some(first) = rest.iter().map(|(message, _)| *message).min() {
            let (near, far): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|(message, _)| message - first < SPAN_MAX);
            let packed =
                near.into_iter().map(|(message, destination)| ((message - first) << 32) | destination);
            arrays.push(Pairs { first, json: packed.collect::<IntArray>().into_json() });
            rest = far;
        }
        arrays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(pairs: &[(u64, u32)]) -> Vec<(i64, String)> {
        let pairs =
            pairs.iter().map(|(message, destination)| (MessageId(*message), DestinationId(*destination)));
        Pairs::of(pairs).into_iter().map(|pairs| (pairs.first, pairs.json)).collect()
    }

    #[test]
    fn pairs_are_counted_from_the_lowest_message() {
        assert_eq!(arrays(&[(7, 2), (5, u32::MAX)]), [(5, format!("[{},{}]", (2_i64 << 32) | 2, u32::MAX))]);
        assert!(arrays(&[]).is_empty());
    }

    #[test]
    fn messages_far_apart_need_two_arrays() {
        assert_eq!(arrays(&[(1, 1), (1 << 40, 1)]).len(), 2);
    }
}
