//! The file sender on a stage: its cases, and what goes wrong between append and sync.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod cases;
mod faults;
