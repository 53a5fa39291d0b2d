//! What the host keeps for one instance: the state of the call at hand, its fuel, its memory,
//! its handles.
//!
//! Host functions see a guest as this. What a service does is in `services`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use portway_model::Timestamp;
use tokio::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, StoreContextMut};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::cost::Marks;
use crate::engine::YIELD_FUEL;
use crate::fault::Halt;
use crate::guest_time::{GuestClock, GuestRandom, Purity};
use crate::opening::{CallLimits, Observer};
use crate::output::{Sink, Throttle, Which};
use crate::reach::Reach;
use crate::services::Outbound;
use crate::settings::RuntimeClock;
use crate::state::{Sight, StateLog};
use crate::things::Things;

/// A call into WASI, which charges nothing itself.
pub(crate) const WASI_FUEL: u64 = 2_000;
/// Elements of all tables of an instance.
const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Core instances, memories and tables of one component; interpreters need nine.
const PARTS_MAX: usize = 64;
/// What an instance may have of WASI at the same time: streams, headers, bodies and the like.
const WASI_THINGS_MAX: usize = 1_024;
/// Bytes of the headers of one request or answer.
const FIELDS_BYTES_MAX: usize = 64 << 10;
/// Random bytes of one call into WASI.
const RANDOM_BYTES_MAX: u64 = 64 << 10;
/// Left of a call's time when a service gives up waiting, so that the guest can answer.
pub(crate) const ANSWER_TIME: Duration = Duration::from_millis(50);

/// What is known of a plugin in all its instances.
pub(crate) struct PluginFacts {
    pub name: String,
    pub digest: String,
    pub digest_bytes: [u8; 32],
    pub throttle: Arc<Throttle>,
    /// It has said `begin` once: then it always does.
    pub begins: AtomicBool,
    /// Codes it gave notice of; beyond the limit they are one.
    pub notices: std::sync::Mutex<std::collections::BTreeSet<String>>,
    pub dropped_attributes: AtomicU64,
    pub faults: AtomicU64,
}

/// One instance, as host functions see it.
pub(crate) struct Guest {
    wasi: WasiCtx,
    wasi_http: WasiHttpCtx,
    table: ResourceTable,
    wasi_calls: Arc<AtomicU64>,
    outbound: Outbound,
    pub purity: Purity,
    pub memory: MemoryUse,
    pub call: CallState,
    pub meter: Meter,
    pub things: Things,
    pub reach: Arc<Reach>,
    pub sink: Sink,
    pub clock: GuestClock,
    pub random: GuestRandom,
    pub facts: Arc<PluginFacts>,
}

/// The call at hand.
pub(crate) struct CallState {
    pub observer: Arc<dyn Observer>,
    /// The messages `begin` may name.
    pub messages: Vec<u64>,
    /// Their bodies, where the plugin may send them by itself.
    pub bodies: Vec<Bytes>,
    pub begun: Option<u32>,
    pub sent: Vec<u32>,
    /// Something was done in the world that a peer may see.
    pub reached: bool,
    pub fuel_per_message: u64,
    /// What its messages keep.
    pub state: StateLog,
    pub sight: Sight,
    /// Places of its messages in the batch, where they are others than in the call.
    pub state_indexes: Vec<u32>,
    /// Where it was when, if somebody wants to know.
    pub marks: Option<Marks>,
    /// Waiting for the world, not computing.
    pub in_service: bool,
    pub deadline: Instant,
}

/// What a call starts with.
pub(crate) struct CallStart<'a> {
    pub observer: &'a Arc<dyn Observer>,
    pub messages: &'a mut dyn Iterator<Item = u64>,
    pub fuel: u64,
    pub deadline: Instant,
    pub now: Timestamp,
}

/// Fuel of the call at hand.
#[derive(Default)]
pub(crate) struct Meter {
    /// What the store was given last, and what was charged since without asking the store.
    given: u64,
    used: u64,
    debt: u64,
    /// Fuel when a service was last paid for.
    seen: u64,
    /// Used since the guest last gave way; setting fuel starts the engine's own count anew.
    unyielded: u64,
}

/// All memories of an instance together.
pub(crate) struct MemoryUse {
    pub bytes: usize,
    pub limit: usize,
    elements: usize,
}

impl Guest {
    pub fn new(
        facts: Arc<PluginFacts>,
        (reach, purity): (Arc<Reach>, Purity),
        limits: &CallLimits,
        observer: Arc<dyn Observer>,
        world: Arc<dyn RuntimeClock>,
    ) -> Guest {
        let sink = Sink::new(facts.throttle.clone(), observer.clone());
        let clock = GuestClock::new(purity, world);
        let random = GuestRandom::new(purity, facts.digest_bytes);
        // No folder, no socket: what is not put in here is refused.
        let mut wasi = WasiCtx::builder();
        wasi.stdout(sink.stream(Which::Out))
            .stderr(sink.stream(Which::Err))
            .secure_random(random.clone())
            .insecure_random(random.clone())
            .insecure_random_seed(random.seed_of_plugin())
            .max_random_size(RANDOM_BYTES_MAX)
            .wall_clock(clock.clone())
            .monotonic_clock(clock.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .envs(&reach.environment);
        let mut wasi_http = WasiHttpCtx::new();
        wasi_http.set_field_size_limit(FIELDS_BYTES_MAX);
        let mut table = ResourceTable::new();
        table.set_max_capacity(WASI_THINGS_MAX);
        let wasi_calls = Arc::<AtomicU64>::default();
        let outbound = Outbound::new(reach.clone(), wasi_calls.clone(), purity == Purity::Pure);
        Guest {
            wasi: wasi.build(),
            wasi_http,
            table,
            wasi_calls,
            outbound,
            purity,
            memory: MemoryUse { bytes: 0, limit: limits.memory_bytes, elements: 0 },
            call: CallState {
                observer,
                messages: Vec::new(),
                bodies: Vec::new(),
                begun: None,
                sent: Vec::new(),
                reached: false,
                fuel_per_message: limits.fuel_per_message,
                state: StateLog::default(),
                sight: Sight::default(),
                state_indexes: Vec::new(),
                marks: None,
                in_service: false,
                deadline: Instant::now(),
            },
            meter: Meter::default(),
            things: Things::default(),
            reach,
            sink,
            clock,
            random,
            facts,
        }
    }

    /// Calls into WASI that are not paid for yet; readable while the guest runs.
    pub fn wasi_calls(&self) -> Arc<AtomicU64> {
        self.wasi_calls.clone()
    }

    /// Something was done in the world in the call at hand.
    pub fn has_reached(&self) -> bool {
        self.call.reached || self.outbound.reached
    }

    /// How long a service may wait when the guest asked for so long.
    pub fn wait_of(&self, asked: Duration) -> Duration {
        let left = self.call.deadline.saturating_duration_since(Instant::now()).saturating_sub(ANSWER_TIME);
        asked.min(left)
    }

    /// Awaits the world's answer; time that runs out meanwhile is not the guest's fault.
    pub async fn serve<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.call.in_service = true;
        let answer = work.await;
        self.call.in_service = false;
        answer
    }
}

/// A call begins.
pub(crate) fn start(store: &mut wasmtime::Store<Guest>, start: CallStart<'_>) -> wasmtime::Result<()> {
    store.set_fuel(start.fuel)?;
    let guest = store.data_mut();
    guest.wasi_calls.store(0, Ordering::Relaxed);
    guest.meter = Meter { given: start.fuel, seen: start.fuel, ..Meter::default() };
    guest.sink.begin(start.observer);
    (guest.outbound.deadline, guest.outbound.reached) = (start.deadline, false);
    guest.clock.set(start.now);
    let call = &mut guest.call;
    if !Arc::ptr_eq(&call.observer, start.observer) {
        call.observer = start.observer.clone();
    }
    call.messages.clear();
    call.messages.extend(start.messages);
    call.bodies.clear();
    call.begun = None;
    call.sent.clear();
    call.reached = false;
    call.state = StateLog::default();
    call.sight = Sight::default();
    call.state_indexes.clear();
    call.marks = None;
    call.in_service = false;
    call.deadline = start.deadline;
    guest.random.reseed(call.messages.first().copied().unwrap_or(0));
    Ok(())
}

/// What the call at hand has used, and all of it where the count is not to be trusted.
pub(crate) fn used(store: &wasmtime::Store<Guest>, all: bool) -> u64 {
    let meter = &store.data().meter;
    let left = if all { 0 } else { store.get_fuel().unwrap_or(0) };
    meter.used + meter.given.saturating_sub(left)
}

/// The guest begins with a message: fuel, clock and chance are this message's from here on.
pub(crate) fn begin(store: &mut StoreContextMut<'_, Guest>, index: u32) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let guest = store.data_mut();
    let Some(message) = guest.call.messages.get(index as usize).copied() else {
        if guest.call.messages.is_empty() {
            // While it is opened, or a source: there is nothing to begin with.
            return Ok(());
        }
        let of = guest.call.messages.len();
        return Err(Halt::Lie(format!("`begin({index})` in a batch of {of}")).into());
    };
    match guest.call.begun {
        Some(begun) if begun == index => return Ok(()),
        Some(begun) if begun > index => {
            return Err(Halt::Lie(format!("`begin({index})` after `begin({begun})`")).into());
        }
        _ => {}
    }
    guest.call.begun = Some(index);
    guest.facts.begins.store(true, Ordering::Relaxed);
    guest.clock.rewind();
    guest.random.reseed(message);
    let fuel = guest.call.fuel_per_message;
    guest.wasi_calls.store(0, Ordering::Relaxed);
    let meter = &mut guest.meter;
    meter.used += meter.given.saturating_sub(left);
    meter.unyielded += meter.seen.saturating_sub(left);
    (meter.given, meter.seen, meter.debt) = (fuel, fuel, 0);
    if let Some(marks) = &mut guest.call.marks {
        marks.begin(index, guest.meter.used);
    }
    store.set_fuel(fuel)
}

/// Takes the price of a service, and gives way where a guest lives on services alone.
pub(crate) async fn pay(store: &mut StoreContextMut<'_, Guest>, price: u64) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let guest = store.data_mut();
    let owed = price + guest.meter.debt + guest.wasi_calls.swap(0, Ordering::Relaxed) * WASI_FUEL;
    guest.meter.debt = 0;
    if owed >= left {
        store.set_fuel(0)?;
        return Err(Halt::OutOfFuel.into());
    }
    let meter = &mut guest.meter;
    meter.unyielded += meter.seen.saturating_sub(left) + owed;
    meter.seen = left - owed;
    let gives_way = meter.unyielded >= YIELD_FUEL;
    if gives_way {
        meter.unyielded = 0;
    }
    store.set_fuel(left - owed)?;
    if gives_way {
        tokio::task::yield_now().await;
    }
    Ok(())
}

impl Meter {
    /// Charged with the next service: what an answer costs is known only when it is there.
    pub fn owe(&mut self, fuel: u64) {
        self.debt += fuel;
    }
}

/// Whether the calls into WASI alone are worth more than a message may use.
pub(crate) fn wasi_is_overdrawn(wasi_calls: &AtomicU64, limit: u64) -> bool {
    wasi_calls.load(Ordering::Relaxed).saturating_mul(WASI_FUEL) > limit
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi_calls.fetch_add(1, Ordering::Relaxed);
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.wasi_calls.fetch_add(1, Ordering::Relaxed);
        WasiHttpCtxView { ctx: &mut self.wasi_http, table: &mut self.table, hooks: &mut self.outbound }
    }
}

impl ResourceLimiter for MemoryUse {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.bytes.saturating_add(desired.saturating_sub(current));
        if wanted > self.limit {
            // `Ok(false)` would become an abort inside the guest, and the reason would be lost.
            return Err(Halt::OutOfMemory { wanted, limit: self.limit }.into());
        }
        self.bytes = wanted;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.elements.saturating_add(desired.saturating_sub(current));
        if wanted > TABLE_ELEMENTS_MAX {
            return Err(Halt::OutOfMemory { wanted, limit: TABLE_ELEMENTS_MAX }.into());
        }
        self.elements = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}

#[cfg(test)]
impl PluginFacts {
    pub fn for_test() -> PluginFacts {
        PluginFacts {
            name: "p".into(),
            digest: String::new(),
            digest_bytes: [0; 32],
            throttle: Arc::new(Throttle::new(Arc::new(crate::settings::SystemClock::default()))),
            begins: AtomicBool::new(false),
            notices: std::sync::Mutex::default(),
            dropped_attributes: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::opening::Unobserved;
    use crate::settings::SystemClock;

    fn guest() -> Guest {
        let facts = Arc::new(PluginFacts::for_test());
        let (observer, world) = (Arc::new(Unobserved), Arc::new(SystemClock::default()));
        Guest::new(facts, (Arc::default(), Purity::Pure), &CallLimits::default(), observer, world)
    }

    #[test]
    fn a_call_cut_short_in_a_service_is_known_to_have_waited() {
        let mut guest = guest();
        {
            let mut waiting = pin!(guest.serve(std::future::pending::<()>()));
            let polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(polled, Poll::Pending);
        }
        assert!(guest.call.in_service);
        {
            let mut served = pin!(guest.serve(std::future::ready(7)));
            assert_eq!(served.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(7));
        }
        assert!(!guest.call.in_service);
    }

    #[tokio::test]
    async fn a_service_gives_up_before_the_call_does() {
        let mut guest = guest();
        guest.call.deadline = Instant::now() + Duration::from_secs(10);
        assert_eq!(guest.wait_of(Duration::from_secs(1)), Duration::from_secs(1));
        let longest = guest.wait_of(Duration::from_secs(3600));
        assert!(longest < Duration::from_secs(10) && longest > Duration::from_secs(9), "{longest:?}");
        guest.call.deadline = Instant::now();
        assert_eq!(guest.wait_of(Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn memories_and_tables_are_limited_together() {
        let mut memory = MemoryUse { bytes: 0, limit: 100, elements: 0 };
        assert!(memory.memory_growing(0, 60, None).is_ok());
        assert!(memory.memory_growing(0, 30, None).is_ok());
        let error = memory.memory_growing(30, 50, None).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Halt::OutOfMemory { wanted: 110, limit: 100 }));
        assert_eq!(memory.bytes, 90);
        assert!(memory.table_growing(0, TABLE_ELEMENTS_MAX, None).is_ok());
        assert!(memory.table_growing(0, 1, None).is_err());
    }
}
