//! The engine: committer, dispatcher, completer, recovery.
//!
//! It must not know SQL, WebAssembly or sockets: storage is the port of `store`,
//! delivery and time are the traits of [`ports`].

pub mod ports;
pub mod settings;
