//! What operators do, and suspects.

use portway_model::{AttemptNo, DeliveryState, Lane, MessageId, MessageStatus, Round, Timestamp};

use super::Harness;
use super::fixture::{Fixture, RESEND, action, applied, lane, quarantined, retry, sent};
use crate::{Action, ActionKind, ActionOutcome, Settled, Suspect, WriteBatch};

pub async fn a_resent_delivery_goes_apart_in_the_next_round(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    for settled in [sent(), Settled::Filtered("no".into()), quarantined()] {
        let id = fixture.store_one(fixture.message("body")).await;
        fixture.settle_one(id, settled).await;
        fixture.wait(3);
        let outcome = fixture.act(id, None, RESEND).await;
        assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.x, Lane::APART, Round(1))]));
        let view = fixture.delivery(id, fixture.x).await;
        assert_eq!((view.state, view.lane, view.round), (DeliveryState::Pending, Lane::APART, Round(1)));
        assert_eq!((view.attempts, view.due_at), (AttemptNo(0), Some(fixture.now())));
        assert_eq!((view.reason, view.finished_at), (None, None));
        assert_eq!(fixture.status(id).await, Some(MessageStatus::Pending));
        let due = fixture.store.read_due(fixture.x, fixture.now(), 9).await.unwrap();
        assert!(due.iter().any(|pending| pending.message == id && pending.round == Round(1)));
    }
    let id = fixture.store_one(fixture.message("body")).await;
    fixture.act(id, None, ActionKind::Dismiss).await;
    let again = ActionOutcome::Done(vec![(fixture.x, Lane::APART, Round(1))]);
    assert_eq!(fixture.act(id, None, RESEND).await, again);
}

pub async fn a_quarantined_delivery_can_keep_its_lane(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let keep = ActionKind::Resend { keep_lane: true };
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 9), (fixture.y, 9)])).await;
    let results = vec![fixture.result(id, fixture.x, quarantined()), fixture.result(id, fixture.y, sent())];
    fixture.settle(results).await;
    let outcome = fixture.act(id, None, keep).await;
    // What was sent is not what a lane waits for.
    let expected = vec![(fixture.x, lane(9), Round(1)), (fixture.y, Lane::APART, Round(1))];
    assert_eq!(outcome, ActionOutcome::Done(expected));
    assert_eq!(fixture.delivery(id, fixture.x).await.due_at, None);
    assert_eq!(fixture.delivery(id, fixture.y).await.due_at, Some(fixture.now()));
    assert_eq!(fixture.lane(fixture.x, 9).await, [id]);
}

pub async fn resend_leaves_pending_deliveries_alone(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
    fixture.settle(vec![fixture.result(id, fixture.y, sent())]).await;
    let outcome = fixture.act(id, None, RESEND).await;
    assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.y, Lane::APART, Round(1))]));
    assert_eq!(fixture.delivery(id, fixture.x).await.round, Round(0));
    assert_eq!(fixture.act(id, None, RESEND).await, ActionOutcome::Done(vec![]));
    assert_eq!(
        fixture.store.list_actions(id).await.unwrap().len(),
        1,
        "what changed nothing is not recorded"
    );
}

pub async fn resend_can_mean_one_destination(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
    fixture.settle(vec![fixture.result(id, fixture.x, sent()), fixture.result(id, fixture.y, sent())]).await;
    let outcome = fixture.act(id, Some(fixture.y), RESEND).await;
    assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.y, Lane::APART, Round(1))]));
    assert_eq!(fixture.state(id, fixture.x).await, DeliveryState::Sent);
    assert_eq!(fixture.act(id, Some(fixture.z), RESEND).await, ActionOutcome::Done(vec![]));
}

pub async fn dismiss_ends_pending_and_quarantined_deliveries(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 4), (fixture.y, 4)])).await;
    fixture.settle_one(id, quarantined()).await;
    fixture.wait(1);
    let outcome = fixture.act(id, Some(fixture.y), ActionKind::Dismiss).await;
    assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.y, lane(4), Round(0))]));
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Quarantined));
    let outcome = fixture.act(id, None, ActionKind::Dismiss).await;
    assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.x, lane(4), Round(0))]));
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Finished));
    let view = fixture.delivery(id, fixture.x).await;
    assert_eq!((view.state, view.finished_at), (DeliveryState::Dismissed, Some(fixture.now())));
    assert_eq!(view.reason.as_deref(), Some("bad: no good"), "why it was there for");
    assert_eq!(fixture.store.destinations_with_work().await.unwrap(), []);
    assert_eq!(fixture.act(id, None, ActionKind::Dismiss).await, ActionOutcome::Done(vec![]));
    // What waits for its time is ended as well.
    let id = fixture.store_one(fixture.message("body")).await;
    fixture.settle_one(id, retry(Timestamp(99))).await;
    fixture.act(id, None, ActionKind::Dismiss).await;
    let view = fixture.delivery(id, fixture.x).await;
    assert_eq!((view.due_at, view.attempts), (None, AttemptNo(1)));
}

pub async fn actions_of_one_batch_follow_each_other(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let first = fixture.store_one(fixture.message("one")).await;
    let second = fixture.store_one(fixture.message("two")).await;
    let actions = vec![
        action(first, None, ActionKind::Dismiss),
        action(second, None, ActionKind::Dismiss),
        action(first, None, RESEND),
        action(first, None, RESEND),
    ];
    let outcome = fixture.write(WriteBatch { actions, ..fixture.batch() }).await;
    let expected = [
        ActionOutcome::Done(vec![(fixture.x, lane(0), Round(0))]),
        ActionOutcome::Done(vec![(fixture.x, lane(0), Round(0))]),
        ActionOutcome::Done(vec![(fixture.x, Lane::APART, Round(1))]),
        ActionOutcome::Done(vec![]),
    ];
    assert_eq!(outcome.actions, expected);
    assert_eq!(fixture.state(first, fixture.x).await, DeliveryState::Pending);
    assert_eq!(fixture.state(second, fixture.x).await, DeliveryState::Dismissed);
}

pub async fn an_action_follows_the_results_of_its_batch(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("one")).await;
    let batch = WriteBatch {
        messages: vec![fixture.message("two")],
        results: vec![fixture.result(id, fixture.x, sent())],
        actions: vec![action(id, None, RESEND)],
        suspects: vec![Suspect { destination: fixture.x, message: id }],
        ..fixture.batch()
    };
    let outcome = fixture.write(batch).await;
    assert_eq!(outcome.results, [applied()]);
    assert_eq!(outcome.actions, [ActionOutcome::Done(vec![(fixture.x, Lane::APART, Round(1))])]);
    assert_eq!(outcome.suspects, [1]);
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Pending));
}

pub async fn an_action_needs_its_message_and_its_body(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.keyed("k", "same"), fixture.keyed("k", "same")]).await;
    let duplicate = MessageId(2);
    assert_eq!(fixture.act(MessageId(999), None, RESEND).await, ActionOutcome::NoMessage);
    assert_eq!(fixture.act(MessageId(999), None, ActionKind::Dismiss).await, ActionOutcome::NoMessage);
    assert_eq!(fixture.act(duplicate, None, RESEND).await, ActionOutcome::NoBody);
    assert_eq!(fixture.act(duplicate, None, ActionKind::Dismiss).await, ActionOutcome::Done(vec![]));
    assert_eq!(fixture.store.list_actions(duplicate).await.unwrap(), []);
    // A large body is a body.
    let large = fixture.store_one(fixture.message(&"x".repeat((1 << 20) + 1))).await;
    fixture.settle_one(large, sent()).await;
    assert!(
        matches!(fixture.act(large, None, RESEND).await, ActionOutcome::Done(changed) if changed.len() == 1)
    );
}

pub async fn actions_are_listed(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    fixture.act(id, Some(fixture.x), ActionKind::Dismiss).await;
    fixture.wait(7);
    fixture.act(id, None, RESEND).await;
    let [first, second] = fixture.store.list_actions(id).await.unwrap().try_into().unwrap();
    assert_eq!((first.action, first.destination), ("dismiss", Some(fixture.x)));
    assert_eq!((first.author.as_str(), first.reason.as_str()), ("ann", "they asked"));
    assert_eq!((second.action, second.destination, second.at), ("resend", None, fixture.now()));
}

pub async fn suspects_are_counted_until_a_result(harness: &dyn Harness) {
    let mut fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])]).await;
    let suspect = |destination| Suspect { destination, message: MessageId(1) };
    let (x, y) = (suspect(fixture.x), suspect(fixture.y));
    let suspects = async |fixture: &Fixture, suspects: &[Suspect]| {
        fixture.write(WriteBatch { suspects: suspects.to_vec(), ..fixture.batch() }).await.suspects
    };
    assert_eq!(suspects(&fixture, &[x, y]).await, [1, 1]);
    fixture = fixture.reopen(harness).await;
    assert_eq!(suspects(&fixture, &[x]).await, [2]);
    assert_eq!(suspects(&fixture, &[x, y, x]).await, [3, 2, 4]);
    fixture = fixture.reopen(harness).await;
    let listed =
        async |fixture: &Fixture, of: Suspect| fixture.store.list_suspects(of.destination).await.unwrap();
    assert_eq!(listed(&fixture, x).await, [MessageId(1)]);
    // Whatever the result, it is one.
    assert_eq!(fixture.settle_one(MessageId(1), retry(Timestamp(5))).await, applied());
    assert_eq!(listed(&fixture, x).await, []);
    assert_eq!(listed(&fixture, y).await, [MessageId(1)]);
    assert_eq!(suspects(&fixture, &[x, y]).await, [1, 3]);
}

pub async fn what_waits_for_its_time_can_be_tried_now_in_its_place(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 3), (fixture.y, 1024)])).await;
    assert_eq!(
        fixture.act(id, None, ActionKind::Retry).await,
        ActionOutcome::Done(vec![]),
        "it does not wait"
    );
    let due = fixture.now() + std::time::Duration::from_secs(60);
    let results = vec![fixture.result(id, fixture.x, retry(due)), fixture.result(id, fixture.y, retry(due))];
    fixture.settle(results).await;
    fixture.wait(2);
    let outcome = fixture.act(id, Some(fixture.x), ActionKind::Retry).await;
    assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.x, lane(3), Round(0))]));
    let view = fixture.delivery(id, fixture.x).await;
    assert_eq!((view.state, view.lane, view.due_at), (DeliveryState::Pending, lane(3), None));
    assert_eq!((view.attempts, view.reason.as_deref()), (AttemptNo(1), Some("away: not there")));
    let [pending] = fixture.store.read_lane(fixture.x, lane(3), MessageId::ZERO, 9).await.unwrap()[..] else {
        panic!("it is in its lane")
    };
    assert_eq!((pending.due_at, pending.attempts), (None, AttemptNo(1)));
    let outcome = fixture.act(id, None, ActionKind::Retry).await;
    assert_eq!(outcome, ActionOutcome::Done(vec![(fixture.y, Lane::APART, Round(0))]));
    let due = fixture.store.read_due(fixture.y, fixture.now(), 9).await.unwrap();
    assert_eq!((due.len(), due[0].due_at), (1, Some(fixture.now())));
    fixture.settle(vec![fixture.result(id, fixture.x, quarantined())]).await;
    assert_eq!(fixture.act(id, Some(fixture.x), ActionKind::Retry).await, ActionOutcome::Done(vec![]));
    let actions = fixture.store.list_actions(id).await.unwrap();
    assert_eq!(actions.iter().map(|action| action.action).collect::<Vec<_>>(), ["retry", "retry"]);
}

pub async fn a_resent_delivery_is_no_suspect(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    let suspect = Suspect { destination: fixture.x, message: id };
    let count =
        async || fixture.write(WriteBatch { suspects: vec![suspect], ..fixture.batch() }).await.suspects;
    assert_eq!(count().await, [1]);
    fixture.act(id, None, ActionKind::Dismiss).await;
    assert_eq!(count().await, [2]);
    fixture.act(id, None, RESEND).await;
    assert_eq!(count().await, [1], "it is another round");
}

pub async fn a_request_is_done_once(harness: &dyn Harness) {
    let mut fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
    let resend = async |fixture: &Fixture, request: &str, to| {
        let action = Action { request: Some(request.into()), ..action(id, to, RESEND) };
        let batch = WriteBatch { actions: vec![action], ..fixture.batch() };
        fixture.write(batch).await.actions.remove(0)
    };
    let x = Some(fixture.x);
    // What found nothing to do may find it later.
    assert_eq!(resend(&fixture, "r1", x).await, ActionOutcome::Done(vec![]));
    fixture.settle(vec![fixture.result(id, fixture.x, sent()), fixture.result(id, fixture.y, sent())]).await;
    assert!(matches!(resend(&fixture, "r1", x).await, ActionOutcome::Done(changed) if changed.len() == 1));
    let again = Settled::Quarantined(portway_model::Failure::new("bad", "again"));
    let result = crate::DeliveryResult { round: Round(1), ..fixture.result(id, fixture.x, again) };
    fixture.settle(vec![result]).await;
    fixture = fixture.reopen(harness).await;
    assert_eq!(resend(&fixture, "r1", x).await, ActionOutcome::Repeated);
    assert_eq!(fixture.state(id, fixture.x).await, DeliveryState::Quarantined);
    assert!(matches!(resend(&fixture, "r2", x).await, ActionOutcome::Done(changed) if changed.len() == 1));
    let elsewhere = resend(&fixture, "r1", Some(fixture.y)).await;
    assert!(matches!(elsewhere, ActionOutcome::Done(changed) if changed.len() == 1), "another destination");
}
