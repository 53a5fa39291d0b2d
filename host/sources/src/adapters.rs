//! The real sources and the real intake: plugins of the runtime, the handle of the engine.
//!
//! Translation alone; nothing is decided here.

use std::sync::Arc;

use bytes::Bytes;
use portway_engine::{EngineHandle, Unit};
use portway_model::{Attributes, Cost, DestinationId, Draft, Failure, InterfaceId, Later, Trouble, code};
use portway_runtime::{
    CallError, FaultKind, HttpAnswer, HttpRequest, HttpSource, PollSource, Responder, Scheme, SourceError,
    SourceItem, StreamSource,
};

use crate::http::ports::{
    Answer, Answering, Decision, Endpoint, Request, RequestIntake, Respond, RespondError,
};
use crate::poll::ports::{Found, PollError, PollIntake, Poller, Query};
use crate::ports::{Arrival, Codec, CodecConnection, CodecError, Fate, Finish, Intake, Item, Receipt, Reply};

/// The engine, for the messages of one interface.
#[derive(Clone)]
pub struct EngineIntake {
    engine: EngineHandle,
    interface: InterfaceId,
    /// None: nobody wants to know.
    witness: Option<Arc<dyn Witness>>,
}

/// Hears of messages that come, to make traces of it.
pub trait Witness: Send + Sync + 'static {
    /// They are about to be handed over; the attributes of the host may be written.
    fn arrived(&self, arrival: &Arrival, drafts: &mut [Draft]) -> Box<dyn Waiting>;
}

/// Messages whose fate is not known yet.
pub trait Waiting: Send {
    /// One fate a message, in their order.
    fn decided(self: Box<Self>, fates: &[portway_engine::Fate]);
}

/// An opened stream source.
#[derive(Clone)]
pub struct PluginCodec {
    source: StreamSource,
}

/// An opened poll source.
#[derive(Clone)]
pub struct PluginPoller {
    source: PollSource,
}

/// An opened HTTP source.
#[derive(Clone)]
pub struct PluginEndpoint {
    source: HttpSource,
}

/// The engine, for what one interface's poll source finds.
#[derive(Clone)]
pub struct EnginePollIntake {
    engine: EngineHandle,
    interface: InterfaceId,
    destinations: Vec<DestinationId>,
    witness: Option<Arc<dyn Witness>>,
}

/// One connection's codec of a plugin.
pub struct PluginConnection {
    connection: portway_runtime::Connection,
}

impl EngineIntake {
    pub fn new(
        engine: EngineHandle,
        interface: InterfaceId,
        witness: Option<Arc<dyn Witness>>,
    ) -> EngineIntake {
        EngineIntake { engine, interface, witness }
    }

    async fn hand_over(&self, arrival: Arrival, mut drafts: Vec<Draft>, unit: Unit) -> Vec<Fate> {
        let waiting = self.witness.as_ref().map(|witness| witness.arrived(&arrival, &mut drafts));
        let fates = self.engine.submit(self.interface, arrival.at, drafts, unit).await;
        if let Some(waiting) = waiting {
            waiting.decided(&fates);
        }
        fates.into_iter().map(fate_of).collect()
    }
}

impl Intake for EngineIntake {
    async fn submit(&self, arrival: Arrival, drafts: Vec<Draft>) -> Vec<Fate> {
        self.hand_over(arrival, drafts, Unit::Each).await
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
        let portway_runtime::Reply { bytes, close } = self.source.settle(receipts_of(receipts)).await?;
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

    fn take_cost(&mut self) -> Cost {
        self.connection.take_cost()
    }

    fn kept_bytes(&self) -> u64 {
        self.connection.kept_bytes() as u64
    }

    fn has_failed(&self) -> bool {
        self.connection.is_ended()
    }
}

impl RequestIntake for EngineIntake {
    async fn submit(&self, arrival: Arrival, drafts: Vec<Draft>) -> Vec<Fate> {
        self.hand_over(arrival, drafts, Unit::Whole).await
    }
}

impl PluginEndpoint {
    pub fn new(source: HttpSource) -> PluginEndpoint {
        PluginEndpoint { source }
    }
}

impl Endpoint for PluginEndpoint {
    async fn receive(&self, request: Request) -> Result<Decision, CodecError> {
        let Request { method, target, headers, peer, body } = request;
        let request = HttpRequest { method, target, headers, peer, body };
        Ok(match self.source.receive(&request).await? {
            portway_runtime::Decision::Accept { items, ticket, cost } => {
                Decision::Accept { items: items.into_iter().map(item_of).collect(), ticket, cost }
            }
            portway_runtime::Decision::Refuse(answer) => Decision::Refuse(answer_of(answer)),
            portway_runtime::Decision::Answer(answer) => Decision::Answer(answer_of(answer)),
        })
    }

    async fn settle(&self, ticket: Bytes, receipts: Vec<Receipt>) -> Result<Answer, CodecError> {
        Ok(answer_of(self.source.settle(&ticket, receipts_of(receipts)).await?))
    }
}

/// A component that answers the requests of one interface itself.
pub struct PluginResponder {
    responder: Responder,
    scheme: Scheme,
}

impl PluginResponder {
    /// `scheme` is the listener's.
    pub fn new(responder: Responder, scheme: Scheme) -> PluginResponder {
        PluginResponder { responder, scheme }
    }
}

impl Respond for PluginResponder {
    fn respond(&self, request: http::Request<Bytes>) -> Answering<'_> {
        Box::pin(async { Ok(self.responder.respond(self.scheme, request).await?) })
    }
}

impl From<portway_runtime::RespondError> for RespondError {
    fn from(error: portway_runtime::RespondError) -> RespondError {
        match error {
            portway_runtime::RespondError::Fault(fault) => match fault.kind {
                FaultKind::TimedOut { .. } => RespondError::TimedOut(fault.to_failure()),
                FaultKind::Trap
                | FaultKind::OutOfFuel
                | FaultKind::OutOfMemory
                | FaultKind::CopyLimit
                | FaultKind::Lie => RespondError::Failed(fault.to_failure()),
            },
            portway_runtime::RespondError::Refused(failure) => RespondError::Failed(failure),
            error @ portway_runtime::RespondError::Busy => {
                RespondError::Busy(Failure::new(code::UNAVAILABLE, error.to_string()))
            }
        }
    }
}

fn answer_of(answer: HttpAnswer) -> Answer {
    Answer { status: answer.status, headers: answer.headers, body: answer.body }
}

impl PluginPoller {
    pub fn new(source: PollSource) -> PluginPoller {
        PluginPoller { source }
    }
}

impl Poller for PluginPoller {
    async fn poll(&self, query: Query) -> Result<Found, PollError> {
        let Query { cursor, items_max, bytes_max, wait_max, unfinished } = query;
        let query = portway_runtime::Query { cursor, items_max, bytes_max, wait_max, unfinished };
        let portway_runtime::Found { items, cursor, again, cost } = self.source.poll(&query).await?;
        Ok(Found { items: items.into_iter().map(item_of).collect(), cursor, again, cost })
    }

    async fn settle(&self, cursor: Bytes, receipts: Vec<Receipt>) -> Result<(), PollError> {
        Ok(self.source.settle(&cursor, receipts_of(receipts)).await?)
    }
}

impl EnginePollIntake {
    /// `destinations` are the interface's.
    pub fn new(
        engine: EngineHandle,
        interface: InterfaceId,
        destinations: Vec<DestinationId>,
        witness: Option<Arc<dyn Witness>>,
    ) -> Self {
        EnginePollIntake { engine, interface, destinations, witness }
    }
}

impl PollIntake for EnginePollIntake {
    async fn submit(
        &self,
        arrival: Arrival,
        mut drafts: Vec<Draft>,
        cursor: Bytes,
    ) -> Result<Vec<Fate>, Later> {
        let count = drafts.len();
        let waiting = self.witness.as_ref().map(|witness| witness.arrived(&arrival, &mut drafts));
        let unit = Unit::WithCursor(cursor);
        let mut fates = self.engine.submit(self.interface, arrival.at, drafts, unit).await;
        if let Some(waiting) = waiting {
            waiting.decided(&fates);
        }
        match fates.pop() {
            Some(portway_engine::Fate::Kept) if fates.len() == count => {
                Ok(fates.into_iter().map(fate_of).collect())
            }
            Some(portway_engine::Fate::NotStored { code, text, after_ms }) => {
                Err(Later { failure: Failure::new(code, text), after_ms })
            }
            // All or nothing is what the engine promises.
            _ => {
                Err(Later { failure: Failure::new(code::BUSY, "the engine gave no answer"), after_ms: None })
            }
        }
    }

    async fn cursor(&self) -> Result<Bytes, String> {
        self.engine.source_cursor(self.interface).await.map_err(|error| error.to_string())
    }

    async fn unfinished(&self, limit: u32) -> Result<u32, String> {
        self.engine.count_pending(&self.destinations, limit).await.map_err(|error| error.to_string())
    }
}

fn receipts_of(receipts: Vec<Receipt>) -> Vec<portway_runtime::Receipt> {
    let receipt = |Receipt { fate, ticket }| {
        let fate = match fate {
            Fate::Stored { id, .. } => portway_runtime::Fate::Stored(id),
            Fate::Duplicate(id) => portway_runtime::Fate::Duplicate(id),
            Fate::NotStored(later) => portway_runtime::Fate::NotStored(later),
            Fate::Noted => portway_runtime::Fate::Noted,
        };
        portway_runtime::Receipt { fate, ticket }
    };
    receipts.into_iter().map(receipt).collect()
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
        portway_engine::Fate::Kept => Fate::Noted,
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

impl From<CallError> for PollError {
    fn from(error: CallError) -> PollError {
        match error {
            CallError::Trouble(Trouble::Unavailable(later)) => PollError::Unavailable(later),
            CallError::Trouble(Trouble::Misconfigured(failure)) | CallError::Open(failure) => {
                PollError::Misconfigured(failure)
            }
            CallError::Fault(fault) => PollError::Fault(fault.to_string()),
            CallError::Busy => PollError::Busy(error.to_string()),
        }
    }
}
