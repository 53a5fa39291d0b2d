//! When something is to be looked at again. A timer that is no longer needed fires and finds nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use portway_model::Lane;

use crate::layout::Place;

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A lane that waits for its retry.
    Lane(Place, Lane),
    /// Deliveries apart that wait for their time.
    Due(Place),
    /// A destination whose rate is used up.
    Rate(Place),
    /// A destination that is away.
    Destination(Place),
}

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Duration, Timer)>>,
}

impl Timers {
    pub fn set(&mut self, at: Duration, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    pub fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub fn pop_due(&mut self, monotonic: Duration) -> Option<Timer> {
        self.next().filter(|at| *at <= monotonic)?;
        self.heap.pop().map(|Reverse((_, timer))| timer)
    }
}
