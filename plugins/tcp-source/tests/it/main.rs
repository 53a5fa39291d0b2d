//! Runs the codec as a host does: cases from files, streams in every split, restarts at every byte.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must stop")]

mod cases;
mod limits;
mod peer;
mod splits;
