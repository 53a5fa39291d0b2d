//! Appears with its first content.
