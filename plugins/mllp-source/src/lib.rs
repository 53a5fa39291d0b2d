//! The MLLP source: a codec that cuts HL7 v2 messages out of a TCP stream and answers them.
//!
//! [`codec`] cuts, [`verdict`] judges what was cut, [`answer`] makes the acknowledgements from
//! tickets. The plugin does no IO and never holds a message: it holds the first kilobytes of a frame
//! that is still arriving and says where the message lies.

pub mod answer;
pub mod codec;
mod draft;
mod greeting;
mod lines;
mod notice;
mod reason;
mod run;
mod settings;
mod source;
mod ticket;
mod verdict;

pub use codec::FrameCodec;
pub use reason::Reason;
pub use settings::Settings;
pub use source::MllpSource;
pub use ticket::{Plan, Ticket};

portway_sdk::export_stream_source!(MllpSource);
