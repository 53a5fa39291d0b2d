//! Draining: nothing new is taken, and what was accepted is delivered as far as it can be.
//!
//! When that is so, is decided by the core; it can be taken back, and ends with the process.

use portway_model::{Failure, Timestamp, code};

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainOrder {
    Begin {
        /// Who asked.
        author: String,
        then: AfterDrain,
    },
    Cancel,
}

/// What follows when everything that can be delivered is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDrain {
    Stay,
    /// The process stops in order.
    Stop,
}

/// A drain, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainStatus {
    pub since: Timestamp,
    /// Who asked.
    pub author: String,
    pub then: AfterDrain,
    /// Nothing more can be delivered now: what is left waits for a time or for a person.
    pub is_quiet: bool,
}

impl DrainStatus {
    /// Why no message is taken.
    pub(crate) fn why(&self) -> Failure {
        Failure::new(code::DRAINING, format!("the engine drains, as {} asked", self.author))
    }
}
