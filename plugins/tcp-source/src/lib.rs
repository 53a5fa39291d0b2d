//! The TCP source: a codec that cuts messages out of a stream by delimiters, lines or lengths.
//!
//! `portway-framing` cuts; [`codec`] makes items of what was cut, [`answer`] the replies from tickets.
//! The plugin does no IO and never holds a message: it holds the first bytes of one that is arriving,
//! where a key is looked for in them, and says where the message lies.

pub mod answer;
pub mod codec;
pub mod place;
mod reason;
mod settings;
mod source;
mod ticket;

pub use codec::{FrameCodec, REFUSALS_IN_ROW_MAX};
pub use reason::Reason;
pub use settings::{FRAME_BYTES_MAX, PlaceSettings, REPLY_BYTES_MAX, Settings};
pub use source::TcpSource;

portway_sdk::export_stream_source!(TcpSource);
