//! The drivers of sources: what stands between a listener, a source plugin and the engine.
//!
//! A driver accepts, reads, hands bytes to a codec, what the codec found to the intake, and
//! what became of it back to the codec, whose answer it writes. It must not know a protocol,
//! WebAssembly or SQL: codec and intake are the traits of [`ports`], which [`adapters`]
//! implements for the real ones.

pub mod adapters;
mod backoff;
mod budget;
mod connection;
mod counters;
mod driver;
mod flight;
mod frame;
pub mod http;
mod items;
pub mod poll;
mod reading;
mod refusals;
mod settings;

pub mod ports;

pub use budget::Budget;
pub use counters::{Closed, Counters, SourceStatus};
pub use driver::{Driver, DriverHandle};
pub use refusals::Refusal;
pub use settings::SourceLimits;
