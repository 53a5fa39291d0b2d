//! How long messages are kept: what goes, what stays, and how one retention gives way to another.
//!
//! Times leave room for stores that drop a week at once: what must go is two weeks past its window.

use std::time::Duration;

use portway_model::{
    MessageId, MessageStatus, Quarantined, Retention, RetentionState, Tier, Timestamp, WaitingRetention,
};

use super::Harness;
use super::fixture::{Fixture, RESEND, quarantined, retry, sent, stored, topology};
use crate::{
    ActionOutcome, ConfirmRetention, Counted, Expiry, MessageOutcome, MoveRetention, NewMessage, Registered,
    RetentionConfirmed, RetentionView, Topology,
};

const DAY: u64 = 86_400;
const WEEK: Retention = kept_for(Tier::OneWeek);
const THREE_WEEKS: Retention = kept_for(Tier::ThreeWeeks);
const SEVEN_WEEKS: Retention = kept_for(Tier::SevenWeeks);
const PURGING: Retention = Retention { tier: Tier::SevenWeeks, quarantined: Quarantined::Purge };

const fn kept_for(tier: Tier) -> Retention {
    Retention { tier, quarantined: Quarantined::Keep }
}

impl Fixture {
    /// The usual topology, where `a` has this retention.
    async fn want(&self, retention: Retention) -> Registered {
        let mut wanted = Topology { now: self.now(), ..topology() };
        wanted.interfaces[0].retention = retention;
        self.store.register(&wanted).await.unwrap()
    }

    async fn confirm(&self) -> Option<RetentionState> {
        let confirm = ConfirmRetention {
            interface: self.a,
            now: self.now(),
            author: "ann".into(),
            reason: "the disk is full".into(),
        };
        self.store.confirm_retention(&confirm).await.unwrap()
    }

    /// Steps of the change of `a`, until it is over.
    async fn move_all(&self) -> RetentionState {
        for _ in 0..100 {
            let step = MoveRetention { interface: self.a, age_now: self.now(), now: self.now(), limit: 3 };
            let moved = self.store.move_retention(&step).await.unwrap();
            if moved.state.change.is_none() {
                return moved.state;
            }
        }
        panic!("the change does not end")
    }

    /// The retention of `a` is this one, and nothing waits.
    async fn change(&self, retention: Retention) {
        self.want(retention).await;
        self.confirm().await;
        assert_eq!(self.move_all().await, RetentionState::new(retention));
    }

    async fn view(&self) -> RetentionView {
        let views = self.store.list_retention(self.now()).await.unwrap();
        views.into_iter().find(|view| view.interface == self.a).unwrap()
    }

    async fn store_sent(&self) -> MessageId {
        let id = self.store_one(self.message("body")).await;
        self.settle_one(id, sent()).await;
        id
    }
}

pub async fn what_is_done_and_old_goes_with_all_that_belongs_to_it(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let large = "x".repeat((1 << 20) + 1);
    let mut messages: Vec<NewMessage> = (0..4).map(|_| fixture.message("body")).collect();
    messages.extend([fixture.keyed("k", &large), fixture.keyed("k", &large)]);
    messages.push(NewMessage { interface: fixture.b, ..fixture.message_to(&[]) });
    fixture.store(messages).await;
    fixture.settle_one(MessageId(1), retry(Timestamp(1))).await;
    let second = crate::DeliveryResult {
        attempts: portway_model::AttemptNo(2),
        ..fixture.result(MessageId(1), fixture.x, sent())
    };
    fixture.settle(vec![second]).await;
    fixture.settle_one(MessageId(2), quarantined()).await;
    fixture.settle_one(MessageId(5), sent()).await;
    fixture.act(MessageId(4), None, crate::ActionKind::Dismiss).await;
    fixture.wait(48 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.all().await.len(), 7, "none is older than seven weeks");
    fixture.wait(15 * DAY);
    let young = fixture.store_one(fixture.message_to(&[])).await;
    fixture.expire().await;
    // 3 is pending, 2 quarantined, the last too young.
    assert_eq!(fixture.all().await, [young, MessageId(3), MessageId(2)]);
    for id in [1, 4, 5, 6, 7].map(MessageId) {
        assert_eq!(fixture.store.list_deliveries(id).await.unwrap(), []);
        assert_eq!(fixture.store.list_attempts(id).await.unwrap(), []);
        assert_eq!(fixture.store.list_actions(id).await.unwrap(), []);
        assert_eq!(fixture.store.load_messages(&[id]).await.unwrap(), []);
        assert_eq!(fixture.act(id, None, RESEND).await, ActionOutcome::NoMessage);
    }
    assert_eq!(fixture.lane(fixture.x, 0).await, [MessageId(3)], "it is still to be delivered");
    assert_eq!(fixture.store.load_messages(&[MessageId(3)]).await.unwrap().len(), 1);
}

pub async fn what_is_done_later_goes_later(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.message("body"), fixture.message("body")]).await;
    fixture.settle_one(MessageId(2), quarantined()).await;
    fixture.outlive().await;
    assert_eq!(fixture.all().await, [2, 1].map(MessageId));
    fixture.settle_one(MessageId(1), sent()).await;
    fixture.act(MessageId(2), None, crate::ActionKind::Dismiss).await;
    // What was held is dropped by the month.
    fixture.wait(40 * DAY);
    fixture.expire().await;
    fixture.outlive().await;
    assert_eq!(fixture.all().await, []);
}

pub async fn what_is_old_goes_in_steps(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store((0..600).map(|_| fixture.message_to(&[])).collect()).await;
    fixture.wait(70 * DAY);
    let step = Expiry { now: fixture.now(), aged_to: fixture.now(), limit: 100 };
    let first = fixture.store.expire(&step).await.unwrap();
    assert!(first.messages > 0 && first.goes_on == (first.messages < 600), "{first:?}");
    fixture.expire().await;
    assert_eq!(fixture.all().await, []);
    let over = fixture.store.expire(&step).await.unwrap();
    assert!(!over.goes_on && over.messages == 0, "{over:?}");
}

pub async fn expired_keys_are_forgotten_and_no_others(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let window = Some(crate::DedupeWindow(Duration::from_secs(100 * DAY)));
    let keyed = || NewMessage { dedupe: window, ..fixture.keyed("k", "same") };
    let first = fixture.store_one(keyed()).await;
    fixture.settle_one(first, sent()).await;
    fixture.outlive().await;
    assert_eq!(fixture.all().await, []);
    // A key is remembered for its window, also when its message is gone.
    let outcome = fixture.store(vec![keyed()]).await;
    assert_eq!(outcome, [MessageOutcome::Duplicate { id: MessageId(2), of: first }]);
    fixture.outlive().await;
    assert_eq!(fixture.store(vec![keyed()]).await, [stored(3)]);
}

pub async fn each_interface_has_its_own_retention(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.change(WEEK).await;
    let own = fixture.store_one(fixture.message_to(&[])).await;
    let other = NewMessage { interface: fixture.b, ..fixture.message_to(&[]) };
    let other = fixture.store_one(other).await;
    fixture.wait(6 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.all().await, [other, own]);
    fixture.wait(15 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.all().await, [other]);
}

pub async fn quarantined_messages_go_where_their_interface_says_so(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let kept = fixture.store_one(fixture.message("body")).await;
    fixture.settle_one(kept, quarantined()).await;
    fixture.outlive().await;
    assert_eq!(fixture.status(kept).await, Some(MessageStatus::Quarantined));
    let state = fixture.want(PURGING).await.retentions[0].1;
    assert_eq!(state.in_force(), SEVEN_WEEKS, "it removes messages: it waits");
    fixture.change(PURGING).await;
    // What was held is dropped by the month.
    fixture.wait(40 * DAY);
    fixture.outlive().await;
    assert_eq!(fixture.status(kept).await, None);
    assert_eq!(fixture.store.held_heads(fixture.x).await.unwrap(), []);
}

pub async fn a_shorter_retention_waits_until_it_is_confirmed(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let old = fixture.store_sent().await;
    fixture.wait(30 * DAY);
    let since = fixture.now();
    let registered = fixture.want(WEEK).await;
    let waiting = WaitingRetention { to: WEEK, since, is_confirmed: false };
    let state = RetentionState { waiting: Some(waiting), ..RetentionState::new(SEVEN_WEEKS) };
    assert_eq!(registered.retentions[0], (fixture.a, state));
    fixture.wait(DAY);
    assert_eq!(fixture.want(WEEK).await.retentions[0].1, state, "said again, it waits since then");
    fixture.expire().await;
    assert_eq!(fixture.status(old).await, Some(MessageStatus::Finished), "the longer one counts");
    let view = fixture.view().await;
    assert_eq!(view.left, Some(Counted { count: 1, is_cut: false }));

    let confirmed_at = fixture.now();
    assert_eq!(fixture.confirm().await.unwrap().in_force(), WEEK);
    assert_eq!(fixture.confirm().await, None, "nothing waits any more");
    assert_eq!(fixture.move_all().await, RetentionState::new(WEEK));
    fixture.expire().await;
    assert_eq!(fixture.status(old).await, None);
    let view = fixture.view().await;
    let (author, reason) = ("ann".into(), "the disk is full".into());
    assert_eq!(view.confirmed, Some(RetentionConfirmed { at: confirmed_at, author, reason }));
    assert_eq!((view.oldest, view.left), (None, None));
}

pub async fn a_shorter_retention_that_is_taken_back_removes_nothing(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let old = fixture.store_sent().await;
    fixture.wait(30 * DAY);
    fixture.want(WEEK).await;
    let state = fixture.want(SEVEN_WEEKS).await.retentions[0].1;
    assert_eq!(state, RetentionState::new(SEVEN_WEEKS));
    assert_eq!(fixture.confirm().await, None);
    fixture.expire().await;
    assert_eq!(fixture.status(old).await, Some(MessageStatus::Finished));
}

pub async fn a_shorter_retention_takes_only_what_is_done(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let pending = fixture.store_one(fixture.message("body")).await;
    let failed = fixture.store_one(fixture.message("body")).await;
    fixture.settle_one(failed, quarantined()).await;
    let done = fixture.store_sent().await;
    fixture.wait(30 * DAY);
    let young = fixture.store_sent().await;
    fixture.want(WEEK).await;
    fixture.confirm().await;
    // With something pending, a store may leave the change open until it is delivered.
    for _ in 0..20 {
        let step =
            MoveRetention { interface: fixture.a, age_now: fixture.now(), now: fixture.now(), limit: 3 };
        fixture.store.move_retention(&step).await.unwrap();
    }
    fixture.expire().await;
    assert_eq!(fixture.all().await, [young, failed, pending]);
    assert_eq!(fixture.status(done).await, None);
    fixture.settle_one(pending, sent()).await;
    assert_eq!(fixture.move_all().await, RetentionState::new(WEEK));
    fixture.wait(16 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.status(young).await, None, "it has the new retention");
    assert_eq!(fixture.status(failed).await, Some(MessageStatus::Quarantined));
}

pub async fn a_longer_retention_keeps_old_messages_too(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.change(WEEK).await;
    let mut old = Vec::new();
    for _ in 0..8 {
        old.insert(0, fixture.store_sent().await);
    }
    fixture.wait(6 * DAY);
    let state = fixture.want(THREE_WEEKS).await.retentions[0].1;
    assert_eq!(state.change.map(|change| change.to), Some(THREE_WEEKS), "it begins at once");
    assert_eq!(fixture.confirm().await, None);
    // What the change has not moved yet is kept.
    fixture.wait(4 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.all().await, old);
    assert_eq!(fixture.move_all().await, RetentionState::new(THREE_WEEKS));
    fixture.wait(10 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.all().await, old);
    fixture.wait(15 * DAY);
    fixture.expire().await;
    assert_eq!(fixture.all().await, []);
}

pub async fn one_change_of_an_interface_runs_at_a_time(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.change(WEEK).await;
    fixture.want(SEVEN_WEEKS).await;
    fixture.want(THREE_WEEKS).await;
    let state = fixture.want(WEEK).await.retentions[0].1;
    assert_eq!(state.change.map(|change| change.to), Some(SEVEN_WEEKS), "the first goes on");
    assert_eq!(state.waiting.map(|waiting| waiting.to), Some(WEEK), "the last replaced what waited");
    let state = fixture.move_all().await;
    assert_eq!((state.in_force(), state.unconfirmed().map(|waiting| waiting.to)), (SEVEN_WEEKS, Some(WEEK)));
}

pub async fn a_change_is_finished_by_the_next_process(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let mut old = Vec::new();
    for _ in 0..8 {
        old.push(fixture.store_sent().await);
    }
    fixture.wait(30 * DAY);
    fixture.want(WEEK).await;
    fixture.confirm().await;
    let step = MoveRetention { interface: fixture.a, age_now: fixture.now(), now: fixture.now(), limit: 3 };
    fixture.store.move_retention(&step).await.unwrap();
    let now = fixture.now();
    let store = harness.reopen(fixture.store).await;
    let mut wanted = Topology { now, ..topology() };
    wanted.interfaces[0].retention = WEEK;
    let registered = store.register(&wanted).await.unwrap();
    assert_eq!(registered.retentions[0].1.change.map(|change| change.to), Some(WEEK));
    let mut is_over = false;
    for _ in 0..100 {
        let moved = store.move_retention(&MoveRetention { ..step }).await.unwrap();
        is_over |= moved.state == RetentionState::new(WEEK);
    }
    assert!(is_over);
    assert_eq!(store.load_messages(&old).await.unwrap(), []);
}

pub async fn a_new_interface_has_what_it_wants(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut wanted = topology();
    wanted.interfaces[0].retention = WEEK;
    let registered = store.register(&wanted).await.unwrap();
    let (a, b) = (registered.interfaces[0].0, registered.interfaces[1].0);
    let states = [(a, RetentionState::new(WEEK)), (b, RetentionState::default())];
    assert_eq!(registered.retentions, states);
    // One that is in no project any more keeps what it had.
    let store = harness.reopen(store).await;
    let registered = store.register(&Topology::default()).await.unwrap();
    assert_eq!(registered.retentions, states);
    let names: Vec<String> =
        store.list_retention(Timestamp(0)).await.unwrap().into_iter().map(|view| view.name).collect();
    assert_eq!(names, ["a", "b"]);
}

pub async fn what_is_kept_beyond_its_window_is_told(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let began = fixture.now();
    fixture.store((0..3).map(|_| fixture.message("body")).collect()).await;
    fixture.settle_one(MessageId(2), quarantined()).await;
    fixture.wait(DAY);
    fixture.expire().await;
    let view = fixture.view().await;
    let kept = view.kept.unwrap();
    assert_eq!((view.oldest, kept.pending, kept.quarantined), (Some(began), 0, 0));
    fixture.outlive().await;
    let kept = fixture.view().await.kept.unwrap();
    assert_eq!((kept.pending, kept.quarantined), (2, 1));
    assert_eq!(kept.at, fixture.now());
}

pub async fn how_far_messages_grew_old_is_remembered(harness: &dyn Harness) {
    let store = harness.open().await;
    assert_eq!(store.register(&topology()).await.unwrap().aged_to, None, "nobody told yet");
    let fixture = Fixture::of(store).await;
    let oldest = Some(fixture.now());
    fixture.store_one(fixture.message("body")).await;
    fixture.wait(DAY);
    fixture.store_one(fixture.message("body")).await;
    assert_eq!(fixture.want(SEVEN_WEEKS).await.aged_to, oldest, "the oldest message tells");
    for aged_to in [fixture.now() + Duration::from_secs(5), Timestamp(fixture.now().0 - 5)] {
        let expiry = Expiry { now: fixture.now(), aged_to, limit: 1 };
        fixture.store.expire(&expiry).await.unwrap();
        assert_eq!(fixture.want(SEVEN_WEEKS).await.aged_to, Some(aged_to));
    }
    let told = fixture.want(SEVEN_WEEKS).await.aged_to;
    let fixture = fixture.reopen(harness).await;
    assert_eq!(fixture.want(SEVEN_WEEKS).await.aged_to, told);
}

pub async fn a_clock_that_steps_both_ways_loses_nothing(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    // A month ahead, then two back, then right again: a message that waits and one that is done each time.
    let mut stored = Vec::new();
    for step in 0..4 {
        match step {
            1 => fixture.wait(31 * DAY),
            2 => fixture.set_back(62 * DAY),
            3 => fixture.wait(31 * DAY),
            _ => {}
        }
        let body = format!("in step {step}");
        let waits = fixture.store_one(fixture.message(&body)).await;
        fixture.settle_one(waits, retry(fixture.now())).await;
        stored.extend([waits, fixture.store_sent().await]);
        fixture.expire().await;
        fixture.store.maintain(Duration::ZERO).await.unwrap();
    }
    let waiting: Vec<MessageId> = stored.iter().copied().step_by(2).collect();
    let fixture = fixture.reopen(harness).await;
    stored.reverse();
    assert_eq!(fixture.all().await, stored, "nothing is older than seven weeks");
    assert_eq!(fixture.lane(fixture.x, 0).await, waiting, "in the order in which they were stored");
    let loaded = fixture.store.load_messages(&waiting).await.unwrap();
    let bodies: Vec<String> =
        loaded.iter().map(|loaded| String::from_utf8_lossy(&loaded.body).into_owned()).collect();
    assert_eq!(bodies, ["in step 0", "in step 1", "in step 2", "in step 3"]);
    for id in &waiting {
        let second = crate::DeliveryResult {
            attempts: portway_model::AttemptNo(2),
            ..fixture.result(*id, fixture.x, sent())
        };
        assert_eq!(fixture.settle(vec![second]).await, [super::fixture::applied()]);
        assert_eq!(fixture.status(*id).await, Some(MessageStatus::Finished));
    }
    // What was stored while the clock was ahead is the last to grow old.
    fixture.wait(31 * DAY);
    fixture.outlive().await;
    assert_eq!(fixture.all().await, []);
}
