//! The engine as a whole: its shell on a paused clock, the store in memory, a receiver that does
//! what bodies tell it.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod delivery;
mod house;
mod intake;
mod lanes;
mod layout;
mod ownership;
mod rate;
mod retention;
mod steps;
