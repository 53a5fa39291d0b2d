//! Tests of the store on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod conformance;
mod harness;
mod outage;
