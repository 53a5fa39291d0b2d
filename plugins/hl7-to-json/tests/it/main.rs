//! Runs the transform on messages from files, and on what a random sender makes of delimiters.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must stop")]

mod cases;
mod structure;
