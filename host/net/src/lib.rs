//! Everything that touches the world outside the process: listeners, TLS, outbound TCP and
//! HTTP with address checks, and granted folders.
//!
//! It must not know plugins, the engine or the store: it is handed grants and settings and
//! enforces them. What a plugin may ask for is decided above; that nothing beyond the grant
//! is reached is decided here.

mod address;
mod dial;
mod stream;
mod tls;

pub mod certificate;
pub mod folder;
pub mod http;
pub mod listen;
pub mod tcp;

pub use address::{AddressPolicy, AddressRefused};
