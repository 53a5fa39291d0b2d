//! What Portway plugins in Rust are built on.
//!
//! A plugin implements one trait ([`Transform`], [`StreamSource`], [`PollSource`],
//! [`HttpSource`], [`Sender`] or [`HttpSender`]) for a type of its own and names that type in the macro of its kind
//! ([`export_transform!`] and so on). All types here are plain Rust and exist natively
//! too, so `cargo test` runs a plugin's logic without any WebAssembly; the services of
//! the host have stand-ins there, which [`testing`] sets up and reads.
//!
//! This crate knows the contract in `wit/` and nothing of the host's own crates. It is
//! the only one that depends on `wit-bindgen`, and only when built for WebAssembly.

mod attributes;
mod body;
mod digest;
mod duration;
mod http_sender;
mod http_source;
mod key;
mod message;
mod poll_source;
mod problem;
mod sender;
mod services;
mod settings;
mod source;
mod stream_source;
mod template;
mod transform;
mod url;

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod glue;
#[cfg(target_family = "wasm")]
#[path = "host/wasm.rs"]
mod host;
#[cfg(not(target_family = "wasm"))]
#[path = "host/native.rs"]
mod host;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use attributes::Attributes;
pub use body::{Body, BodyReader, BodyWriter, INLINE_BYTES_MAX};
pub use digest::fnv1a;
pub use duration::duration;
pub use http_sender::{
    Ask, HttpError, HttpReply, HttpSender, Plan, Request, RequestContent, Response, judge_each, prepare_each,
};
pub use http_source::{Accepted, Decision, HttpAnswer, HttpRequest, HttpSource};
pub use key::{KEY_BYTES_MAX, key_of};
pub use message::{Call, Context, Deadline, Message};
pub use poll_source::{Found, PollSource, Query};
pub use problem::{Failure, Later, Problem, ResultExt, Trouble};
pub use sender::{Answer, SendVerdict, Sender, send_each};
pub use services::{blobs, clock, connect, files, http, log, progress, secrets, state, text};
pub use settings::{NoSettings, parse_settings};
pub use source::{Content, Draft, Fate, Item, Receipt, Refusal, Span};
pub use stream_source::{Codec, FinishReason, Step, StreamReply, StreamSource};
pub use template::{Missing, Template, TemplateError};
pub use transform::{Output, Transform, TransformVerdict, transform_each};

/// What the macro of each kind expands to: the generated glue.
#[cfg(target_family = "wasm")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($kind:ident, $interface:ident, $plugin:ty) => {
        const _: () = {
            type PortwayPlugin = $crate::glue::$kind::Plugin<$plugin>;
    $crate::glue::$kind::bindings::export!(PortwayPlugin with_types_in $crate::glue::$kind::bindings);
        };
    };
}

/// What the macro of each kind expands to natively: a check that the type is one.
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($kind:ident, $interface:ident, $plugin:ty) => {
        const _: () = {
            const fn implements<T: $crate::$interface>() {}
            implements::<$plugin>();
        };
    };
}

/// The README's example is compiled and run.
#[cfg(all(doctest, not(target_family = "wasm")))]
#[doc = include_str!("../README.md")]
mod readme {}
