//! Tests of the store on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod beside;
mod clock;
mod conformance;
mod documented;
mod engines;
mod errors;
mod failover;
mod harness;
mod heads;
mod housekeeping;
mod opening;
mod outage;
mod ownership;
mod plans;
mod plans_kept;
mod proxies;
mod retention;
mod seen;
mod stress;
mod texts;
mod tls;
mod together;
mod upgrade;
