//! Stream sources: codecs for framed protocols over TCP or TLS.
//!
//! The host accepts, reads and writes; the plugin cuts. It says where a message lies as
//! spans of the input, so that the bytes stay what they were.

use serde::de::DeserializeOwned;

use crate::{Attributes, Context, Failure, Item, Receipt};

/// A source for a framed protocol: one interface's settings.
pub trait StreamSource: Sized + 'static {
    /// Read from the interface's settings; [`NoSettings`](crate::NoSettings) where there are none.
    type Settings: DeserializeOwned;
    /// What one connection needs.
    type Codec: Codec;

    /// Takes the settings; a failure is shown to whoever wrote them.
    fn open(settings: Self::Settings, context: &Context) -> Result<Self, Failure>;

    /// A codec for one connection. `peer` holds `address`, `port` and, where known,
    /// `tls.subject`. `first` is the offset of the first byte that will be fed: 0 for a
    /// new connection, more after a fault or an update.
    fn accept(&mut self, peer: &Attributes, first: u64) -> Result<Self::Codec, Failure>;

    /// Answers items of one connection in their order, from their tickets alone. The one
    /// place that makes bytes for the peer.
    fn settle(&mut self, receipts: Vec<Receipt>) -> Result<StreamReply, Failure>;
}

/// Cuts the input of one connection.
pub trait Codec: Sized + 'static {
    /// The next bytes, at most 64 KiB.
    fn receive(&mut self, chunk: &[u8]) -> Result<Step, Failure>;

    /// No more bytes come. Last items.
    fn finish(&mut self, reason: FinishReason) -> Result<Step, Failure>;
}

/// Why no more bytes come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    PeerClosed,
    /// Nothing came for too long.
    Idle,
    /// More is kept than a message may have.
    TooLarge,
    Stopping,
    /// One that a newer host knows.
    Other(String),
}

impl From<String> for FinishReason {
    fn from(why: String) -> Self {
        match why.as_str() {
            "peer-closed" => FinishReason::PeerClosed,
            "idle" => FinishReason::Idle,
            "too-large" => FinishReason::TooLarge,
            "stopping" => FinishReason::Stopping,
            _ => FinishReason::Other(why),
        }
    }
}

/// What the bytes so far have given.
#[derive(Debug, Default)]
pub struct Step {
    /// In the order they were received.
    pub items: Vec<Item>,
    /// The first input byte still needed. The host keeps everything from here and feeds
    /// it to a fresh codec after a fault or an update.
    pub keep_from: u64,
}

/// What the peer is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReply {
    pub bytes: Vec<u8>,
    /// Close the connection after these bytes.
    pub close: bool,
}

/// Makes a type that implements [`StreamSource`] the plugin. Natively it only checks the type.
#[macro_export]
macro_rules! export_stream_source {
    ($plugin:ty) => {
        $crate::__export!(stream_source, StreamSource, $plugin);
    };
}
