//! Old messages go when they are old, and not before; changes of retention wait, run and are finished.

use std::time::Duration;

use portway_model::{DeliveryState, MessageId, MessageStatus, Quarantined, Retention, RetentionState, Tier};
use portway_store::{DestinationActionKind, Store};
use tokio::time::advance;

use crate::house::{House, Plan};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const WEEK: Retention = Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep };

impl House {
    async fn status_of(&self, id: MessageId) -> Option<MessageStatus> {
        self.store.get_message(id).await.unwrap().map(|message| message.status)
    }

    /// Stores a message that is sent at once.
    async fn store_sent(&self, body: &str) -> MessageId {
        let id = self.store(body, "a").await;
        self.until(id, 0, DeliveryState::Sent).await;
        id
    }

    async fn until_gone(&self, id: MessageId) {
        self.wait_for(async || self.status_of(id).await.is_none().then_some(())).await;
    }

    /// Lets some passes over old messages happen, in five minutes of paused time: each sleep ends when
    /// everybody waits. In steps, so that the clock is looked at as often as it is outside of tests.
    async fn passes(&self) {
        for _ in 0..300 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The project wants another retention; what the store says of it.
    async fn want(&self, retention: Retention) -> RetentionState {
        let mut topology = self.plan.topology();
        topology.interfaces[0].retention = retention;
        self.engine.register(topology).await.unwrap().retentions[0].1
    }

    async fn confirm(&self) -> Option<RetentionState> {
        let (author, reason) = ("ann".to_owned(), "a test".to_owned());
        self.engine.confirm_retention(self.interface(), author, reason).await.unwrap()
    }

    /// Time without an engine.
    async fn again(self, plan: Plan) -> House {
        let store = self.kill().await;
        House::on(store, plan).await
    }
}

#[tokio::test(start_paused = true)]
async fn messages_go_when_they_are_older_than_their_window() {
    let house = House::build(Plan { retention: WEEK, ..Plan::default() }).await;
    let old = house.store_sent("hello").await;
    advance(6 * DAY).await;
    let young = house.store_sent("hello").await;
    house.passes().await;
    assert_eq!(house.status_of(old).await, Some(MessageStatus::Finished));
    advance(DAY).await;
    house.until_gone(old).await;
    assert_eq!(house.status_of(young).await, Some(MessageStatus::Finished));
    assert_eq!(house.engine.status().await.unwrap().intake.pruned, 1);
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_has_to_be_delivered_never_goes() {
    let house = House::build(Plan { retention: WEEK, ..Plan::default() }).await;
    let id = house.store("wrong", "a").await;
    advance(60 * DAY).await;
    house.passes().await;
    assert_eq!(house.status_of(id).await, Some(MessageStatus::Pending));
    house.receiver.mend();
    house.order(0, DestinationActionKind::Resume).await;
    house.until_gone(id).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), ["wrong"]);
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shorter_retention_waits_for_an_operator() {
    let house = House::build(Plan::default()).await;
    let old = house.store_sent("hello").await;
    advance(30 * DAY).await;
    assert_eq!(house.confirm().await, None, "nothing waits");
    let state = house.want(WEEK).await;
    assert_eq!(state.in_force(), Retention::default());
    house.passes().await;
    assert!(house.status_of(old).await.is_some());
    assert_eq!(house.engine.status().await.unwrap().retention.unconfirmed, 1);
    assert_eq!(house.confirm().await.unwrap().in_force(), WEEK);
    house.until_gone(old).await;
    let over = async || (house.engine.status().await.unwrap().retention.changing == 0).then_some(());
    house.wait_for(over).await;
    assert_eq!(house.want(WEEK).await, RetentionState::new(WEEK));
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_longer_retention_keeps_what_was_about_to_go() {
    let house = House::build(Plan { retention: WEEK, ..Plan::default() }).await;
    let old = house.store_sent("hello").await;
    advance(7 * DAY - HOUR).await;
    assert_eq!(house.want(Retention::default()).await.in_force(), Retention::default());
    let new = house.store_sent("hello").await;
    advance(2 * HOUR).await;
    house.passes().await;
    assert_eq!(house.engine.status().await.unwrap().retention.changing, 0);
    assert!(house.status_of(old).await.is_some());
    advance(43 * DAY).await;
    house.until_gone(old).await;
    assert!(house.status_of(new).await.is_some(), "it has the new one from the beginning");
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_interrupted_is_finished_by_the_next_engine() {
    let house = House::build(Plan::default()).await;
    let mut old = Vec::new();
    for _ in 0..600 {
        old.push(house.store("hello", "a").await);
    }
    house.until(old[599], 0, DeliveryState::Sent).await;
    advance(30 * DAY).await;
    house.want(WEEK).await;
    house.confirm().await.unwrap();
    let some_left = async || house.status_of(old[0]).await.is_none().then_some(());
    house.wait_for(some_left).await;
    assert!(house.status_of(old[599]).await.is_some(), "it was interrupted");
    let clock = house.plan.clock.clone();
    let house = house.again(Plan { retention: WEEK, clock, ..Plan::default() }).await;
    house.until_gone(old[599]).await;
    let over = async || (house.engine.status().await.unwrap().retention.changing == 0).then_some(());
    house.wait_for(over).await;
    house.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_steps_removes_nothing_that_is_not_old() {
    let house = House::build(Plan { retention: WEEK, ..Plan::default() }).await;
    let id = house.store_sent("hello").await;
    let clock = house.plan.clock.clone();
    clock.step(2_000 * DAY);
    house.passes().await;
    assert!(house.engine.status().await.unwrap().retention.doubt.unwrap().is_ahead);
    clock.step_back(4_000 * DAY);
    house.passes().await;
    assert!(!house.engine.status().await.unwrap().retention.doubt.unwrap().is_ahead);
    clock.step(2_000 * DAY);
    house.passes().await;
    assert_eq!(house.engine.status().await.unwrap().retention.doubt, None);
    assert!(house.status_of(id).await.is_some());
    // Nor does it while no engine runs.
    clock.step(2_000 * DAY);
    let house = house.again(Plan { retention: WEEK, clock: clock.clone(), ..Plan::default() }).await;
    house.passes().await;
    advance(20 * HOUR).await;
    house.passes().await;
    assert!(house.status_of(id).await.is_some());
    // One that goes on so for a day is right.
    advance(4 * HOUR).await;
    house.until_gone(id).await;
    house.stop().await.unwrap();
}
