//! Tests of the store on SQLite.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod bodies;
mod conformance;
mod crash;
mod documented;
mod full;
mod harness;
mod housekeeping;
mod opening;
mod plans;
mod retention;
mod search;
mod upgrade;
