//! Why a frame is not accepted: one list of codes, sentences and answers.

use portway_hl7::ErrorDetail;

/// A reason. The numbers travel in tickets and are never given to another reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    EmptyFrame = 1,
    NotHl7 = 2,
    WideText = 3,
    Batch = 4,
    BadHeader = 5,
    HeaderTooLong = 6,
    SecondStartByte = 7,
    EndByteInside = 8,
    AfterEndByte = 9,
    NoStartByte = 10,
    EndWithoutCr = 11,
    TooLarge = 12,
    ClosedInFrame = 13,
    IdleInFrame = 14,
    StoppedInFrame = 15,
    UnexpectedAck = 16,
    Tls = 17,
    Http = 18,
    TooManyRefusals = 19,
    Busy = 20,
    Full = 21,
    Stopped = 22,
    Invalid = 23,
    NotStored = 24,
}

/// What the peer is told about a frame, before its own wishes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// AA or CA.
    Accepted,
    /// AE or CE: it may work later.
    Error,
    /// AR or CR: the same bytes will not work later.
    Rejected,
}

const ALL: [Reason; 24] = [
    Reason::EmptyFrame,
    Reason::NotHl7,
    Reason::WideText,
    Reason::Batch,
    Reason::BadHeader,
    Reason::HeaderTooLong,
    Reason::SecondStartByte,
    Reason::EndByteInside,
    Reason::AfterEndByte,
    Reason::NoStartByte,
    Reason::EndWithoutCr,
    Reason::TooLarge,
    Reason::ClosedInFrame,
    Reason::IdleInFrame,
    Reason::StoppedInFrame,
    Reason::UnexpectedAck,
    Reason::Tls,
    Reason::Http,
    Reason::TooManyRefusals,
    Reason::Busy,
    Reason::Full,
    Reason::Stopped,
    Reason::Invalid,
    Reason::NotStored,
];

impl Reason {
    pub(crate) fn from_number(number: u8) -> Option<Reason> {
        ALL.into_iter().find(|reason| *reason as u8 == number)
    }

    /// The reason of a fate that says `not-stored`.
    pub(crate) fn of_not_stored(code: &str) -> Reason {
        match code {
            "busy" => Reason::Busy,
            "full" => Reason::Full,
            "stopped" => Reason::Stopped,
            "too-large" => Reason::TooLarge,
            "invalid" => Reason::Invalid,
            _ => Reason::NotStored,
        }
    }

    /// For programs.
    pub fn code(self) -> &'static str {
        match self {
            Reason::EmptyFrame => "empty-frame",
            Reason::NotHl7 => "not-hl7",
            Reason::WideText => "utf-16",
            Reason::Batch => "batch",
            Reason::BadHeader => "bad-header",
            Reason::HeaderTooLong => "header-too-long",
            Reason::SecondStartByte => "second-start-byte",
            Reason::EndByteInside => "end-byte-inside",
            Reason::AfterEndByte => "after-end-byte",
            Reason::NoStartByte => "no-start-byte",
            Reason::EndWithoutCr => "end-without-cr",
            Reason::TooLarge => "too-large",
            Reason::ClosedInFrame => "closed-in-frame",
            Reason::IdleInFrame => "idle-in-frame",
            Reason::StoppedInFrame => "stopped-in-frame",
            Reason::UnexpectedAck => "unexpected-ack",
            Reason::Tls => "tls",
            Reason::Http => "http",
            Reason::TooManyRefusals => "too-many-refusals",
            Reason::Busy => "busy",
            Reason::Full => "full",
            Reason::Stopped => "stopped",
            Reason::Invalid => "invalid",
            Reason::NotStored => "not-stored",
        }
    }

    /// For people, on both sides. ASCII, since it is sent under the peer's character set.
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::EmptyFrame => "the frame is empty",
            Reason::NotHl7 => "the frame does not begin with an MSH segment",
            Reason::WideText => {
                "the message is in UTF-16 or UTF-32; send it in UTF-8 or a one-byte character set"
            }
            Reason::Batch => {
                "the frame holds a batch or several messages, which one acknowledgement cannot answer"
            }
            Reason::BadHeader => "the header segment declares no usable field separator",
            Reason::HeaderTooLong => "the header segment is longer than can be acknowledged",
            Reason::SecondStartByte => {
                "a second start byte (0x0B) stands inside the frame; its parts are kept for a person to look at"
            }
            Reason::EndByteInside => {
                "an end byte (0x1C) stands inside the message; it is kept for a person to look at"
            }
            Reason::AfterEndByte => {
                "these bytes followed an end byte (0x1C) without a start byte; they may belong to the message before"
            }
            Reason::NoStartByte => "there is no start byte (0x0B) before these bytes",
            Reason::EndWithoutCr => "the frame does not end in 0x1C 0x0D",
            Reason::TooLarge => "the message is larger than is accepted here",
            Reason::ClosedInFrame => "the connection closed inside a frame",
            Reason::IdleInFrame => "nothing more came inside a frame",
            Reason::StoppedInFrame => "the receiver stopped while a frame was arriving",
            Reason::UnexpectedAck => {
                "an acknowledgement came where messages are expected; it is not answered, lest the two sides answer for ever"
            }
            Reason::Tls => "the peer begins with a TLS handshake, but this port is set up without TLS",
            Reason::Http => "the peer speaks HTTP, but this port expects HL7 over MLLP",
            Reason::TooManyRefusals => {
                "too many frames in a row could not be accepted; the connection is closed"
            }
            Reason::Busy => "the receiver is busy; send the message again later",
            Reason::Full => "the receiver cannot store messages now; send it again later",
            Reason::Stopped => "the receiver is stopping; send the message again later",
            Reason::Invalid => "the message is not accepted as it is",
            Reason::NotStored => "the message could not be stored; send it again later",
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Reason::EmptyFrame | Reason::Busy | Reason::Full | Reason::Stopped | Reason::NotStored => {
                Outcome::Error
            }
            Reason::NotHl7
            | Reason::WideText
            | Reason::Batch
            | Reason::BadHeader
            | Reason::HeaderTooLong
            | Reason::SecondStartByte
            | Reason::EndByteInside
            | Reason::AfterEndByte
            | Reason::NoStartByte
            | Reason::EndWithoutCr
            | Reason::TooLarge
            | Reason::ClosedInFrame
            | Reason::IdleInFrame
            | Reason::StoppedInFrame
            | Reason::UnexpectedAck
            | Reason::Tls
            | Reason::Http
            | Reason::TooManyRefusals
            | Reason::Invalid => Outcome::Rejected,
        }
    }

    /// For MSA-3 and ERR.
    pub(crate) fn detail(self) -> ErrorDetail<'static> {
        let condition = match self {
            Reason::Busy | Reason::Full | Reason::Stopped | Reason::NotStored => {
                ("207", "Application internal error")
            }
            Reason::WideText | Reason::TooLarge | Reason::Invalid => ("102", "Data type error"),
            _ => ("100", "Segment sequence error"),
        };
        ErrorDetail { condition, text: self.sentence() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_are_unique_and_sentences_are_ascii() {
        for (index, reason) in ALL.into_iter().enumerate() {
            assert_eq!(Reason::from_number(reason as u8), Some(reason));
            assert!(reason.sentence().is_ascii());
            assert!(ALL.iter().skip(index + 1).all(|other| other.code() != reason.code()));
        }
    }
}
