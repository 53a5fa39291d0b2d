//! HL7 v2 messages read in place: slices of the bytes as they came, nothing copied, nothing normalised.
//!
//! A [`Message`] is a view over `&[u8]`; segments, fields, repetitions, components and subcomponents
//! are cut when asked for, under the delimiters of the message's own header. Escapes, dates and
//! character sets are explained by their own modules, never applied behind the caller's back.
//! The crate knows no MLLP, no JSON and no host; it takes any bytes without a panic.

pub mod acknowledgement;
pub mod charset;
pub mod datetime;
mod delimiters;
pub mod escape;
mod field;
mod index;
mod message;
mod path;
mod segment;

pub use acknowledgement::{Acknowledgement, ErrorDetail};
pub use charset::{Charset, DecodeError};
pub use datetime::{DateTime, Precision};
pub use delimiters::{DelimiterError, Delimiters};
pub use escape::{Piece, Pieces};
pub use field::{Component, Field, Repetition, Split};
pub use index::{FieldIndex, INDEXED_FIELDS_MAX, Indexer};
pub use message::{Message, ParseError};
pub use path::{Path, PathError};
pub use portway_search as search;
pub use segment::{Segment, Segments};
