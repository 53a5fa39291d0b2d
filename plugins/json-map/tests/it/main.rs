//! Runs the transform on messages from files, and on whatever somebody writes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod cases;
mod documents;
