//! Steps with old messages go beside the writer, but not beside what changes how long messages are kept. The
//! machines alone: what they ask of the store stays unanswered until the test answers.

use std::time::Duration;

use portway_engine::{Core, Effect, Event, Now, Ticket};
use portway_model::{MessageId, Quarantined, Retention, RetentionState, Tier, Timestamp};
use portway_store::memory::MemoryStore;
use portway_store::{
    Action, ActionKind, ConfirmRetention, Maintenance, MoveRetention, Moved, Store as _, Topology,
};

use crate::house::{Plan, claim, settings};

const LONGER: Retention = Retention { tier: Tier::ThreeWeeks, quarantined: Quarantined::Keep };

struct Desk {
    store: MemoryStore,
    core: Core,
    now: Now,
}

impl Desk {
    /// A change of retention runs, whose first step is in hand.
    async fn stepping() -> (Desk, MoveRetention) {
        let store = MemoryStore::default();
        let retention = Retention { tier: Tier::OneWeek, ..LONGER };
        let plan = Plan { retention, ..Plan::default() };
        store.register(&plan.topology()).await.unwrap();
        let registered = store.register(&Plan { retention: LONGER, ..Plan::default() }.topology()).await;
        let registered = registered.unwrap();
        let tenure = claim(&store, &registered).await;
        let now = Now { wall: Timestamp(1_800_000_000_000), monotonic: Duration::ZERO };
        let core = Core::new(settings(&registered, &plan), Some(tenure), 7, now);
        let mut desk = Desk { store, core, now };
        let step = desk.turn().await.into_iter().find_map(|effect| match effect {
            Effect::MoveRetention(step) => Some(step),
            _ => None,
        });
        (desk, step.unwrap())
    }

    /// What is asked for now, but for looks at the store, which are answered.
    async fn turn(&mut self) -> Vec<Effect> {
        let (mut asked, mut out) = (Vec::new(), Vec::new());
        loop {
            self.core.turn(self.now, &mut out);
            let mut is_over = true;
            for effect in out.drain(..) {
                let event = match effect {
                    Effect::Maintain { .. } => Event::Maintained(Ok(Maintenance::default())),
                    Effect::Read { id, read } => Event::Read { id, answer: read.run(&self.store).await },
                    effect => {
                        asked.push(effect);
                        continue;
                    }
                };
                self.core.handle(event, self.now);
                is_over = false;
            }
            if is_over {
                return asked;
            }
        }
    }

    async fn hear(&mut self, event: Event) -> Vec<Effect> {
        self.core.handle(event, self.now);
        self.turn().await
    }

    async fn confirm(&mut self, step: &MoveRetention) -> Vec<Effect> {
        let (author, reason) = ("ann".into(), "a test".into());
        let confirm = ConfirmRetention { interface: step.interface, now: self.now.wall, author, reason };
        self.hear(Event::ConfirmRetention { ticket: Ticket(1), confirm }).await
    }

    /// The step is made, and the change goes on.
    async fn stepped(&mut self) -> Vec<Effect> {
        let states = self.store.register(&Topology::default()).await.unwrap().retentions;
        let moved = Moved { moved: 1, goes_on: true, ..Moved::nothing(states[0].1) };
        assert!(moved.state.change.is_some());
        self.hear(Event::Moved(Ok(moved))).await
    }
}

fn is_step(effect: &Effect) -> bool {
    matches!(effect, Effect::MoveRetention(_) | Effect::Expire(_))
}

fn is_word(effect: &Effect) -> bool {
    matches!(effect, Effect::ConfirmRetention(_) | Effect::Register(_))
}

#[tokio::test]
async fn a_batch_is_written_while_a_step_is_in_hand_and_no_second_step_begins() {
    let (mut desk, _) = Desk::stepping().await;
    desk.now.monotonic += Duration::from_secs(60);
    assert!(!desk.turn().await.iter().any(is_step));
    let (author, reason) = ("ann".into(), String::new());
    let (message, kind) = (MessageId(1), ActionKind::Dismiss);
    let action = Action { message, destination: None, kind, author, reason, request: None };
    let asked = desk.hear(Event::Act { ticket: Ticket(1), action }).await;
    assert!(asked.iter().any(|effect| matches!(effect, Effect::Write(_))), "{asked:?}");
}

#[tokio::test]
async fn what_is_said_of_retention_waits_for_the_step_in_hand_and_comes_before_the_next() {
    let (mut desk, step) = Desk::stepping().await;
    assert!(!desk.confirm(&step).await.iter().any(is_word));
    let register = Event::Register { ticket: Ticket(2), topology: Topology::default() };
    assert!(!desk.hear(register).await.iter().any(is_word));
    // Long enough for the next step to be due.
    desk.now.monotonic += Duration::from_secs(60);
    let asked = desk.stepped().await;
    assert!(matches!(asked[..], [Effect::Register(_)]), "{asked:?}");
    let registered = desk.store.register(&Topology::default()).await;
    desk.now.monotonic += Duration::from_secs(60);
    let asked = desk.hear(Event::Registered(registered)).await;
    assert!(asked.iter().any(is_word) && !asked.iter().any(is_step), "{asked:?}");
    let state = Some(RetentionState::default());
    desk.now.monotonic += Duration::from_secs(60);
    let asked = desk.hear(Event::RetentionConfirmed(Ok(state))).await;
    let goes_on = asked.iter().any(|effect| matches!(effect, Effect::MoveRetention(_)));
    assert!(!goes_on, "it said that no change runs: {asked:?}");
}

#[tokio::test]
async fn the_store_is_closed_when_the_step_in_hand_is_over() {
    let (mut desk, _) = Desk::stepping().await;
    let is_close = |effect: &Effect| matches!(effect, Effect::Close);
    assert!(!desk.hear(Event::Shutdown).await.iter().any(is_close));
    assert!(desk.stepped().await.iter().any(is_close));
}
