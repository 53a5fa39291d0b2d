//! Which traces are recorded: decided by the trace's id alone, so that everybody who sees a part of
//! it comes to the same.

use crate::TraceId;

/// The part of all traces that is recorded, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// Every trace.
    pub const ALL: Share = Share(Share::WHOLE);
    const WHOLE: u32 = 1_000_000;

    /// More than all is all.
    pub fn of_million(parts: u32) -> Share {
        Share(parts.min(Share::WHOLE))
    }

    /// Whether it takes this trace. The last seven bytes of an id are random by the standard.
    pub fn takes(self, trace: &TraceId) -> bool {
        let random = trace.0.iter().skip(9).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let above = u64::from(Share::WHOLE - self.0);
        // Rounded so that nothing is taken of nothing, and all of all.
        u128::from(random) * u128::from(Share::WHOLE) >= u128::from(above) << 56
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_is_taken_on_average() {
        for (parts, least, most) in [(0, 0, 0), (100_000, 850, 1_150), (1_000_000, 10_000, 10_000)] {
            let share = Share::of_million(parts);
            let taken = (0..10_000).filter(|_| share.takes(&TraceId::random())).count();
            assert!((least..=most).contains(&taken), "{parts}: {taken}");
        }
    }

    #[test]
    fn what_a_small_share_takes_a_larger_one_takes_too() {
        let (small, large) = (Share::of_million(10_000), Share::of_million(300_000));
        let mut ids = (0..50_000).map(|_| TraceId::random());
        assert!(ids.all(|id| !small.takes(&id) || large.takes(&id)));
    }
}
