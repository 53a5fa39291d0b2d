//! From the generated types to the SDK's own, one module a kind. WebAssembly only.
//!
//! Fields are moved, never copied: what this costs is a walk over the messages of a call.

pub mod convert;
pub mod http;
pub mod http_sender;
pub mod http_source;
pub mod poll_source;
pub mod sender;
pub mod services;
pub mod source;
pub mod stream_source;
pub mod transform;
