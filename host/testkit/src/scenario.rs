//! What one seed plays: a small project with tight limits, and how often what goes wrong.

use std::num::NonZeroU32;
use std::time::Duration;

use portway_engine::{DestinationSettings, EngineSettings, InterfaceSettings, Limits};
use portway_model::{
    DestinationId, GroupId, Guarantee, InterfaceId, OnQuarantine, Order, OverRate, Per, Rate, RateLimit,
    Retention, RetryPolicy,
};
use portway_store::{Durability, Registered, Registration, Topology};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use crate::world::any_retention;

/// Longer than any run takes.
const SEND_MAX: Duration = Duration::from_secs(60);

/// See the file.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// There is no second engine.
    pub is_alone: bool,
    pub limits: Limits,
    pub interfaces: Vec<Interface>,
    pub rates: Rates,
    /// Submissions of all clients together before faults cease.
    pub submissions: u32,
    /// Connections of an interface.
    pub clients: u32,
    /// The store never takes the result of a filtered delivery.
    pub refuses_filtered: bool,
}

/// One interface of a scenario.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: String,
    pub durability: Durability,
    pub dedupe_window: Option<Duration>,
    pub retention: Retention,
    /// Only reached by routes.
    pub is_target: bool,
    pub destinations: Vec<Destination>,
}

/// One destination of a scenario.
#[derive(Clone, Debug)]
pub struct Destination {
    pub name: String,
    pub order: Order,
    pub concurrency: u32,
    pub retry: RetryPolicy,
    pub on_quarantine: OnQuarantine,
    pub run_max: u32,
    pub rate: Option<RateLimit>,
    pub guarantee: Guarantee,
    /// It routes to the last interface.
    pub routes: bool,
}

/// How often something goes wrong, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// A write fails, loses its answer, or is refused.
    pub write_fault: f64,
    /// A read fails.
    pub read_fault: f64,
    /// A call of the store takes long.
    pub slow: f64,
    /// A run ends in trouble of the whole destination.
    pub trouble: f64,
    /// A report is a lie.
    pub lie: f64,
    /// A run takes very long.
    pub hang: f64,
    /// A message is of a kind that does not simply arrive.
    pub odd: f64,
    /// The process or the machine dies, per submission.
    pub death: f64,
    /// An operator does something, per submission.
    pub operator: f64,
    /// The wall clock steps, per submission.
    pub clock_step: f64,
    /// The store has no room for a while, per submission.
    pub full: f64,
    /// An engine loses its lock, per submission; a notification of another one is lost.
    pub locks: f64,
    /// The machine of the store ends, and the engines live on, per submission.
    pub server: f64,
    /// Days pass at once, per submission.
    pub leap: f64,
    /// The clock is wrong by years for hours, per submission.
    pub wrong_clock: f64,
}

impl Scenario {
    pub fn new(rng: &mut impl Rng) -> Self {
        let count = rng.random_range(1..=3);
        let mut interfaces: Vec<Interface> = (0..count).map(|n| interface(n, rng)).collect();
        if rng.random_bool(0.4) {
            interfaces.push(Interface { is_target: true, ..interface(count, rng) });
            for destination in interfaces.iter_mut().take(count).flat_map(|from| from.destinations.iter_mut())
            {
                destination.routes = rng.random_bool(0.3);
                if destination.routes {
                    destination.guarantee = Guarantee::AtLeastOnce;
                }
            }
        }
        Scenario {
            is_alone: rng.random_bool(0.3),
            limits: limits(rng),
            interfaces,
            rates: rates(rng),
            submissions: rng.random_range(10..80),
            clients: rng.random_range(1..=4),
            refuses_filtered: rng.random_bool(0.1),
        }
    }

    pub fn topology(&self) -> Topology {
        let registration = |interface: &Interface| Registration {
            name: interface.name.clone(),
            retention: interface.retention,
            destinations: interface.destinations.iter().map(|destination| destination.name.clone()).collect(),
        };
        let interfaces = self.interfaces.iter().map(registration).collect();
        Topology { interfaces, ..Topology::default() }
    }

    pub fn settings(&self, registered: &Registered) -> EngineSettings {
        let pairs = self.interfaces.iter().zip(&registered.interfaces);
        let interfaces =
            pairs.map(|(interface, (id, destinations))| interface.settings(*id, destinations)).collect();
        EngineSettings {
            interfaces,
            limits: self.limits,
            pauses: registered.pauses.clone(),
            retentions: registered.retentions.clone(),
            aged_to: registered.aged_to,
        }
    }
}

impl Interface {
    fn settings(&self, id: InterfaceId, destinations: &[DestinationId]) -> InterfaceSettings {
        let pairs = self.destinations.iter().zip(destinations);
        InterfaceSettings {
            id,
            group: GroupId(id.0),
            name: self.name.clone(),
            durability: self.durability,
            dedupe_window: self.dedupe_window,
            search: vec!["key".to_owned()],
            destinations: pairs.map(|(destination, id)| destination.settings(*id)).collect(),
        }
    }
}

impl Destination {
    fn settings(&self, id: DestinationId) -> DestinationSettings {
        DestinationSettings {
            id,
            name: self.name.clone(),
            order: self.order,
            concurrency: self.concurrency,
            retry: self.retry,
            on_quarantine: self.on_quarantine,
            run_max: self.run_max,
            rate: self.rate,
            guarantee: self.guarantee,
            send_max: SEND_MAX,
        }
    }
}

fn interface(number: usize, rng: &mut impl Rng) -> Interface {
    let count = rng.random_range(1..=3);
    let destinations: Vec<Destination> = (0..count).map(|n| destination(n, rng)).collect();
    Interface {
        name: format!("interface-{number}"),
        durability: if rng.random_bool(0.7) { Durability::Strict } else { Durability::Relaxed },
        dedupe_window: rng.random_bool(0.5).then_some(Duration::from_secs(3_600)),
        retention: any_retention(&destinations, rng),
        is_target: false,
        destinations,
    }
}

fn destination(number: usize, rng: &mut impl Rng) -> Destination {
    let first_wait = Duration::from_millis(rng.random_range(1..2_000));
    Destination {
        name: format!("destination-{number}"),
        order: *[Order::Strict, Order::Key, Order::None].choose(rng).unwrap_or(&Order::Key),
        concurrency: rng.random_range(1..=4),
        retry: RetryPolicy {
            first_wait,
            longest_wait: first_wait * rng.random_range(1..20),
            jitter_percent: rng.random_range(0..=100),
            attempts_max: if rng.random_bool(0.5) { 0 } else { rng.random_range(1..6) },
        },
        on_quarantine: if rng.random_bool(0.4) { OnQuarantine::Hold } else { OnQuarantine::Continue },
        run_max: rng.random_range(1..=8),
        rate: rng.random_bool(0.25).then(|| rate(rng)),
        guarantee: if rng.random_bool(0.25) { Guarantee::AtMostOnce } else { Guarantee::AtLeastOnce },
        routes: false,
    }
}

/// Slow enough that it matters, fast enough that everything drains.
fn rate(rng: &mut impl Rng) -> RateLimit {
    let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    let per = *[Per::Second, Per::Minute].choose(rng).unwrap_or(&Per::Second);
    RateLimit {
        rate: Rate { count: number(rng.random_range(20..=200)), per },
        burst: number(rng.random_range(1..=10)),
        over: if rng.random_bool(0.6) { OverRate::Wait } else { OverRate::Drop },
    }
}

fn limits(rng: &mut impl Rng) -> Limits {
    Limits {
        batch_messages_max: rng.random_range(1..20),
        batch_bytes_max: rng.random_range(1_000..64_000),
        intake_bytes_max: rng.random_range(4_000..100_000),
        waiting_bytes_max: rng.random_range(1_000..60_000),
        waiting_max: rng.random_range(1..80),
        runs_max: rng.random_range(1..10),
        unflushed_max: rng.random_range(1..24),
        prune_every: Duration::from_secs(if rng.random_bool(0.5) { 3 } else { 0 }),
    }
}

/// Some seeds are calm, most have a few things that go wrong often, a few have them all.
fn rates(rng: &mut impl Rng) -> Rates {
    let mut rate = |highest: f64| if rng.random_bool(0.5) { rng.random_range(0.0..highest) } else { 0.0 };
    Rates {
        write_fault: rate(0.3),
        read_fault: rate(0.3),
        slow: rate(0.3),
        trouble: rate(0.3),
        lie: rate(0.1),
        hang: rate(0.1),
        odd: rate(0.4),
        death: rate(0.06),
        operator: rate(0.5),
        clock_step: rate(0.1),
        full: rate(0.05),
        locks: rate(0.1),
        server: rate(0.06),
        leap: rate(0.1),
        wrong_clock: rate(0.1),
    }
}
