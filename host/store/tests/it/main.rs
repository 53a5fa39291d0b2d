//! Tests of the in-memory store.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod conformance;
mod faults;
