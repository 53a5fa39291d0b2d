//! The transform on the stage of the SDK: what it asks, and what it makes of the answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod cases;
