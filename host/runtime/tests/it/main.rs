//! The runtime with real components: the hostile ones that `cargo xtask plugins --test` makes,
//! and the first-party ones of `cargo xtask plugins`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ask;
mod cache;
mod faults;
mod http;
mod instances;
mod lies;
mod loading;
mod mllp;
mod replay;
mod respond;
mod secrets;
mod senders;
mod server;
mod smtp;
mod smtp_server;
mod sources;
mod state;
mod support;
mod tls;
