//! Everything at once on one database, while its clock runs: a day passes in a moment.
//!
//! Three engines store messages with keys that collide; one of them drains three destinations; operators send
//! again; periods begin, grow old and go, what waits in them is held; how long messages are kept changes; and
//! somebody reads all of it in one long snapshot after another. Nobody may see an error, nobody who stores may
//! wait for the report, and nothing that was stored may be lost. `STRESS_SEED` draws the same again.

mod account;
mod actors;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use portway_model::{
    DestinationId, Epoch, GroupId, InterfaceId, Key, Lane, Quarantined, Retention, Tier, Timestamp,
};
use portway_store::{DedupeWindow, NewDelivery, NewMessage, Registration, Store as _, Topology};
use portway_store_postgres::{Period, PostgresSettings, PostgresStore};

use crate::harness::{Server, message, own};
use account::Account;

/// How long everything goes on.
const LASTS: Duration = Duration::from_secs(22);
/// And this long at most, where what is to grow old has not by then.
const LASTS_MAX: Duration = Duration::from_secs(120);
/// No period goes while a change of how long messages are kept runs: between two there is so much time.
const UNCHANGED: Duration = Duration::from_secs(9);
/// A day of the database takes so long.
const DAY: Duration = Duration::from_millis(250);
const DAY_MS: u64 = 86_400_000;
/// The interface whose destinations are drained, and the one whose destination is away all the time.
const DRAINED: InterfaceId = InterfaceId(1);
const AWAY: InterfaceId = InterfaceId(2);
/// Where messages of [`AWAY`] wait.
const WAITS: DestinationId = DestinationId(4);

/// What all actors share.
struct World {
    server: Server,
    engines: [PostgresStore; 3],
    /// In which the first engine owns the groups.
    epoch: Epoch,
    began: Instant,
    /// Days that passed since then.
    days: AtomicU64,
    /// What there was at the beginning.
    periods: Vec<Period>,
    /// One of these was removed, and some of what waited in it is held.
    has_aged: AtomicBool,
    /// Keys are drawn from here on, from a few.
    keys: AtomicU64,
    account: Account,
}

impl World {
    async fn begin() -> World {
        let server = Server::of_system();
        let settings = server.new_settings_with_clock();
        let mut engines = Vec::new();
        for name in ["one", "two", "three"] {
            let settings = PostgresSettings { engine: name.into(), ..settings.clone() };
            engines.push(PostgresStore::open(settings).await.unwrap());
        }
        let engines: [PostgresStore; 3] = engines.try_into().unwrap_or_else(|_| unreachable!());
        let interfaces = vec![
            kept_for(Tier::ThreeWeeks),
            Registration {
                name: "b".into(),
                destinations: vec!["w".into()],
                retention: Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep },
            },
        ];
        engines[0].register(&Topology { interfaces, now: real_now() }).await.unwrap();
        let epoch = own(&engines[0], &[1, 2]).await.epoch;
        let (days, keys) = (AtomicU64::new(0), AtomicU64::new(0));
        let periods = engines[0].list_periods().await.unwrap();
        World {
            server,
            engines,
            epoch,
            began: Instant::now(),
            days,
            periods,
            has_aged: AtomicBool::new(false),
            keys,
            account: Account::default(),
        }
    }

    /// So long everybody is at work at once.
    fn goes_on(&self) -> bool {
        self.began.elapsed() < LASTS
    }

    /// Until then, and until what is to grow old has: on a slow machine that comes after nobody stores any more.
    fn grows_old(&self) -> bool {
        let has_aged = self.has_aged.load(Ordering::SeqCst);
        self.goes_on() || (self.began.elapsed() < LASTS_MAX && !has_aged)
    }

    /// By the clock that runs.
    fn now(&self) -> Timestamp {
        Timestamp(real_now().0 + self.days.load(Ordering::SeqCst) * DAY_MS)
    }

    /// A message with a key that others draw as well.
    fn draw_message(&self, chance: &mut Chance) -> NewMessage {
        let key = self.keys.load(Ordering::SeqCst) + chance.below(60);
        let new = NewMessage {
            dedupe: Some(DedupeWindow(Duration::from_secs(86_400 * 4_000))),
            received_at: self.now(),
            ..message(body(key))
        };
        let mut new = match chance.below(5) {
            0 => NewMessage {
                interface: AWAY,
                group: GroupId(2),
                deliveries: vec![NewDelivery { destination: WAITS, lane: Lane::FIRST }],
                ..new
            },
            _ => new,
        };
        new.draft.dedupe = Key::new(&key.to_string());
        new
    }
}

/// Most are small, some are stored in several pieces.
fn body(key: u64) -> Bytes {
    let text = format!("body of {key}");
    match key % 400 {
        7 => Bytes::from(text.repeat(120_000)),
        _ => Bytes::from(text),
    }
}

fn kept_for(tier: Tier) -> Registration {
    let destinations = ["x", "y", "z"].map(str::to_owned).to_vec();
    Registration {
        name: "a".into(),
        destinations,
        retention: Retention { tier, quarantined: Quarantined::Keep },
    }
}

fn real_now() -> Timestamp {
    Timestamp(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap())
}

/// Draws the same for the same seed.
struct Chance(u64);

impl Chance {
    /// Each actor has its own.
    fn new(seed: u64, actor: u64) -> Chance {
        Chance((seed ^ (actor << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_at_once_without_an_error_or_a_loss_and_nobody_waits_for_the_report() {
    let seed = std::env::var("STRESS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| real_now().0 % 1_000_000);
    println!("STRESS_SEED={seed}");
    let world = Arc::new(World::begin().await);
    let seen = actors::play(&world, seed).await;
    println!("{seen:?}");
    actors::drain_all(&world).await;

    assert_eq!(seen.waits_for_report, [""; 0], "somebody who stores waited for the report");
    assert!(seen.removed > 100 && seen.moved > 20, "{seen:?}");
    assert!(seen.looks > 50 && seen.reports > 1 && seen.resent > 20 && seen.changes > 0, "{seen:?}");
    let now = world.engines[0].list_periods().await.unwrap();
    assert!(world.periods.iter().any(|period| !now.contains(period)), "nothing went: {now:?}");
    assert!(now.iter().any(|period| !world.periods.contains(period)), "{now:?}");
    world.account.check(&world).await;
}
