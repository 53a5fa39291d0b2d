//! A store and the one in memory answer alike, whatever is done to them.
//!
//! Seeded sequences of batches go to both; every answer and everything that can be read is
//! compared. A failure names its seed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, Attributes, DestinationId, Epoch, Failure, GroupId, InterfaceId, Key, Lane, MessageId,
    MessageStatus, Quarantined, Retention, Round, SavedBody, SavedOutput, StateWrite, Term, Tier, Timestamp,
};

use super::Harness;
use super::fixture::{Fixture, START};
use crate::memory::MemoryStore;
use crate::{
    Action, ActionKind, Attempted, ConfirmRetention, DedupeWindow, DeliveryResult, DestinationAction,
    DestinationActionKind, Durability, Edited, Expiry, ListMessages, ListStateKeys, MoveRetention,
    NewDelivery, NewMessage, Origin, OriginKind, Registration, RetentionView, Settled, SourceCursor,
    StateKey, Store, Suspect, Topology, WriteBatch,
};

/// Numbers that look random and are the same for a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

const INTERFACES: u64 = 2;
const DESTINATIONS: u64 = 5;

fn topology() -> Topology {
    let registration = |name: &str, destinations: &[&str]| Registration {
        name: name.into(),
        destinations: destinations.iter().map(|name| (*name).into()).collect(),
        ..Registration::default()
    };
    let interfaces = vec![registration("a", &["p", "q", "r"]), registration("b", &["s", "t"])];
    Topology { interfaces, now: START }
}

/// What a project may say of both interfaces.
fn any_retention(dice: &mut Dice) -> Topology {
    let mut wanted = topology();
    for interface in &mut wanted.interfaces {
        let tier = Tier::ALL[dice.below(3) as usize];
        let quarantined = if dice.one_in(3) { Quarantined::Purge } else { Quarantined::Keep };
        interface.retention = Retention { tier, quarantined };
    }
    wanted
}

/// Gives every message the wanted retention; how many went.
async fn change(store: &dyn Store, wanted: &Topology, now: Timestamp) -> u64 {
    store.register(&Topology { now, ..wanted.clone() }).await.unwrap();
    let mut removed = 0;
    for interface in (1..=INTERFACES).map(|id| InterfaceId(id as u32)) {
        let (author, reason) = ("ann".to_owned(), "a test".to_owned());
        let confirm = ConfirmRetention { interface, now, author, reason };
        store.confirm_retention(&confirm).await.unwrap();
        loop {
            let step = MoveRetention { interface, age_now: now, now, limit: 7 };
            let moved = store.move_retention(&step).await.unwrap();
            removed += moved.removed;
            if moved.state.change.is_none() {
                break;
            }
        }
    }
    removed
}

/// Removes what is old by then; how many messages.
async fn expire(store: &dyn Store, now: Timestamp) -> u64 {
    let mut messages = 0;
    loop {
        let expiry = Expiry { now, aged_to: now, limit: 1_000 };
        let expired = store.expire(&expiry).await.unwrap();
        messages += expired.messages;
        if !expired.goes_on {
            return messages;
        }
    }
}

/// What is told of the retention of each interface, but for what a pass counted before.
async fn retentions(store: &dyn Store, now: Timestamp) -> Vec<RetentionView> {
    let views = store.list_retention(now).await.unwrap();
    views.into_iter().map(|view| RetentionView { kept: None, ..view }).collect()
}

fn new_message(dice: &mut Dice, now: Timestamp) -> NewMessage {
    let mut new = Fixture::bare(Bytes::from(vec![b'x'; dice.below(4) as usize]));
    new.interface = InterfaceId(1 + dice.below(INTERFACES) as u32);
    new.received_at = now;
    if dice.one_in(60) {
        new.draft.body = Bytes::from(vec![dice.below(3) as u8; (1 << 20) + 1]);
    }
    if dice.one_in(3) {
        new.draft.dedupe = Key::new(&format!("key {}", dice.below(6)));
        new.dedupe = (!dice.one_in(4)).then(|| DedupeWindow(Duration::from_secs(1 + dice.below(40))));
    }
    if dice.one_in(9) {
        new.draft.doubt = Some(Failure::new("odd", format!("for reason {}", dice.below(2))));
    }
    if dice.one_in(5) {
        new.origin = Some(Origin { message: MessageId(1 + dice.below(30)), kind: OriginKind::Edit });
        let (author, reason) = ("ann".into(), "a typing error".into());
        new.edited = Some(Box::new(Edited { author, reason }));
    }
    new.draft.key = Key::new(&format!("key {}", dice.below(9)));
    if !dice.one_in(4) {
        new.terms = Term::of_message(&["key".to_owned()], new.draft.key.as_ref(), &new.draft.attributes);
    }
    let mask = dice.below(1 << DESTINATIONS);
    let to = (0..DESTINATIONS).filter(|n| mask >> n & 1 == 1).map(|n| DestinationId(1 + n as u32));
    let lanes = [0, 0, 1, 7, 1023, 1024, 1024];
    let mut lane = || Lane::from_number(lanes[dice.below(lanes.len() as u64) as usize]).unwrap();
    new.deliveries = to.map(|destination| NewDelivery { destination, lane: lane() }).collect();
    new
}

fn output(dice: &mut Dice) -> SavedOutput {
    SavedOutput {
        key: Key::new(&format!("k{}", dice.below(9))),
        attributes: Arc::new(Attributes::new(vec![("made".into(), dice.below(9).to_string())]).unwrap()),
        body: match dice.below(4) {
            0 => SavedBody::Same,
            1 => SavedBody::TooLarge(dice.below(9_999)),
            2 => SavedBody::NoRoom(dice.below(9_999)),
            _ => SavedBody::Kept(vec![b'x'; dice.below(99) as usize].into()),
        },
    }
}

fn result(dice: &mut Dice, last: u64, now: Timestamp) -> DeliveryResult {
    let settled = match dice.below(12) {
        0..5 => Settled::Sent(Answer::default()),
        5 => Settled::Sent(Answer { code: "AA".into(), text: format!("answer {}", dice.below(99)) }),
        6 => Settled::Routed((0..dice.below(3)).map(|_| new_message(dice, now)).collect()),
        7 => Settled::Filtered("not ours".into()),
        8 => Settled::Quarantined(Failure::new("bad", "no good")),
        _ => {
            let due_at = now + Duration::from_secs(dice.below(50));
            Settled::Retry { due_at, failure: Failure::new("away", "not there") }
        }
    };
    let state = match settled.keeps_state() {
        true => (0..dice.below(3)).map(|_| state_write(dice)).collect(),
        false => Vec::new(),
    };
    let attempted = Attempted { started_at: now, took: Duration::from_millis(dice.below(9)) };
    DeliveryResult {
        epoch: Epoch(if dice.one_in(9) { 0 } else { 1 }),
        destination: DestinationId(1 + dice.below(DESTINATIONS) as u32),
        // Mostly what is new, so that much of it counts.
        message: MessageId(last.saturating_sub(dice.below(40)).max(1)),
        round: Round(if dice.one_in(6) { 1 } else { 0 }),
        attempts: AttemptNo(1 + dice.below(3) as u32),
        settled,
        attempted: (!dice.one_in(5)).then_some(attempted),
        state,
        output: dice.one_in(3).then(|| Box::new(output(dice))),
    }
}

fn state_write(dice: &mut Dice) -> StateWrite {
    let value = (!dice.one_in(3)).then(|| vec![7; dice.below(9) as usize].into());
    StateWrite { space: "puppet".into(), key: format!("{}", dice.below(9)), value }
}

fn cursor(dice: &mut Dice) -> SourceCursor {
    let interface = InterfaceId(1 + dice.below(2) as u32);
    SourceCursor { interface, cursor: vec![7; dice.below(9) as usize].into() }
}

fn batch(dice: &mut Dice, mark: u64, last: u64, now: Timestamp) -> WriteBatch {
    let some = |dice: &mut Dice| if dice.one_in(8) { 70 + dice.below(80) } else { dice.below(7) };
    let messages = some(dice);
    let results = if last == 0 { 0 } else { some(dice) };
    let any = |dice: &mut Dice| MessageId(1 + dice.below(last + 2));
    let kinds = [
        ActionKind::Dismiss,
        ActionKind::Retry,
        ActionKind::Resend { keep_lane: false },
        ActionKind::Resend { keep_lane: true },
    ];
    let action = |dice: &mut Dice| Action {
        message: any(dice),
        destination: dice.one_in(2).then(|| DestinationId(1 + dice.below(DESTINATIONS) as u32)),
        kind: kinds[dice.below(4) as usize],
        author: "ann".into(),
        reason: format!("reason {}", dice.below(9)),
        request: dice.one_in(3).then(|| format!("request {}", dice.below(2))),
    };
    let suspect = |dice: &mut Dice| Suspect {
        destination: DestinationId(1 + dice.below(DESTINATIONS) as u32),
        message: any(dice),
    };
    let on_destination = |dice: &mut Dice| DestinationAction {
        destination: DestinationId(1 + dice.below(DESTINATIONS) as u32),
        kind: match dice.below(3) {
            0 => DestinationActionKind::Pause,
            1 => DestinationActionKind::Resume,
            _ => {
                let key = dice.below(9).to_string();
                DestinationActionKind::RemoveState(StateKey { space: "puppet".into(), key })
            }
        },
        author: "ann".into(),
        reason: format!("reason {}", dice.below(9)),
    };
    WriteBatch {
        mark,
        now,
        durability: if dice.one_in(2) { Durability::Strict } else { Durability::Relaxed },
        messages: (0..messages).map(|_| new_message(dice, now)).collect(),
        cursors: (0..dice.below(3)).map(|_| cursor(dice)).collect(),
        results: (0..results).map(|_| result(dice, last, now)).collect(),
        actions: (0..dice.below(3)).map(|_| action(dice)).collect(),
        suspects: (0..dice.below(3)).map(|_| suspect(dice)).collect(),
        destination_actions: (0..dice.below(2)).map(|_| on_destination(dice)).collect(),
    }
}

/// Everything that can be read, as one text.
async fn told(store: &dyn Store, last: u64, now: Timestamp) -> String {
    let mut told = format!("{:?}\n", store.destinations_with_work().await.unwrap());
    for n in 0..=DESTINATIONS {
        let to = DestinationId(n as u32);
        told += &format!("{to} heads {:?}\n", store.lane_heads(to).await.unwrap());
        told += &format!("{to} held {:?}\n", store.held_heads(to).await.unwrap());
        told += &format!("{to} suspects {:?}\n", store.list_suspects(to).await.unwrap());
        for lane in [0, 1, 7, 1023, 1024] {
            let lane = Lane::from_number(lane).unwrap();
            let after = MessageId(last / 3);
            told += &format!("{to} {lane:?} {:?}\n", store.read_lane(to, lane, after, 20).await.unwrap());
        }
        told +=
            &format!("{to} due {:?}\n", store.read_due(to, now + Duration::from_secs(25), 9).await.unwrap());
        told += &format!("{to} next {:?}\n", store.next_due(to, now).await.unwrap());
        let list = ListStateKeys {
            destination: to,
            space: "puppet".into(),
            prefix: String::new(),
            after: Some("2".into()),
            limit: 4,
        };
        told += &format!("{to} keys {:?}\n", store.list_state_keys(&list).await.unwrap());
        told += &format!("{to} state {:?}\n", store.get_state(to, "puppet", "5").await.unwrap());
        told += &format!("{to} count {}\n", store.count_state(to, "puppet", 5).await.unwrap());
        told += &format!("{to} done {:?}\n", store.list_destination_actions(to).await.unwrap());
    }
    let all: Vec<DestinationId> = (0..=DESTINATIONS).map(|n| DestinationId(n as u32)).collect();
    told += &format!("pending {}\n", store.count_pending(&all, 17).await.unwrap());
    for n in 0..3 {
        told += &format!("cursor {:?}\n", store.source_cursor(InterfaceId(n)).await.unwrap());
    }
    told += &format!("{:?}\n", store.register(&topology()).await.unwrap().pauses);
    told += &format!("{:?}\n", store.list_queues().await.unwrap());
    let all: Vec<MessageId> = (last.saturating_sub(50)..=last + 1).map(MessageId).collect();
    for loaded in store.load_messages(&all).await.unwrap() {
        told += &format!("{} {} {:?}\n", loaded.id, loaded.body.len(), loaded.body.first());
    }
    for status in [None, Some(MessageStatus::Quarantined), Some(MessageStatus::Pending)] {
        let list = ListMessages { status, limit: 30, ..ListMessages::default() };
        told += &format!("{:?}\n", store.list_messages(&list).await.unwrap());
    }
    for key in ["key 1", "key 8", "key 9"] {
        let list = ListMessages { key: Some(key.into()), limit: 500, ..ListMessages::default() };
        told += &format!("{:?}\n", store.list_messages(&list).await.unwrap());
    }
    for id in all.iter().step_by(7) {
        told += &format!("{id} {:?}\n", store.get_message(*id).await.unwrap());
        told += &format!("{:?}\n", store.list_deliveries(*id).await.unwrap());
        told += &format!("{:?}\n", store.list_attempts(*id).await.unwrap());
        told += &format!("{:?}\n", store.list_outputs(*id).await.unwrap());
        told += &format!("{:?}\n", store.load_output(*id, DestinationId(1)).await.unwrap());
        told += &format!("{:?}\n", store.list_actions(*id).await.unwrap());
        told += &format!("{:?}\n", store.list_edits(*id).await.unwrap());
    }
    told
}

pub async fn a_store_answers_like_the_one_in_memory(harness: &dyn Harness) {
    let seeds: Vec<u64> = match std::env::var("PORTWAY_TEST_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=8).collect(),
    };
    for seed in seeds {
        answers_alike(&*harness.open().await, seed).await;
    }
}

async fn answers_alike(store: &dyn Store, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let memory = MemoryStore::default();
    let registered = store.register(&topology()).await.unwrap();
    assert_eq!(registered.interfaces, memory.register(&topology()).await.unwrap().interfaces);
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    let claimed = store.claim(&groups, START).await.unwrap();
    assert_eq!(claimed, memory.claim(&groups, START).await.unwrap());
    let (mut now, mut last) = (START, 0);
    for mark in 1..=40 {
        now = now + Duration::from_secs(dice.below(9));
        let batch = batch(&mut dice, mark, last, now);
        let outcome = store.write(batch.clone()).await.unwrap();
        let expected = format!("{:?}", memory.write(batch).await.unwrap());
        assert_eq!(format!("{outcome:?}"), expected, "seed {seed}, write {mark}");
        let found = store.find_mark(mark).await.unwrap().unwrap();
        assert_eq!(format!("{found:?}"), expected, "seed {seed}, mark {mark}");
        let newest = ListMessages { limit: 1, ..ListMessages::default() };
        let newest = memory.list_messages(&newest).await.unwrap();
        last = newest.items.first().map_or(last, |message| message.id.0);
        if mark % 3 != 0 {
            continue;
        }
        let (is, should) = (told(store, last, now).await, told(&memory, last, now).await);
        for (is, should) in is.lines().zip(should.lines()) {
            assert_eq!(is, should, "seed {seed}, after write {mark}");
        }
        assert_eq!(is.len(), should.len());
        if dice.one_in(6) {
            let wanted = any_retention(&mut dice);
            let removed = change(store, &wanted, now).await;
            assert_eq!(removed, change(&memory, &wanted, now).await, "seed {seed}");
            // Past every window by two weeks: stores may drop a week at once.
            now = now + Duration::from_secs(dice.below(2) * 63 * 86_400);
            assert_eq!(expire(store, now).await, expire(&memory, now).await, "seed {seed}");
            assert_eq!(retentions(store, now).await, retentions(&memory, now).await, "seed {seed}");
        }
    }
}
