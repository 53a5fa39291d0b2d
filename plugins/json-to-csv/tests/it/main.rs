//! Runs the transform on messages from files, and on whatever values somebody writes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must stop")]

mod cases;
mod tables;
