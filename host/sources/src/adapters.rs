//! The real codec and the real intake: a plugin of the runtime, the handle of the engine.
//!
//! Translation alone; nothing is decided here.

use bytes::Bytes;
use portway_engine::EngineHandle;
use portway_model::{Attributes, Draft, Failure, InterfaceId, Later, Timestamp};
use portway_runtime::{SourceError, SourceItem, StreamSource};

use crate::ports::{Codec, CodecConnection, CodecError, Fate, Finish, Intake, Item, Receipt, Reply};

/// The engine, for the messages of one interface.
#[derive(Clone)]
pub struct EngineIntake {
    engine: EngineHandle,
    interface: InterfaceId,
}

/// An opened stream source.
#[derive(Clone)]
pub struct PluginCodec {
    source: StreamSource,
}

/// One connection's codec of a plugin.
pub struct PluginConnection {
    connection: portway_runtime::Connection,
}

impl EngineIntake {
    pub fn new(engine: EngineHandle, interface: InterfaceId) -> EngineIntake {
        EngineIntake { engine, interface }
    }
}

impl Intake for EngineIntake {
    async fn submit(&self, received_at: Timestamp, drafts: Vec<Draft>) -> Vec<Fate> {
        let fates = self.engine.submit(self.interface, received_at, drafts).await;
        fates.into_iter().map(fate_of).collect()
    }
}

impl PluginCodec {
    pub fn new(source: StreamSource) -> PluginCodec {
        PluginCodec { source }
    }
}

impl Codec for PluginCodec {
    type Connection = PluginConnection;

    async fn accept(&self, peer: Attributes, first: u64) -> Result<PluginConnection, CodecError> {
        let connection = self.source.accept(peer, first).await?;
        Ok(PluginConnection { connection })
    }

    async fn settle(&self, receipts: Vec<Receipt>) -> Result<Reply, CodecError> {
        let receipts = receipts.into_iter().map(|Receipt { fate, ticket }| {
            let fate = match fate {
                Fate::Stored { id, .. } => portway_runtime::Fate::Stored(id),
                Fate::Duplicate(id) => portway_runtime::Fate::Duplicate(id),
                Fate::NotStored(later) => portway_runtime::Fate::NotStored(later),
                Fate::Noted => portway_runtime::Fate::Noted,
            };
            portway_runtime::Receipt { fate, ticket }
        });
        let portway_runtime::Reply { bytes, close } = self.source.settle(receipts.collect()).await?;
        Ok(Reply { bytes, close })
    }
}

impl CodecConnection for PluginConnection {
    async fn receive(&mut self, chunk: Bytes) -> Result<Vec<Item>, CodecError> {
        let items = self.connection.receive(chunk).await?;
        Ok(items.into_iter().map(item_of).collect())
    }

    async fn finish(&mut self, why: Finish) -> Result<Vec<Item>, CodecError> {
        let items = self.connection.finish(why.as_str()).await?;
        Ok(items.into_iter().map(item_of).collect())
    }

    fn kept_bytes(&self) -> u64 {
        self.connection.kept_bytes() as u64
    }

    fn has_failed(&self) -> bool {
        self.connection.is_ended()
    }
}

fn item_of(item: SourceItem) -> Item {
    match item {
        SourceItem::Message { draft, ticket } => Item::Message { draft, ticket },
        SourceItem::Refused { failure, ticket } => Item::Refused { failure, ticket },
        SourceItem::Control { ticket } => Item::Control { ticket },
    }
}

fn fate_of(fate: portway_engine::Fate) -> Fate {
    match fate {
        portway_engine::Fate::Stored { id, conflict } => Fate::Stored { id, conflict: conflict.is_some() },
        portway_engine::Fate::Duplicate { of, .. } => Fate::Duplicate(of),
        portway_engine::Fate::NotStored { code, text, after_ms } => {
            Fate::NotStored(Later { failure: Failure::new(code, text), after_ms })
        }
    }
}

impl From<SourceError> for CodecError {
    fn from(error: SourceError) -> CodecError {
        match error {
            SourceError::Refused(failure) | SourceError::Open(failure) => CodecError::Refused(failure),
            SourceError::Fault(fault) => CodecError::Fault(fault.to_string()),
            error @ (SourceError::Busy | SourceError::Closed) => CodecError::Unavailable(error.to_string()),
        }
    }
}
