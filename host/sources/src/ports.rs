//! What a driver needs from both sides: a codec that cuts frames, an intake that stores them.

use std::fmt;

use bytes::Bytes;
use portway_model::{Attributes, Cost, Draft, Failure, Later, MessageId, Timestamp};

/// Stores messages. The future is answered after the commit.
pub trait Intake: Send + Sync + 'static {
    /// One fate a draft, in their order. What was handed over is stored even if nobody waits
    /// for the answer any more.
    fn submit(&self, arrival: Arrival, drafts: Vec<Draft>) -> impl Future<Output = Vec<Fate>> + Send;
}

/// How messages came that are handed over together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// When the first of them did.
    pub at: Timestamp,
    /// What reading them cost the source; zero where nobody wants to know.
    pub cost: Cost,
    /// The `traceparent` of the request they came with.
    pub parent: Option<String>,
}

/// The opened source plugin of one interface.
pub trait Codec: Send + Sync + 'static {
    type Connection: CodecConnection;

    /// A codec for a new connection; `first` is the offset of the first byte it will be fed.
    fn accept(
        &self,
        peer: Attributes,
        first: u64,
    ) -> impl Future<Output = Result<Self::Connection, CodecError>> + Send;

    /// The bytes that answer items of one connection, in their order.
    fn settle(&self, receipts: Vec<Receipt>) -> impl Future<Output = Result<Reply, CodecError>> + Send;
}

/// One connection's codec. Keeps the bytes it still needs.
pub trait CodecConnection: Send + 'static {
    fn receive(&mut self, chunk: Bytes) -> impl Future<Output = Result<Vec<Item>, CodecError>> + Send;

    /// No more bytes come; the last items.
    fn finish(&mut self, why: Finish) -> impl Future<Output = Result<Vec<Item>, CodecError>> + Send;

    /// Bytes received that belong to no item yet: zero at a frame's edge.
    fn kept_bytes(&self) -> u64;

    /// What reading cost since this was asked last.
    fn take_cost(&mut self) -> Cost {
        Cost::default()
    }

    /// It gave the items before its failure; the next call says what the failure is.
    fn has_failed(&self) -> bool {
        false
    }
}

/// What a codec found, in the order it was received.
#[derive(Clone, Debug)]
pub enum Item {
    Message {
        draft: Draft,
        ticket: Bytes,
    },
    /// Input that became no message.
    Refused {
        failure: Failure,
        ticket: Bytes,
    },
    /// Wants an answer, carries no message.
    Control {
        ticket: Bytes,
    },
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Stored {
        id: MessageId,
        /// An earlier message has the same dedupe key and another body.
        conflict: bool,
    },
    /// The message it repeats.
    Duplicate(MessageId),
    NotStored(Later),
    /// It was a refusal or a control item.
    Noted,
}

/// The answer to one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub fate: Fate,
    pub ticket: Bytes,
}

/// What the peer is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub bytes: Bytes,
    /// Close the connection after these bytes.
    pub close: bool,
}

/// Why no more bytes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    PeerClosed,
    Idle,
    TooLarge,
    Stopping,
}

/// Why a codec did not do its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The plugin trapped, used up a limit or lied. The address is slowed.
    #[error("{0}")]
    Fault(String),
    /// The plugin says that it cannot go on with this peer.
    #[error("{0}")]
    Refused(Failure),
    /// No instance was free, or none could be made; nobody's fault.
    #[error("{0}")]
    Unavailable(String),
}

impl Finish {
    /// As the plugin is told.
    pub fn as_str(self) -> &'static str {
        match self {
            Finish::PeerClosed => "peer-closed",
            Finish::Idle => "idle",
            Finish::TooLarge => "too-large",
            Finish::Stopping => "stopping",
        }
    }
}

impl fmt::Display for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Item {
    /// Comes back in the receipt unchanged.
    pub fn ticket(&self) -> &Bytes {
        match self {
            Item::Message { ticket, .. } | Item::Refused { ticket, .. } | Item::Control { ticket } => ticket,
        }
    }
}
