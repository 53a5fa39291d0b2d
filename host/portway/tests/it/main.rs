//! The binary's parts over real sockets and files.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bench;
mod commands;
mod docs;
mod e2e;
mod guides;
mod traffic;
