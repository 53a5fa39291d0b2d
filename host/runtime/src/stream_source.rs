//! Stream sources: a codec for each connection, and answers from `settle` alone.
//!
//! Calls run in the caller's own task. A fault closes the connection whose bytes were in hand;
//! its neighbours feed what they kept to a fresh codec with their next bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_bindings::exports::portway::plugin::stream_source as wit;
use portway_bindings::portway::plugin::types as wit_types;
use portway_model::{Attributes, Cost};
use tokio::time::Instant as Moment;

use crate::convert::failure_in;
use crate::fault::CallError;
use crate::instance::{Instance, Use, run};
use crate::kept::Kept;
use crate::opening::CallLimits;
use crate::pool::Pool;
use crate::seats::{Codec, Held, Place};
use crate::source::{Receipt, SourceError, SourceItem, items_in, receipts_of};

/// Bytes a codec is fed at once.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Fuel for each byte of input, beside what a message may use: a chunk may hold many.
const FUEL_PER_BYTE: u64 = 1_000;

/// A stream source opened for one interface. Cheap to clone.
#[derive(Clone)]
pub struct StreamSource {
    inner: Arc<SourceInner>,
}

struct SourceInner {
    pool: Arc<Pool>,
    user: Use,
}

/// One connection's codec, and the input it may still need.
pub struct Connection {
    source: Arc<SourceInner>,
    place: Place,
    peer: Vec<(String, String)>,
    codec: Option<Codec>,
    kept: Kept,
    end: Option<End>,
    cost: Cost,
}

/// No more is received.
enum End {
    /// Told with the next call: the items before it were handed over first.
    Untold(SourceError),
    Told,
}

/// What the peer is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub bytes: Bytes,
    /// Close the connection after these bytes.
    pub close: bool,
}

impl StreamSource {
    pub(crate) fn new(pool: Arc<Pool>, user: Use) -> StreamSource {
        StreamSource { inner: Arc::new(SourceInner { pool, user }) }
    }

    /// Opens it now, to see whether it takes its settings.
    pub async fn check(&self) -> Result<(), CallError> {
        let source = &self.inner;
        let deadline = source.deadline();
        let seat = source.pool.seats.any(&source.user);
        let mut held = seat.hold(&source.pool, &source.user, deadline).await?;
        let opened = held.instance.resource(&source.user, deadline).await.map(|_| ());
        if !matches!(opened, Err(CallError::Fault(_))) {
            held.put_back(source.now());
        }
        opened
    }

    /// A codec for a connection. `peer` holds `address`, `port` and, where known,
    /// `tls.subject`; `first` is the offset of the first byte that will be fed.
    pub async fn accept(&self, peer: Attributes, first: u64) -> Result<Connection, SourceError> {
        let source = self.inner.clone();
        let place = source.pool.seats.place(source.user.opening.isolation);
        let peer = peer.pairs().to_vec();
        let mut connection = Connection {
            source,
            place,
            peer,
            codec: None,
            kept: Kept::new(first),
            end: None,
            cost: Cost::default(),
        };
        // With nothing kept this opens the codec and feeds nothing.
        connection.feed(Bytes::new()).await?;
        Ok(connection)
    }

    /// Answers items of one connection in their order, from their tickets alone; any instance
    /// can do it.
    pub async fn settle(&self, receipts: Vec<Receipt>) -> Result<Reply, SourceError> {
        let source = &self.inner;
        let deadline = source.deadline();
        let seat = source.pool.seats.any(&source.user);
        let mut held = seat.hold(&source.pool, &source.user, deadline).await?;
        let receipts = receipts_of(receipts);
        let result = settle_in(&mut held.instance, &source.user, &receipts, deadline).await;
        source.release(held, result)
    }
}

impl SourceInner {
    fn limits(&self) -> &CallLimits {
        &self.user.opening.limits
    }

    fn deadline(&self) -> Moment {
        Moment::now() + self.limits().call_timeout
    }

    fn now(&self) -> Duration {
        self.pool.plugin.runtime.settings.clock.monotonic()
    }

    fn release<T>(&self, held: Held, result: Result<T, SourceError>) -> Result<T, SourceError> {
        if !matches!(result, Err(SourceError::Fault(_))) {
            held.put_back(self.now());
        }
        result
    }
}

impl Connection {
    /// The next bytes. A chunk above [`CHUNK_BYTES_MAX`] is fed in parts; if a later part fails,
    /// the items of the earlier ones are returned and the next call says why. After
    /// [`SourceError::Busy`] nothing was taken: the same bytes may be given again.
    pub async fn receive(&mut self, chunk: Bytes) -> Result<Vec<SourceItem>, SourceError> {
        self.feed(chunk).await
    }

    /// No more bytes come: `peer-closed`, `idle`, `too-large` or `stopping`. The last items.
    pub async fn finish(&mut self, why: &str) -> Result<Vec<SourceItem>, SourceError> {
        let mut items = self.feed(Bytes::new()).await?;
        if self.end.is_some() {
            return Ok(items);
        }
        let source = self.source.clone();
        let deadline = source.deadline();
        let seat = self.place.seat.clone();
        let mut held = seat.hold(&source.pool, &source.user, deadline).await?;
        let result = match self.attach(&mut held, &mut items, deadline).await {
            Ok(codec) => self.finish_in(&mut held.instance, codec, why, &mut items, deadline).await,
            Err(error) => Err(error),
        };
        self.end = Some(End::Told);
        source.release(held, result)?;
        Ok(items)
    }

    /// Bytes that are kept because the codec may still need them.
    pub fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    /// These bytes, from the first; after a fault, what was in hand.
    pub fn kept(&self) -> Vec<Bytes> {
        self.kept.chunks()
    }

    /// What reading its bytes cost since this was asked last; zero where calls are not timed.
    pub fn take_cost(&mut self) -> Cost {
        std::mem::take(&mut self.cost)
    }

    /// It has ended: nothing more is received.
    pub fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    async fn feed(&mut self, chunk: Bytes) -> Result<Vec<SourceItem>, SourceError> {
        match self.end.take() {
            None => {}
            Some(End::Told) => {
                self.end = Some(End::Told);
                return Err(SourceError::Closed);
            }
            Some(End::Untold(error)) => {
                self.end = Some(End::Told);
                return Err(error);
            }
        }
        let source = self.source.clone();
        let deadline = source.deadline();
        let seat = self.place.seat.clone();
        let mut held = seat.hold(&source.pool, &source.user, deadline).await?;
        let mut items = Vec::new();
        let result = self.feed_in(&mut held, chunk, &mut items, deadline).await;
        match source.release(held, result) {
            Ok(()) => Ok(items),
            Err(error) if items.is_empty() => {
                self.end = Some(End::Told);
                Err(error)
            }
            Err(error) => {
                self.end = Some(End::Untold(error));
                Ok(items)
            }
        }
    }

    async fn feed_in(
        &mut self,
        held: &mut Held,
        mut chunk: Bytes,
        items: &mut Vec<SourceItem>,
        deadline: Moment,
    ) -> Result<(), SourceError> {
        let codec = self.attach(held, items, deadline).await?;
        while !chunk.is_empty() {
            let part = chunk.split_to(chunk.len().min(CHUNK_BYTES_MAX));
            self.kept.push(part.clone());
            let fed = self.kept.end();
            self.receive_in(&mut held.instance, codec, &part, fed, items, deadline).await?;
        }
        Ok(())
    }

    /// The connection's codec in this instance; a fresh one is fed what was kept.
    async fn attach(
        &mut self,
        held: &mut Held,
        items: &mut Vec<SourceItem>,
        deadline: Moment,
    ) -> Result<Codec, SourceError> {
        if let Some(codec) = self.codec.filter(|codec| codec.generation == held.generation) {
            return Ok(codec);
        }
        let source = self.source.clone();
        let user = &source.user;
        let instance = &mut held.instance;
        let listener = instance.resource(user, deadline).await?;
        let fuel = source.limits().fuel_per_message;
        instance
            .start(&user.opening.observer, &mut std::iter::empty(), fuel, deadline)
            .map_err(SourceError::Fault)?;
        let meter = instance.wasi_meter();
        let first = self.kept.first();
        let Instance { exports, store, .. } = &mut *instance;
        let call = async {
            exports.stream_source()?.listener().call_accept(store, listener, &self.peer, first).await
        };
        let outcome = run(deadline, &meter, call).await;
        let accepted = instance.finish(outcome).map_err(SourceError::Fault)?;
        let resource = accepted.map_err(|failure| SourceError::Refused(failure_in(failure)))?;
        let codec = Codec { generation: held.generation, resource };
        self.codec = Some(codec);
        let mut fed = first;
        for chunk in self.kept.chunks() {
            fed += chunk.len() as u64;
            self.receive_in(&mut held.instance, codec, &chunk, fed, items, deadline).await?;
        }
        Ok(codec)
    }

    async fn receive_in(
        &mut self,
        instance: &mut Instance,
        codec: Codec,
        chunk: &Bytes,
        fed: u64,
        items: &mut Vec<SourceItem>,
        deadline: Moment,
    ) -> Result<(), SourceError> {
        let limits = self.source.limits();
        let fuel = limits.fuel_per_message.saturating_add(FUEL_PER_BYTE * chunk.len() as u64);
        let observer = &self.source.user.opening.observer;
        instance.start(observer, &mut std::iter::empty(), fuel, deadline).map_err(SourceError::Fault)?;
        let meter = instance.wasi_meter();
        let timer = self.source.user.opening.timer();
        let Instance { exports, store, .. } = &mut *instance;
        let call =
            async { exports.stream_source()?.connection().call_receive(store, codec.resource, chunk).await };
        let outcome = run(deadline, &meter, call).await;
        self.cost += timer.cost(instance);
        let step = instance.finish(outcome).map_err(SourceError::Fault)?;
        self.take_step(instance, step, fed, items)
    }

    async fn finish_in(
        &mut self,
        instance: &mut Instance,
        codec: Codec,
        why: &str,
        items: &mut Vec<SourceItem>,
        deadline: Moment,
    ) -> Result<(), SourceError> {
        let fuel = self.source.limits().fuel_per_message;
        let observer = &self.source.user.opening.observer;
        instance.start(observer, &mut std::iter::empty(), fuel, deadline).map_err(SourceError::Fault)?;
        let meter = instance.wasi_meter();
        let timer = self.source.user.opening.timer();
        let Instance { exports, store, .. } = &mut *instance;
        let call =
            async { exports.stream_source()?.connection().call_finish(store, codec.resource, why).await };
        let outcome = run(deadline, &meter, call).await;
        self.cost += timer.cost(instance);
        let step = instance.finish(outcome).map_err(SourceError::Fault)?;
        let fed = self.kept.end();
        self.take_step(instance, step, fed, items)
    }

    /// Checks a step against what was fed, and takes its items.
    fn take_step(
        &mut self,
        instance: &mut Instance,
        step: Result<wit::Step, wit::Failure>,
        fed: u64,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), SourceError> {
        let step = step.map_err(|failure| SourceError::Refused(failure_in(failure)))?;
        let control = self.source.pool.plugin.manifest.control;
        let first = self.kept.first();
        if step.keep_from < first || step.keep_from > fed {
            let lie = format!("`keep-from` {} is not from {first} to {fed}", step.keep_from);
            return Err(SourceError::Fault(instance.lie(lie, None)));
        }
        match items_in(instance.store.data_mut(), &self.kept, fed, control, step.items) {
            Ok(read) => items.extend(read),
            Err(lie) => return Err(SourceError::Fault(instance.lie(lie, None))),
        }
        self.kept.keep_from(step.keep_from);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(codec) = self.codec {
            self.place.seat.leave(codec);
        }
    }
}

async fn settle_in(
    instance: &mut Instance,
    user: &Use,
    receipts: &[wit_types::Receipt],
    deadline: Moment,
) -> Result<Reply, SourceError> {
    let listener = instance.resource(user, deadline).await?;
    let fuel = instance.fuel_of(receipts.len());
    instance
        .start(&user.opening.observer, &mut std::iter::empty(), fuel, deadline)
        .map_err(SourceError::Fault)?;
    let meter = instance.wasi_meter();
    let Instance { exports, store, .. } = &mut *instance;
    let call = async { exports.stream_source()?.listener().call_settle(store, listener, receipts).await };
    let outcome = run(deadline, &meter, call).await;
    let settled = instance.finish(outcome).map_err(SourceError::Fault)?;
    let reply = settled.map_err(|failure| SourceError::Refused(failure_in(failure)))?;
    Ok(Reply { bytes: reply.bytes.into(), close: reply.close })
}
