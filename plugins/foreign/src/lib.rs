//! A component of `wasi:http` that knows nothing of Portway: no SDK, no manifest. For the tests.
//!
//! The path says what it does, well or badly. Never shipped; `cargo xtask plugins --test` builds it.

#[cfg(target_family = "wasm")]
mod component;
#[cfg(target_family = "wasm")]
mod deeds;
