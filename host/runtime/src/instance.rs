//! One instance: a store, and the resources opened in it. One call at a time.
//!
//! After a fault or a cancelled call an instance is unusable: whoever has it drops it. When a
//! sound one is replaced is decided by [`Instance::is_worn`].

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use rand::RngExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant as Moment, timeout_at};
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::convert::context_of;
use crate::engine::YIELD_FUEL;
use crate::exports::Exports;
use crate::fault::{CallError, Fault, FaultKind, classify};
use crate::guest::{self, CallStart, Guest, wasi_is_overdrawn};
use crate::opening::{CallLimits, Observer, Opening};
use crate::plugin::PluginInner;
use crate::reach::Reach;
use crate::things::HANDLES_MAX;

/// Fuel to instantiate, and to open one resource.
const OPEN_FUEL: u64 = 5_000_000_000;
/// A call of many messages from a plugin that does not say `begin` gets their sum, up to this.
const SUM_FUEL_MAX: u64 = 2_000_000_000;
/// Before the first message begins, and for each message that is handed over: taking a batch
/// apart is no message's own work.
const CALL_FUEL: u64 = 1_000_000;
const HAND_OVER_FUEL: u64 = 200_000;
/// Resources opened in one instance.
pub(crate) const OPENED_MAX: usize = 256;
/// Calls before an instance is replaced, give or take a fifth.
const CALLS_MAX: u32 = 10_000;
/// Part of its memory limit at which an instance is replaced.
const MEMORY_WORN_PERCENT: usize = 75;

/// One instance of a plugin.
pub(crate) struct Instance {
    pub store: Store<Guest>,
    pub exports: Exports,
    pub limits: CallLimits,
    opened: HashMap<u64, Opened>,
    calls_left: u32,
    ticks: u64,
    pub idle_since: Duration,
    wasi_calls: Arc<AtomicU64>,
    plugin: Arc<PluginInner>,
    _place: OwnedSemaphorePermit,
}

struct Opened {
    resource: ResourceAny,
    used: u64,
    alive: Weak<UseToken>,
}

/// Lives as long as something uses an opening.
#[derive(Debug)]
pub(crate) struct UseToken;

/// One opening of a plugin, as an instance knows it.
pub(crate) struct Use {
    pub id: u64,
    pub opening: Opening,
    pub token: Arc<UseToken>,
}

/// Calls into WASI while a call runs, and the fuel they may be worth.
pub(crate) struct WasiMeter {
    calls: Arc<AtomicU64>,
    fuel_max: u64,
}

/// Why a call was ended from outside.
pub(crate) enum Stopped {
    TimedOut,
    /// It lived on calls into WASI.
    Overdrawn,
}

impl Instance {
    /// Instantiates; the guest's own start runs within the time.
    pub async fn new(
        plugin: &Arc<PluginInner>,
        reach: &Arc<Reach>,
        limits: CallLimits,
        observer: &Arc<dyn Observer>,
        place: OwnedSemaphorePermit,
        deadline: Moment,
    ) -> Result<Instance, Box<Fault>> {
        let clock = plugin.runtime.settings.clock.clone();
        let purity = plugin.purity(reach);
        let granted = (reach.clone(), purity);
        let guest = Guest::new(plugin.facts.clone(), granted, &limits, observer.clone(), clock);
        let wasi_calls = guest.wasi_calls();
        let mut store = Store::new(plugin.pre.engine(), guest);
        store.limiter(|guest| &mut guest.memory);
        store.set_hostcall_fuel(limits.copy_bytes);
        let outcome = async {
            store.fuel_async_yield_interval(Some(YIELD_FUEL))?;
            start(&mut store, plugin, observer, &mut std::iter::empty(), OPEN_FUEL, deadline)?;
            let meter = WasiMeter { calls: wasi_calls.clone(), fuel_max: OPEN_FUEL };
            Ok(run(deadline, &meter, plugin.pre.instantiate_async(&mut store)).await)
        };
        let outcome = outcome.await.unwrap_or_else(|error| Ok(Err(error)));
        let loaded = finish(&mut store, plugin, outcome).and_then(|instance| {
            let loaded = plugin.indices.load(&mut store, &instance);
            finish(&mut store, plugin, Ok(loaded))
        });
        let exports = loaded?;
        plugin.counters.instances.fetch_add(1, Ordering::Relaxed);
        Ok(Instance {
            store,
            exports,
            limits,
            opened: HashMap::new(),
            calls_left: rand::rng().random_range(CALLS_MAX * 4 / 5..=CALLS_MAX * 6 / 5),
            ticks: 0,
            idle_since: Duration::ZERO,
            wasi_calls,
            plugin: plugin.clone(),
            _place: place,
        })
    }

    /// Has this opening's resource.
    pub fn has_open(&self, id: u64) -> bool {
        self.opened.contains_key(&id)
    }

    /// Room for one more connection or resource, and not near its end.
    pub fn is_worn(&self) -> bool {
        let guest = self.store.data();
        let worn_bytes = guest.memory.limit / 100 * MEMORY_WORN_PERCENT;
        self.calls_left == 0 || guest.memory.bytes > worn_bytes || guest.things.handed_out() > HANDLES_MAX
    }

    /// The resource of an opening, opened if it is not.
    pub async fn resource(&mut self, user: &Use, deadline: Moment) -> Result<ResourceAny, CallError> {
        self.ticks += 1;
        if let Some(opened) = self.opened.get_mut(&user.id) {
            opened.used = self.ticks;
            return Ok(opened.resource);
        }
        self.make_room(deadline).await.map_err(CallError::Fault)?;
        let opening = &user.opening;
        let context = context_of(opening);
        self.start(&opening.observer, &mut std::iter::empty(), OPEN_FUEL, deadline)
            .map_err(CallError::Fault)?;
        let meter = WasiMeter { calls: self.wasi_calls.clone(), fuel_max: OPEN_FUEL };
        let opened = self.exports.open(&mut self.store, &context);
        let outcome = run(deadline, &meter, opened).await;
        let resource = match self.finish(outcome).map_err(CallError::Fault)? {
            Ok(resource) => resource,
            Err(failure) => return Err(CallError::Open(crate::convert::failure_in(failure))),
        };
        let alive = Arc::downgrade(&user.token);
        self.opened.insert(user.id, Opened { resource, used: self.ticks, alive });
        Ok(resource)
    }

    /// Drops what nobody uses any more, and where it is full the least used.
    async fn make_room(&mut self, deadline: Moment) -> Result<(), Box<Fault>> {
        let mut gone: Vec<u64> =
            self.opened.iter().filter(|(_, o)| o.alive.strong_count() == 0).map(|(id, _)| *id).collect();
        if self.opened.len() - gone.len() >= OPENED_MAX {
            gone.extend(self.opened.iter().min_by_key(|(_, opened)| opened.used).map(|(id, _)| *id));
        }
        for id in gone {
            if let Some(opened) = self.opened.remove(&id) {
                self.drop_resource(opened.resource, deadline).await?;
            }
        }
        Ok(())
    }

    /// Lets the guest drop a resource of its own.
    pub async fn drop_resource(&mut self, resource: ResourceAny, deadline: Moment) -> Result<(), Box<Fault>> {
        let observer = self.store.data().call.observer.clone();
        self.start(&observer, &mut std::iter::empty(), self.limits.fuel_per_message, deadline)?;
        let meter = self.wasi_meter();
        let outcome = run(deadline, &meter, resource.resource_drop_async(&mut self.store)).await;
        self.finish(outcome)
    }

    /// A call begins.
    pub fn start(
        &mut self,
        observer: &Arc<dyn Observer>,
        messages: &mut dyn Iterator<Item = u64>,
        fuel: u64,
        deadline: Moment,
    ) -> Result<(), Box<Fault>> {
        self.calls_left = self.calls_left.saturating_sub(1);
        start(&mut self.store, &self.plugin, observer, messages, fuel, deadline)
            .or_else(|error| finish(&mut self.store, &self.plugin, Ok(Err(error))))
    }

    /// What a call on so many messages starts with: enough to take them apart where the plugin
    /// says `begin`, else the sum of what they may use.
    pub fn fuel_of(&self, messages: usize) -> u64 {
        let messages = messages as u64;
        let one = self.limits.fuel_per_message;
        let hand_over = one.max(CALL_FUEL).saturating_add(messages.saturating_mul(HAND_OVER_FUEL));
        if self.plugin.facts.begins.load(Ordering::Relaxed) {
            return hand_over;
        }
        one.saturating_mul(messages).min(SUM_FUEL_MAX).max(hand_over)
    }

    /// For [`run`].
    pub fn wasi_meter(&self) -> WasiMeter {
        WasiMeter { calls: self.wasi_calls.clone(), fuel_max: self.limits.fuel_per_message.max(SUM_FUEL_MAX) }
    }

    /// A call ended: its value, or the fault it was.
    pub fn finish<T>(&mut self, outcome: Result<wasmtime::Result<T>, Stopped>) -> Result<T, Box<Fault>> {
        finish(&mut self.store, &self.plugin, outcome)
    }

    /// The guest broke the contract in what it answered: about one message, or as a whole. Then no
    /// message is to blame, least of all the one that was begun last.
    pub fn lie(&mut self, text: String, about: Option<u32>) -> Box<Fault> {
        report(&self.store, &self.plugin, FaultKind::Lie, text, about)
    }

    /// What the call used, and where it was.
    pub fn fuel(&self) -> u64 {
        guest::used(&self.store, false)
    }
}

/// Runs a call within its time. On any other end than its own, its instance is unusable.
pub(crate) async fn run<T>(
    deadline: Moment,
    meter: &WasiMeter,
    call: impl Future<Output = wasmtime::Result<T>>,
) -> Result<wasmtime::Result<T>, Stopped> {
    let mut call = pin!(call);
    // The store belongs to the call while it runs; what is not charged in it is looked at when
    // the guest gives way.
    let watched = poll_fn(|context| match call.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Ok(result)),
        Poll::Pending if wasi_is_overdrawn(&meter.calls, meter.fuel_max) => {
            Poll::Ready(Err(Stopped::Overdrawn))
        }
        Poll::Pending => Poll::Pending,
    });
    timeout_at(deadline, watched).await.unwrap_or(Err(Stopped::TimedOut))
}

fn start(
    store: &mut Store<Guest>,
    plugin: &PluginInner,
    observer: &Arc<dyn Observer>,
    messages: &mut dyn Iterator<Item = u64>,
    fuel: u64,
    deadline: Moment,
) -> wasmtime::Result<()> {
    let now = plugin.runtime.settings.clock.now();
    guest::start(store, CallStart { observer, messages, fuel, deadline, now })
}

fn finish<T>(
    store: &mut Store<Guest>,
    plugin: &PluginInner,
    outcome: Result<wasmtime::Result<T>, Stopped>,
) -> Result<T, Box<Fault>> {
    let guest = store.data_mut();
    guest.sink.end();
    guest.call.bodies.clear();
    let (kind, own) = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => classify(&error),
        Err(Stopped::TimedOut) => {
            (FaultKind::TimedOut { in_service: store.data().call.in_service }, String::new())
        }
        Err(Stopped::Overdrawn) => (FaultKind::OutOfFuel, "all fuel is used up by calls into WASI".into()),
    };
    let words = store.data().sink.last_words();
    let text = match kind {
        FaultKind::Lie => own,
        _ if words.is_empty() => own,
        // A panic says all there is to say; of the rest the guest may know nothing.
        FaultKind::Trap => words,
        _ => [own, words].join("\n").trim_start().to_owned(),
    };
    let begun = store.data().call.begun;
    Err(report(store, plugin, kind, text, begun))
}

fn report(
    store: &Store<Guest>,
    plugin: &PluginInner,
    kind: FaultKind,
    text: String,
    begun: Option<u32>,
) -> Box<Fault> {
    let guest = store.data();
    let fault = Box::new(Fault {
        kind,
        text,
        plugin: guest.facts.name.clone(),
        digest: guest.facts.digest.clone(),
        // After a trap the engine's count is not to be trusted: all of it is billed.
        fuel: guest::used(store, kind != FaultKind::Lie),
        memory_bytes: guest.memory.bytes,
        begun,
    });
    plugin.facts.faults.fetch_add(1, Ordering::Relaxed);
    guest.call.observer.fault(&fault);
    fault
}
