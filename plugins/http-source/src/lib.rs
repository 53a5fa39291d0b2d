//! The HTTP source: requests become messages, and are answered once these are stored.
//!
//! The host listens, routes, authenticates and reads; [`source`] decides what a request is,
//! `elements` finds the messages in it as spans of its body, `answer` says what became of
//! them. No body is ever held: a large one is read a chunk at a time.

mod answer;
mod draft;
mod elements;
mod place;
mod settings;
mod source;

pub use settings::Settings;
pub use source::HttpMessages;

portway_sdk::export_http_source!(HttpMessages);
