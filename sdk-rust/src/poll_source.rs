//! Poll sources: they look for messages when asked.
//!
//! The host keeps the cursor, in the transaction that stores the messages. What a source
//! does outside (move a file, acknowledge at a broker) belongs into `settle`, which comes
//! after the commit.

use serde::de::DeserializeOwned;

use crate::{Context, Failure, Item, Receipt, Trouble};

/// A source that looks for messages: one interface's settings.
pub trait PollSource: Sized + 'static {
    /// Read from the interface's settings; [`NoSettings`](crate::NoSettings) where there are none.
    type Settings: DeserializeOwned;

    /// Takes the settings; a failure is shown to whoever wrote them.
    fn open(settings: Self::Settings, context: &Context) -> Result<Self, Failure>;

    /// The next items after the cursor. Nothing may change outside: what was found may be
    /// asked for again, also by another instance.
    fn poll(&mut self, query: Query) -> Result<Found, Trouble>;

    /// After the commit: move, delete, acknowledge. Called until it succeeds, and once
    /// after a start with the committed cursor and no receipts: it must be safe to repeat,
    /// and finds what to do in the cursor.
    fn settle(&mut self, cursor: &[u8], receipts: Vec<Receipt>) -> Result<(), Trouble>;
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What the last committed [`Found`] said; empty the very first time.
    pub cursor: Vec<u8>,
    /// More items are a fault.
    pub items_max: u32,
    /// Bytes of all messages together; more are a fault, but for a single message.
    pub bytes_max: u32,
    /// How long the call may wait for something to arrive.
    pub wait_max_ms: u32,
    /// Messages of this interface that are not finished yet, counted up to 1,000.
    pub unfinished: u32,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// In their order. All of them are stored in one transaction, or none.
    pub items: Vec<Item>,
    /// Stored in the transaction that stores the items, at most 64 KiB.
    pub cursor: Vec<u8>,
    /// When to ask again; 0: at once, there is more.
    pub again_ms: u32,
}

/// Makes a type that implements [`PollSource`] the plugin. Natively it only checks the type.
#[macro_export]
macro_rules! export_poll_source {
    ($plugin:ty) => {
        $crate::__export!(poll_source, PollSource, $plugin);
    };
}
