//! The poll driver: what is stored is settled before more is asked for, and nothing comes twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use portway_engine::ports::Clock;
use portway_model::{Attributes, Draft, Failure, Later, MessageId, Timestamp};
use portway_sources::Counters;
use portway_sources::poll::ports::{Found, PollError, PollIntake, Poller, Query};
use portway_sources::poll::{PollDriver, PollHandle, PollLimits};
use portway_sources::ports::{Arrival, Fate, Item, Receipt};
use tokio::sync::oneshot;

/// A list of records; the cursor counts those before it.
#[derive(Clone, Default)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    records: Vec<String>,
    /// What the store keeps.
    cursor: Bytes,
    stored: Vec<String>,
    /// Cursor and tickets of each settled round.
    settled: Vec<(usize, Vec<String>)>,
    /// What happened, in order.
    log: Vec<&'static str>,
    poll_fails: Vec<PollError>,
    settle_fails: Vec<PollError>,
    submit_fails: Vec<Later>,
    cursor_fails: u32,
    unfinished_seen: u32,
}

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp(5)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn position(cursor: &[u8]) -> usize {
    std::str::from_utf8(cursor).unwrap().parse().unwrap_or(0)
}

fn item(record: &str) -> Item {
    let ticket = Bytes::copy_from_slice(record.as_bytes());
    if record.starts_with("refuse") {
        return Item::Refused { failure: Failure::new("odd", "as asked"), ticket };
    }
    let draft = Draft {
        body: ticket.clone(),
        key: None,
        dedupe: None,
        occurred_at: None,
        attributes: Attributes::default(),
        doubt: None,
    };
    Item::Message { draft, ticket }
}

impl Poller for World {
    async fn poll(&self, query: Query) -> Result<Found, PollError> {
        let mut state = self.0.lock().unwrap();
        state.log.push("poll");
        state.unfinished_seen = query.unfinished;
        if let Some(error) = state.poll_fails.pop() {
            return Err(error);
        }
        let from = position(&query.cursor);
        let records: Vec<&String> = state.records.iter().skip(from).take(query.items_max as usize).collect();
        let items = records.iter().map(|record| item(record)).collect();
        let to = from + records.len();
        let again = if to < state.records.len() { Duration::ZERO } else { Duration::from_secs(3_600) };
        let cursor = if records.is_empty() { query.cursor } else { to.to_string().into() };
        Ok(Found { items, cursor, again, ..Found::default() })
    }

    async fn settle(&self, cursor: Bytes, receipts: Vec<Receipt>) -> Result<(), PollError> {
        let mut state = self.0.lock().unwrap();
        state.log.push("settle");
        if let Some(error) = state.settle_fails.pop() {
            return Err(error);
        }
        let told = |receipt: &Receipt| {
            let ticket = String::from_utf8_lossy(&receipt.ticket).into_owned();
            if receipt.fate == Fate::Noted { format!("{ticket}!") } else { ticket }
        };
        let tickets = receipts.iter().map(told).collect();
        state.settled.push((position(&cursor), tickets));
        Ok(())
    }
}

impl PollIntake for World {
    async fn submit(&self, _: Arrival, drafts: Vec<Draft>, cursor: Bytes) -> Result<Vec<Fate>, Later> {
        let mut state = self.0.lock().unwrap();
        state.log.push("store");
        if let Some(later) = state.submit_fails.pop() {
            return Err(later);
        }
        let mut fates = Vec::new();
        for draft in drafts {
            state.stored.push(String::from_utf8(draft.body.to_vec()).unwrap());
            fates.push(Fate::Stored { id: MessageId(state.stored.len() as u64), conflict: false });
        }
        state.cursor = cursor;
        Ok(fates)
    }

    async fn cursor(&self) -> Result<Bytes, String> {
        let mut state = self.0.lock().unwrap();
        if state.cursor_fails > 0 {
            state.cursor_fails -= 1;
            return Err("locked".into());
        }
        Ok(state.cursor.clone())
    }

    async fn unfinished(&self, limit: u32) -> Result<u32, String> {
        Ok(limit.min(7))
    }
}

impl World {
    fn new(records: &[&str]) -> Self {
        let world = World::default();
        world.0.lock().unwrap().records = records.iter().map(|record| (*record).to_owned()).collect();
        world
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Runs a driver until it rests or has something to say.
    async fn run(&self, until: impl Fn(&PollHandle) -> bool) -> PollHandle {
        let limits =
            PollLimits { items_max: 2, bytes_max: 100, message_bytes_max: 8, wait_max: Duration::ZERO };
        let shared = (Counters::new(), Arc::new(StandingClock) as Arc<dyn Clock>);
        let (driver, handle) = PollDriver::new(self.clone(), self.clone(), limits, shared);
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(driver.run(async move {
            stopped.await.ok();
        }));
        while !until(&handle) {
            // Paused time goes on when everybody waits.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stop.send(()).unwrap();
        running.await.unwrap();
        handle
    }
}

fn rests(handle: &PollHandle) -> bool {
    handle.status().state.as_str() == "resting"
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_is_settled_before_more_is_asked_for() {
    let world = World::new(&["a", "b", "refuse", "c", "d"]);
    let handle = world.run(rests).await;
    world.change(|state| {
        assert_eq!(state.stored, ["a", "b", "c", "d"]);
        let tickets = |round: usize| state.settled[round].1.join(",");
        assert_eq!((tickets(0), tickets(1), tickets(2)), ("a,b".into(), "refuse!,c".into(), "d".into()));
        assert_eq!(state.settled.iter().map(|(cursor, _)| *cursor).collect::<Vec<_>>(), [2, 4, 5]);
        let rounds = ["poll", "store", "settle"].repeat(3);
        // At the end it finds nothing new, or rests at once.
        assert_eq!(state.log[..9], rounds[..]);
        assert_eq!(state.unfinished_seen, 7);
    });
    let counts = handle.status().counts;
    assert_eq!((counts.messages, counts.stored, counts.refused, counts.answered), (4, 4, 1, 5));
    assert_eq!((counts.refused_by["odd"], counts.bytes_in), (1, 4));
    assert_eq!(handle.status().state.as_str(), "stopped");
}

#[tokio::test(start_paused = true)]
async fn a_new_process_goes_on_behind_the_stored_cursor_and_settles_it_once() {
    let world = World::new(&["a", "b", "c"]);
    world.change(|state| state.cursor = "2".into());
    world.run(rests).await;
    world.change(|state| {
        assert_eq!(state.stored, ["c"]);
        assert_eq!(state.settled[0], (2, Vec::new()), "what an earlier process may have left");
        assert_eq!(state.settled[1], (3, vec!["c".to_owned()]));
    });
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_done_again_and_nothing_is_stored_twice() {
    let world = World::new(&["a", "b", "c"]);
    let away = || PollError::Unavailable(Later { failure: Failure::new("away", "no"), after_ms: Some(50) });
    world.change(|state| {
        state.cursor_fails = 2;
        state.poll_fails = vec![away(), PollError::Fault("trap".into()), PollError::Busy("full".into())];
        state.settle_fails = vec![away(), PollError::Fault("trap".into())];
        let full = Later { failure: Failure::new("full", "no room"), after_ms: None };
        state.submit_fails = vec![full.clone(), full];
    });
    let handle = world.run(rests).await;
    world.change(|state| {
        assert_eq!(state.stored, ["a", "b", "c"]);
        assert_eq!(state.settled.len(), 2, "each round succeeds once");
    });
    let counts = handle.status().counts;
    assert_eq!((counts.faults, counts.not_stored_by["full"]), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn what_needs_a_person_is_said() {
    let world = World::new(&["a"]);
    let gone = Failure::new("no-folder", "it is gone");
    world.change(|state| state.poll_fails = vec![PollError::Misconfigured(gone)]);
    let seen = Mutex::new(String::new());
    let handle = world
        .run(|handle| {
            let state = handle.status().state;
            if let Some(failure) = state.failure() {
                *seen.lock().unwrap() = format!("{} {failure}", state.as_str());
            }
            rests(handle)
        })
        .await;
    assert_eq!(*seen.lock().unwrap(), "misconfigured no-folder: it is gone");
    assert_eq!(handle.status().counts.stored, 1, "it is looked at again by itself");
}

#[tokio::test(start_paused = true)]
async fn a_message_above_the_limit_stores_nothing_and_is_said() {
    let world = World::new(&["a", "far too long"]);
    let handle = world.run(|handle| handle.status().state.failure().is_some()).await;
    world.change(|state| assert!(state.stored.is_empty() && state.cursor.is_empty()));
    assert_eq!(handle.status().counts.not_stored_by["too-large"], 2);
}
