//! Framing of messages on a byte stream: delimiters, lines, and lengths before the message.
//!
//! [`Framing`] is what settings say; a [`Decoder`] cuts a stream that comes in chunks, and a [`Scan`]
//! goes through a message that is to be sent and says what to put around it, or why that would break
//! it. Both are one another's opposite. What a frame means, and what the peer is told, is the plugin's.

mod decoder;
mod delimiters;
mod length;
mod pattern;
mod scan;
mod sequence;
mod settings;

pub use decoder::{Decoder, Event, Frame, JUNK_BYTES_MAX, Leftover};
pub use delimiters::Delimiters;
pub use length::Length;
pub use pattern::{Pattern, SEQUENCE_BYTES_MAX};
pub use scan::{Scan, Unfit, Wrapping};
pub use sequence::{Sequence, shown};
pub use settings::{FramingSettings, LineEnd, Order};

/// How messages are told apart.
#[derive(Clone, Debug)]
pub enum Framing {
    Delimited(Delimiters),
    Counted(Length),
}

impl Framing {
    /// Whether the bytes of a frame say where it ends.
    pub fn has_end(&self) -> bool {
        match self {
            Framing::Delimited(delimiters) => delimiters.has_end(),
            Framing::Counted(_) => true,
        }
    }
}
