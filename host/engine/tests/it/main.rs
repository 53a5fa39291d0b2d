//! The engine as a whole: its shell on a paused clock, the store in memory, a receiver that does
//! what bodies tell it.

mod delivery;
mod house;
mod intake;
mod lanes;
