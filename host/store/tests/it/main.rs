//! Tests of the in-memory store.

mod conformance;
mod faults;
