//! The runtime with real components: the hostile ones that `cargo xtask plugins --test` makes,
//! and the first-party ones of `cargo xtask plugins`.

mod cache;
mod faults;
mod http;
mod instances;
mod lies;
mod loading;
mod senders;
mod sources;
mod support;
