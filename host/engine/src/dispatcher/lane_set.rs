//! A set of ordered lanes in 128 bytes.

use portway_model::Lane;

const WORDS: usize = Lane::ORDERED as usize / 64;

/// See the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneSet {
    words: [u64; WORDS],
}

impl LaneSet {
    pub fn insert(&mut self, lane: Lane) {
        if let Some((word, bit)) = self.place(lane) {
            *word |= bit;
        }
    }

    /// Takes it out; says whether it was in.
    pub fn remove(&mut self, lane: Lane) -> bool {
        let Some((word, bit)) = self.place(lane) else { return false };
        let was_in = *word & bit != 0;
        *word &= !bit;
        was_in
    }

    pub fn contains(&self, lane: Lane) -> bool {
        let number = usize::from(lane.number());
        self.words.get(number / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// The first lane from `from` on, else the first of all.
    pub fn next_from(&self, from: u16) -> Option<Lane> {
        let found = |range: std::ops::Range<u16>| {
            let mut number = range.start;
            while number < range.end {
                let word = self.words.get(usize::from(number / 64))? >> (number % 64);
                if word != 0 {
                    let lane = number + u16::try_from(word.trailing_zeros()).ok()?;
                    return (lane < range.end).then(|| Lane::from_number(lane)).flatten();
                }
                number = (number / 64 + 1) * 64;
            }
            None
        };
        found(from..Lane::ORDERED).or_else(|| found(0..from.min(Lane::ORDERED)))
    }

    fn place(&mut self, lane: Lane) -> Option<(&mut u64, u64)> {
        let number = usize::from(lane.number());
        let word = self.words.get_mut(number / 64)?;
        Some((word, 1 << (number % 64)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_lane_apart_is_never_in_it() {
        let mut set = LaneSet::default();
        set.insert(Lane::APART);
        assert!(set.next_from(0).is_none() && !set.contains(Lane::APART) && !set.remove(Lane::APART));
    }

    proptest! {
        #[test]
        fn it_is_a_set_and_next_goes_round(lanes in prop::collection::btree_set(0_u16..1024, 0..20), from in 0_u16..1025) {
            let mut set = LaneSet::default();
            lanes.iter().for_each(|lane| set.insert(Lane::from_number(*lane).unwrap()));
            let expected = lanes.range(from..).next().or_else(|| lanes.first()).copied();
            prop_assert_eq!(set.next_from(from).map(Lane::number), expected);
            let found: BTreeSet<u16> = (0..1024).filter(|n| set.contains(Lane::from_number(*n).unwrap())).collect();
            prop_assert_eq!(&found, &lanes);
            for lane in lanes {
                prop_assert!(set.remove(Lane::from_number(lane).unwrap()));
            }
            prop_assert!(set.next_from(0).is_none());
        }
    }
}
