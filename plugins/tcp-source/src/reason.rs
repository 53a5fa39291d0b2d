//! Why a frame is refused or doubtful: codes and sentences.

use portway_sdk::{Failure, FinishReason};

/// A reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Empty,
    /// More bytes than this.
    TooLarge(u32),
    BadLength,
    NoStart,
    StartInside,
    EndUnknown,
    TooManyRefusals,
    Closed,
    Idle,
    Stopped,
}

impl Reason {
    /// A frame that was broken off.
    pub(crate) fn of_finish(why: &FinishReason, frame_bytes_max: u32) -> Reason {
        match why {
            FinishReason::PeerClosed | FinishReason::Other(_) => Reason::Closed,
            FinishReason::Idle => Reason::Idle,
            FinishReason::Stopping => Reason::Stopped,
            FinishReason::TooLarge => Reason::TooLarge(frame_bytes_max),
        }
    }

    /// For programs.
    pub fn code(self) -> &'static str {
        match self {
            Reason::Empty => "empty-frame",
            Reason::TooLarge(_) => "too-large",
            Reason::BadLength => "bad-length",
            Reason::NoStart => "no-start-byte",
            Reason::StartInside => "second-start-byte",
            Reason::EndUnknown => "end-unknown",
            Reason::TooManyRefusals => "too-many-refusals",
            Reason::Closed => "closed-in-frame",
            Reason::Idle => "idle-in-frame",
            Reason::Stopped => "stopped-in-frame",
        }
    }

    /// For people.
    pub fn sentence(self) -> String {
        let sentence = match self {
            Reason::TooLarge(max) => {
                return format!("the frame is larger than {max} bytes, or than messages may be here");
            }
            Reason::Empty => "the frame is empty",
            Reason::BadLength => {
                "the length before a frame is none; the two sides do not mean the same framing"
            }
            Reason::NoStart => "there is no start before these bytes",
            Reason::StartInside => {
                "a start stands inside the frame, so it may be two messages; it is kept for a person to look at"
            }
            Reason::EndUnknown => {
                "nothing says where this message ends, and the connection fell silent or was stopped; it is kept for a person to look at"
            }
            Reason::TooManyRefusals => {
                "too many frames in a row could not be accepted; the connection is closed"
            }
            Reason::Closed => "the connection closed inside a frame",
            Reason::Idle => "nothing more came inside a frame",
            Reason::Stopped => "the receiver stopped while a frame was arriving",
        };
        sentence.to_owned()
    }

    pub(crate) fn failure(self) -> Failure {
        Failure::new(self.code(), self.sentence())
    }
}
