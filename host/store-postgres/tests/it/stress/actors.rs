//! Who does what at the same time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use portway_model::{Answer, AttemptNo, DestinationId, Failure, Lane, MessageId, Tier};
use portway_store::{
    Action, ActionKind, ActionOutcome, Attempted, ConfirmRetention, DeliveryResult, Durability, Expiry,
    MoveRetention, Pending, ResultOutcome, Settled, Store as _, Topology, WriteBatch,
};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tokio::task::JoinSet;

use super::account::identity;
use super::{Chance, DAY, DRAINED, UNCHANGED, World, kept_for};
use crate::harness::{batch, sent};

/// What somebody saw or did in the meantime.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What a session that stores was about while it waited for the report.
    pub(super) waits_for_report: Vec<String>,
    /// How often it was looked for.
    pub(super) looks: usize,
    pub(super) reports: usize,
    pub(super) resent: usize,
    /// Of how long messages are kept.
    pub(super) changes: usize,
    pub(super) removed: u64,
    pub(super) moved: u64,
}

impl Seen {
    fn add(&mut self, mut other: Seen) {
        self.waits_for_report.append(&mut other.waits_for_report);
        self.looks += other.looks;
        self.reports += other.reports;
        self.resent += other.resent;
        self.changes += other.changes;
        self.removed += other.removed;
        self.moved += other.moved;
    }
}

pub(super) async fn play(world: &Arc<World>, seed: u64) -> Seen {
    let mut actors = JoinSet::new();
    let chance = |actor| Chance::new(seed, actor);
    let own = || Arc::clone(world);
    actors.spawn(days_pass(own()));
    for engine in 0..3 {
        actors.spawn(store(own(), engine, chance(engine as u64)));
    }
    for destination in 1..=3 {
        actors.spawn(drain(own(), DestinationId(destination), chance(10 + u64::from(destination))));
    }
    actors.spawn(send_again(own(), chance(20)));
    actors.spawn(keep_house(own()));
    actors.spawn(expire(own()));
    actors.spawn(move_messages(own()));
    actors.spawn(change_retention(own()));
    actors.spawn(report(own()));
    actors.spawn(watch(own()));
    let mut seen = Seen::default();
    while let Some(ended) = actors.join_next().await {
        seen.add(ended.unwrap());
    }
    seen
}

/// A little room for others: the machine is small. It is the pace of an actor, and nothing is waited for.
async fn breathe() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

async fn connect(world: &World, name: &str) -> PgConnection {
    let url = format!("{}&application_name={name}", world.server.url());
    PgConnection::connect(&url).await.unwrap()
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

async fn ask(connection: &mut PgConnection, sql: &'static str) -> bool {
    sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
}

/// Messages have their partitions last; a week begins on Monday.
const IS_TOMORROW_READY: &str = "SELECT
        to_regclass('messages_t7_' || to_char(day, 'YYYYMMDD')) IS NOT NULL
        AND to_regclass('messages_t21_' || to_char(date_trunc('week', day), 'YYYYMMDD')) IS NOT NULL
        AND to_regclass('messages_t49_' || to_char(date_trunc('week', day), 'YYYYMMDD')) IS NOT NULL
    FROM (SELECT clock_timestamp() AT TIME ZONE 'UTC' + make_interval(days => days + 1) FROM clock)
        AS tomorrow (day)";
/// What waits for a destination that is away is held beyond its time.
const IS_ENOUGH_HELD: &str = "SELECT count(*) > 5 FROM messages WHERE tier = 0 AND interface_id = 2";

/// Housekeeping comes often in a day, and days ahead; here a day waits for it.
async fn days_pass(world: Arc<World>) -> Seen {
    let mut clock = connect(&world, "clock").await;
    let mut every = tokio::time::interval(DAY);
    while world.grows_old() {
        every.tick().await;
        while !ask(&mut clock, IS_TOMORROW_READY).await {
            if !world.grows_old() {
                return Seen::default();
            }
            breathe().await;
        }
        run(&mut clock, "UPDATE clock SET days = days + 1").await;
        world.days.fetch_add(1, Ordering::SeqCst);
        let periods = world.engines[2].list_periods().await.unwrap();
        let went = world.periods.iter().any(|period| !periods.contains(period));
        if went && ask(&mut clock, IS_ENOUGH_HELD).await {
            world.has_aged.store(true, Ordering::SeqCst);
        }
    }
    Seen::default()
}

async fn store(world: Arc<World>, engine: usize, mut chance: Chance) -> Seen {
    while world.goes_on() {
        world.keys.fetch_add(4, Ordering::SeqCst);
        let count = 1 + chance.below(30);
        let messages: Vec<_> = (0..count).map(|_| world.draw_message(&mut chance)).collect();
        let identities: Vec<_> = messages.iter().map(identity).collect();
        let durability = if chance.below(4) == 0 { Durability::Strict } else { Durability::Relaxed };
        let write = WriteBatch { now: world.now(), messages, ..batch(durability) };
        let outcome = world.engines[engine].write(write).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("an error reaches a sender: {error:?}"));
        world.account.stored(&identities, &outcome.messages);
        breathe().await;
    }
    Seen::default()
}

/// All that is pending at a destination, some at a time.
async fn pending(world: &World, destination: DestinationId) -> Vec<Pending> {
    let store = &world.engines[0];
    let mut all = store.read_lane(destination, Lane::FIRST, MessageId::ZERO, 200).await.unwrap();
    all.extend(store.read_lane(destination, Lane::APART, MessageId::ZERO, 200).await.unwrap());
    all.extend(store.read_due(destination, world.now(), 200).await.unwrap());
    all.sort_by_key(|pending| pending.message);
    all.dedup_by_key(|pending| pending.message);
    all
}

async fn settle(world: &World, results: Vec<DeliveryResult>) {
    let told: Vec<_> = results
        .iter()
        .map(|result| (result.destination, result.message, matches!(result.settled, Settled::Sent(_))))
        .collect();
    let write = WriteBatch { now: world.now(), results, ..batch(Durability::Relaxed) };
    let outcome = world.engines[0].write(write).await.unwrap();
    for ((destination, message, is_sent), outcome) in told.into_iter().zip(outcome.results) {
        match outcome {
            ResultOutcome::Applied(_) if is_sent => world.account.sent(destination, message),
            ResultOutcome::Applied(_) => {}
            // An operator's round came between.
            ResultOutcome::Stale => {}
            ResultOutcome::Disowned => panic!("the owner was another for {message:?}"),
        }
    }
}

async fn drain(world: Arc<World>, destination: DestinationId, mut chance: Chance) -> Seen {
    while world.grows_old() {
        let mut results = Vec::new();
        for pending in pending(&world, destination).await {
            let settled = match chance.below(40) {
                0 => Settled::Quarantined(Failure::new("bad", "no good")),
                1 | 2 => {
                    let due_at = world.now() + Duration::from_secs(3_600);
                    Settled::Retry { due_at, failure: Failure::new("busy", "later") }
                }
                _ => Settled::Sent(Answer::default()),
            };
            let attempted = Some(Attempted { started_at: world.now(), took: Duration::from_millis(3) });
            results.push(result(&world, destination, &pending, settled, attempted));
        }
        settle(&world, results).await;
        breathe().await;
    }
    Seen::default()
}

fn result(
    world: &World,
    destination: DestinationId,
    pending: &Pending,
    settled: Settled,
    attempted: Option<Attempted>,
) -> DeliveryResult {
    let attempts: AttemptNo = pending.attempts.next();
    let Pending { message, round, .. } = *pending;
    DeliveryResult {
        epoch: world.epoch,
        round,
        attempts,
        settled,
        attempted,
        ..sent(message.0, destination.0)
    }
}

/// Sends what is left; nobody else is at work any more.
pub(super) async fn drain_all(world: &World) {
    // What waits for its time is due by then.
    let days = world.days.fetch_add(1, Ordering::SeqCst) + 1;
    world.server.set_clock(i64::try_from(days).unwrap());
    for destination in (1..=3).map(DestinationId) {
        loop {
            let waiting = pending(world, destination).await;
            if waiting.is_empty() {
                break;
            }
            let all = waiting.iter();
            let all = all.map(|one| result(world, destination, one, Settled::Sent(Answer::default()), None));
            settle(world, all.collect()).await;
        }
    }
}

async fn send_again(world: Arc<World>, mut chance: Chance) -> Seen {
    let mut seen = Seen::default();
    while world.goes_on() {
        let back = usize::try_from(chance.below(400)).unwrap();
        if let Some(message) = world.account.draw(back) {
            let kind = ActionKind::Resend { keep_lane: chance.below(2) == 0 };
            let (author, reason) = ("ann".into(), String::new());
            let action = Action { message, destination: None, kind, author, reason, request: None };
            let actions = vec![action];
            let write = WriteBatch { now: world.now(), actions, ..batch(Durability::Strict) };
            let outcome = world.engines[1].write(write).await.unwrap();
            match &outcome.actions[..] {
                [ActionOutcome::Done(changed)] => seen.resent += changed.len(),
                // It was done, grew old and is gone, or going.
                [ActionOutcome::NoMessage | ActionOutcome::NoBody] => {}
                other => panic!("{other:?}"),
            }
        }
        breathe().await;
    }
    seen
}

async fn keep_house(world: Arc<World>) -> Seen {
    while world.grows_old() {
        for engine in &world.engines {
            engine.maintain(Duration::ZERO).await.unwrap();
        }
        // Its pace: the days of the database are short here.
        tokio::time::sleep(DAY / 5).await;
    }
    Seen::default()
}

async fn expire(world: Arc<World>) -> Seen {
    let mut seen = Seen::default();
    while world.grows_old() {
        let now = world.now();
        let expired = world.engines[0].expire(&Expiry { now, aged_to: now, limit: 200 }).await.unwrap();
        seen.removed += expired.messages;
        breathe().await;
    }
    seen
}

async fn move_messages(world: Arc<World>) -> Seen {
    let mut seen = Seen::default();
    while world.grows_old() {
        let now = world.now();
        let step = MoveRetention { interface: DRAINED, age_now: now, now, limit: 100 };
        seen.moved += world.engines[0].move_retention(&step).await.unwrap().moved;
        breathe().await;
    }
    seen
}

/// Each change is wanted, confirmed if it has to be, and over a while before the next one. The last one may
/// still run in the end.
async fn change_retention(world: Arc<World>) -> Seen {
    let mut seen = Seen::default();
    let operator = &world.engines[2];
    for tier in [Tier::OneWeek, Tier::ThreeWeeks, Tier::SevenWeeks].into_iter().cycle() {
        let now = world.now();
        operator.register(&Topology { interfaces: vec![kept_for(tier)], now }).await.unwrap();
        let (author, reason) = ("ann".into(), "a test".into());
        operator
            .confirm_retention(&ConfirmRetention { interface: DRAINED, now, author, reason })
            .await
            .unwrap();
        loop {
            let listed = operator.list_retention(world.now()).await.unwrap();
            let view = listed.iter().find(|view| view.interface == DRAINED).unwrap();
            if view.state.change.is_none() {
                break;
            }
            if !world.goes_on() {
                return seen;
            }
            // Before the next look: the store gives no sign when a change is over.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        seen.changes += 1;
        let over = Instant::now() + UNCHANGED;
        while Instant::now() < over {
            if !world.goes_on() {
                return seen;
            }
            // Time without a change is what is asked for here; it is cut short when all is over.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    seen
}

/// All of it in one snapshot, slowly and twice; between two reports nobody reads for a moment.
async fn report(world: Arc<World>) -> Seen {
    let mut seen = Seen::default();
    let mut reader = connect(&world, "report").await;
    run(
        &mut reader,
        "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
    )
    .await;
    let all = "SELECT count(*), sum(length(b.bytes)) FROM messages m JOIN deliveries d ON d.message_id = m.id
        JOIN bodies b ON b.message_id = m.id";
    while world.goes_on() {
        run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        let mut counted = Vec::new();
        for _ in 0..2 {
            let row = sqlx::query(all).fetch_one(&mut reader).await.unwrap();
            counted.push((row.get::<i64, _>(0), row.get::<Option<i64>, _>(1)));
            run(&mut reader, "SELECT pg_sleep(1)").await;
        }
        assert_eq!(counted[0], counted[1], "one snapshot");
        run(&mut reader, "COMMIT").await;
        seen.reports += 1;
        // Time without a report, in which periods can go: what is asked for, and nothing is waited for.
        tokio::time::sleep(Duration::from_millis(800)).await;
    }
    seen
}

/// Looks again and again whether a session that stores waits for the report, itself or behind others.
async fn watch(world: Arc<World>) -> Seen {
    let waits = format!(
        "WITH RECURSIVE writers AS (
            SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
                AND (classid::int8 << 32 | objid::int8) IN
                    (SELECT hashtextextended('{}: engine ' || name, 0) FROM unnest('{{one,two,three}}'::text[]) AS name)),
        waits AS (
            SELECT pid AS writer, unnest(pg_blocking_pids(pid)) AS behind FROM writers
            UNION SELECT writer, unnest(pg_blocking_pids(behind)) FROM waits)
        SELECT w.query FROM waits JOIN pg_stat_activity r ON r.pid = waits.behind AND r.application_name = 'report'
            JOIN pg_stat_activity w ON w.pid = waits.writer",
        world.server.schema()
    );
    let mut seen = Seen::default();
    let mut watcher = connect(&world, "watcher").await;
    let writers = "SELECT count(*) FROM pg_locks l WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND (classid::int8 << 32 | objid::int8) = hashtextextended(current_schema() || ': engine one', 0)";
    let row = sqlx::query(writers).fetch_one(&mut watcher).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 1, "a session that stores is known by its lock");
    while world.goes_on() {
        let found = sqlx::query(AssertSqlSafe(waits.clone())).fetch_all(&mut watcher).await.unwrap();
        seen.waits_for_report.extend(found.iter().map(|row| row.get::<String, _>(0)));
        seen.looks += 1;
        // How often it looks: a wait that lasts shorter hurts nobody.
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    seen
}
