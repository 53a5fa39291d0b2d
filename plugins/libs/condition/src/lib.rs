//! Conditions on a message: values in its body, its attributes and its key, and what is asked of them.
//!
//! [`Compiler`] turns settings into [`Condition`]s and the [`Reader`] of the bodies they look at; the
//! [`Facts`] of one message answer them, and read its body once, when the first condition needs it.
//! What follows from an answer is the plugin's: this crate neither filters nor routes.

mod body;
mod check;
mod compile;
mod condition;
mod facts;
mod settings;
mod unreadable;
mod value;

pub use compile::{CONDITIONS_MAX, Compiler, DEPTH_MAX, SCALARS_MAX};
pub use condition::Condition;
pub use facts::{BODY_BYTES_MAX, Facts, Reader, VALUES_MAX};
pub use settings::{BodyKind, BodySettings, Case, ConditionSettings, CsvSettings, PlaceSettings, Scalar};
pub use unreadable::{ReadError, Unreadable};

/// Characters of a sentence about a rule; the rest is left out.
const SENTENCE_CHARS_MAX: usize = 300;

/// A sentence as it may stand in a reason.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(SENTENCE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
