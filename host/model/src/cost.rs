//! What a plugin used for something: fuel, and time.

use std::ops::{Add, AddAssign};
use std::time::Duration;

/// See the file. Zero where nobody measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub fuel: u64,
    /// Wall time, with what it waited for.
    pub time: Duration,
}

impl Cost {
    /// An even share of it.
    #[must_use]
    pub fn share(self, of: usize) -> Cost {
        let of = u32::try_from(of).unwrap_or(u32::MAX).max(1);
        Cost { fuel: self.fuel / u64::from(of), time: self.time / of }
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost { fuel: self.fuel.saturating_add(other.fuel), time: self.time.saturating_add(other.time) }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}
