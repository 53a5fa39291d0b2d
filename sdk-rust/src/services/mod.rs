//! The host's services, each a module; natively each has a stand-in (see
//! [`testing`](../testing/index.html)).

pub mod blobs;
pub mod clock;
pub mod connect;
pub mod files;
pub mod http;
pub mod log;
pub mod progress;
pub mod secrets;
pub mod state;
pub mod text;
