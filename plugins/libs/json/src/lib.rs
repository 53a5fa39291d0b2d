//! JSON as transforms need it: read from a message with its numbers to the letter and its members in
//! their order, looked into by paths, and written again within a limit.
//!
//! `serde_json` keeps the text of numbers only by a feature that would reach every crate of the
//! workspace, and no limit holds what a message of twenty megabytes becomes in memory; so reading is
//! done here. The crate knows no CSV, no HL7 and no rules of a mapping.

mod number;
mod output;
mod parse;
mod path;
mod value;
mod write;

pub use number::{DIGITS_MAX, is_number, is_plain_number};
pub use output::{OUTPUT_BYTES_MAX, Output};
pub use parse::{DEPTH_MAX, ParseError, VALUES_MAX, parse, read};
pub use path::{Path, PathError};
pub use value::{Member, Value};
pub use write::needs_escape;
