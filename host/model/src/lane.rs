//! Lanes: the unit of order inside a destination.
//!
//! A lane is stored with the delivery and never configurable: the mapping from key
//! to lane must be the same for ever, on every machine.

use serde::{Deserialize, Serialize};

use crate::Key;

/// How a destination orders its deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One lane.
    Strict,
    /// A lane for each hash of the key; no key, one lane.
    #[default]
    Key,
    /// Each delivery stands alone.
    None,
}

/// 0 to 1,023: ordered lanes. 1,024: deliveries that stand alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lane(u16);

impl Lane {
    /// Number of ordered lanes.
    pub const ORDERED: u16 = 1024;
    /// Deliveries without order: those of `order = "none"`, and resent ones.
    pub const APART: Lane = Lane(Lane::ORDERED);
    /// The lane of a message without a key, and the only one of `order = "strict"`.
    pub const FIRST: Lane = Lane(0);

    /// From what is stored.
    pub fn from_number(number: u16) -> Option<Lane> {
        (number <= Lane::ORDERED).then_some(Lane(number))
    }

    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether its deliveries go one after another.
    pub const fn is_ordered(self) -> bool {
        self.0 < Lane::ORDERED
    }

    /// The lane of a message with this key at a destination with this order.
    pub fn of(order: Order, key: Option<&Key>) -> Lane {
        match (order, key) {
            (Order::None, _) => Lane::APART,
            (Order::Strict, _) | (Order::Key, None) => Lane::FIRST,
            (Order::Key, Some(key)) => {
                Lane((fnv1a(key.as_str().as_bytes()) % u64::from(Lane::ORDERED)) as u16)
            }
        }
    }
}

/// FNV-1a, 64 bit, its high half folded in: simple, fast on short keys, and fixed for ever.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash ^= u64::from(*byte);
        hash = hash.wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(key: &str) -> u16 {
        Lane::of(Order::Key, Key::new(key).as_ref()).number()
    }

    /// These numbers are stored in every database: a change here is a broken promise.
    #[test]
    fn a_key_has_the_same_lane_for_ever() {
        assert_eq!([lane("P1"), lane("P2"), lane("patient-4711"), lane("é")], KNOWN);
    }
    // Worked out by a second program.
    const KNOWN: [u16; 4] = [925, 224, 406, 262];

    #[test]
    fn keys_spread_over_all_lanes() {
        let mut seen = vec![0_u32; usize::from(Lane::ORDERED)];
        for n in 0..65_536 {
            seen[usize::from(lane(&format!("PID{n:07}")))] += 1;
        }
        assert!(seen.iter().all(|&count| (20..140).contains(&count)), "{seen:?}");
    }

    #[test]
    fn order_decides_whether_a_key_counts() {
        let key = Key::new("a");
        assert_eq!(Lane::of(Order::Strict, key.as_ref()), Lane::FIRST);
        assert_eq!(Lane::of(Order::Key, None), Lane::FIRST);
        assert_eq!(Lane::of(Order::None, key.as_ref()), Lane::APART);
        assert!(!Lane::APART.is_ordered());
    }
}
