//! The texts of HL7 v2 messages: bytes to UTF-8 by MSH-18, and escape sequences to what they stand for.
//!
//! `portway-hl7` says what a message names and holds; here the host is asked for the tables, and what
//! does not fit becomes a problem with a sentence. Where texts go is left to each transform.

mod charset;
mod escape;

pub use charset::{decode, of_header, setting};
pub use escape::explain;
