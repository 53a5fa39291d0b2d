//! Log lines, and counts of what became no message. What `println!` writes arrives in
//! the same place.

use std::fmt::Display;

use crate::host;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// One line, at most 4 KiB.
pub fn write(level: Level, text: impl Display) {
    host::log_write(level, &text.to_string());
}

/// For the author.
pub fn debug(text: impl Display) {
    write(Level::Debug, text);
}

/// What an operator would note in a diary.
pub fn info(text: impl Display) {
    write(Level::Info, text);
}

/// What an operator may need to act on.
pub fn warn(text: impl Display) {
    write(Level::Warn, text);
}

/// What an operator must act on.
pub fn error(text: impl Display) {
    write(Level::Error, text);
}

/// Counts something that became no message, such as junk between frames; shown in
/// `status` under its code. At most 32 codes a plugin.
pub fn notice(code: &str, text: impl Display) {
    host::log_notice(code, &text.to_string());
}
