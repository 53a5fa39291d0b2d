//! Results of deliveries: which count, what they change, what is recorded.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, Attributes, DeliveryState, Failure, Key, MessageId, MessageStatus, Round, SavedBody,
    SavedOutput, Timestamp,
};

use super::Harness;
use super::fixture::{Fixture, RESEND, applied, delivery, quarantined, retry, sent, stored};
use crate::{
    Attempted, DeliveryResult, MessageOutcome, NewMessage, Origin, OriginKind, OutputBody, ResultOutcome,
    Settled, WriteBatch,
};

pub async fn a_sent_delivery_finishes_its_message(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    fixture.wait(1);
    assert_eq!(fixture.settle_one(id, sent()).await, applied());
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Finished));
    let view = fixture.delivery(id, fixture.x).await;
    assert_eq!((view.state, view.attempts, view.round), (DeliveryState::Sent, AttemptNo(1), Round(0)));
    assert_eq!((view.finished_at, view.due_at, view.reason), (Some(fixture.now()), None, None));
    assert_eq!(fixture.lane(fixture.x, 0).await, []);
    assert_eq!(fixture.store.destinations_with_work().await.unwrap(), []);
}

pub async fn the_status_of_a_message_follows_its_deliveries(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let cases: [(Settled, Settled, MessageStatus); 6] = [
        (sent(), retry(Timestamp(1)), MessageStatus::Pending),
        (sent(), sent(), MessageStatus::Finished),
        (sent(), Settled::Filtered("not ours".into()), MessageStatus::Finished),
        (quarantined(), sent(), MessageStatus::Quarantined),
        (sent(), quarantined(), MessageStatus::Quarantined),
        (quarantined(), retry(Timestamp(1)), MessageStatus::Pending),
    ];
    for (at_x, at_y, status) in cases {
        let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
        fixture.settle(vec![fixture.result(id, fixture.x, at_x.clone())]).await;
        assert_eq!(fixture.status(id).await, Some(MessageStatus::Pending), "one is still pending");
        fixture.settle(vec![fixture.result(id, fixture.y, at_y.clone())]).await;
        assert_eq!(fixture.status(id).await, Some(status), "{at_x:?}, {at_y:?}");
        // Both in one batch come to the same.
        let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
        let results = vec![fixture.result(id, fixture.x, at_x), fixture.result(id, fixture.y, at_y)];
        fixture.settle(results).await;
        assert_eq!(fixture.status(id).await, Some(status));
    }
}

pub async fn a_result_counts_only_once(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    for first in [sent(), Settled::Filtered("no".into()), quarantined()] {
        let id = fixture.store_one(fixture.message("body")).await;
        assert_eq!(fixture.settle_one(id, first.clone()).await, applied());
        for later in [sent(), quarantined(), retry(Timestamp(1)), Settled::Routed(vec![])] {
            assert_eq!(fixture.settle_one(id, later).await, ResultOutcome::Stale);
        }
        assert_eq!(fixture.state(id, fixture.x).await, first.state());
    }
}

pub async fn a_result_of_another_round_is_stale(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    fixture.settle_one(id, sent()).await;
    fixture.act(id, None, RESEND).await;
    assert_eq!(fixture.settle_one(id, sent()).await, ResultOutcome::Stale);
    assert_eq!(fixture.state(id, fixture.x).await, DeliveryState::Pending);
    let next = DeliveryResult { round: Round(1), ..fixture.result(id, fixture.x, sent()) };
    let future = DeliveryResult { round: Round(2), ..next.clone() };
    assert_eq!(fixture.settle(vec![future, next]).await, [ResultOutcome::Stale, applied()]);
}

pub async fn a_result_for_what_is_not_there_is_stale(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    let results =
        vec![fixture.result(MessageId(999), fixture.x, sent()), fixture.result(id, fixture.y, sent())];
    assert_eq!(fixture.settle(results).await, [ResultOutcome::Stale, ResultOutcome::Stale]);
    assert_eq!(fixture.store.list_deliveries(MessageId(999)).await.unwrap(), []);
    assert_eq!(fixture.store.list_deliveries(id).await.unwrap().len(), 1);
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Pending));
}

pub async fn results_of_one_batch_count_in_order(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    let results = [retry(Timestamp(9)), sent(), sent(), retry(Timestamp(10))];
    let results = results.into_iter().map(|settled| fixture.result(id, fixture.x, settled)).collect();
    let expected = [applied(), applied(), ResultOutcome::Stale, ResultOutcome::Stale];
    assert_eq!(fixture.settle(results).await, expected);
    assert_eq!(fixture.state(id, fixture.x).await, DeliveryState::Sent);
    let id = fixture.store_one(fixture.message("body")).await;
    let results = [retry(Timestamp(9)), retry(Timestamp(10))];
    let results = results.into_iter().map(|settled| fixture.result(id, fixture.x, settled)).collect();
    assert_eq!(fixture.settle(results).await, [applied(), applied()]);
    assert_eq!(fixture.delivery(id, fixture.x).await.due_at, Some(Timestamp(10)));
}

pub async fn stale_results_do_not_stop_the_others(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store((0..200).map(|_| fixture.message("body")).collect()).await;
    fixture
        .settle((1..=200).step_by(3).map(|n| fixture.result(MessageId(n), fixture.x, sent())).collect())
        .await;
    let batch = WriteBatch {
        messages: vec![fixture.keyed("k", "with them")],
        results: (1..=200).map(|n| fixture.result(MessageId(n), fixture.x, sent())).collect(),
        ..fixture.batch()
    };
    let outcome = fixture.write(batch).await;
    assert_eq!(outcome.messages, [stored(201)]);
    for (n, result) in (0..).zip(outcome.results) {
        assert_eq!(result, if n % 3 == 0 { ResultOutcome::Stale } else { applied() }, "{n}");
    }
    assert_eq!(fixture.lane(fixture.x, 0).await, [MessageId(201)]);
}

pub async fn a_retry_stays_pending(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    assert_eq!(fixture.settle_one(id, retry(Timestamp(77))).await, applied());
    let view = fixture.delivery(id, fixture.x).await;
    assert_eq!(
        (view.state, view.attempts, view.due_at),
        (DeliveryState::Pending, AttemptNo(1), Some(Timestamp(77)))
    );
    assert_eq!((view.reason.as_deref(), view.finished_at), (Some("away: not there"), None));
    assert_eq!(fixture.status(id).await, Some(MessageStatus::Pending));
    assert_eq!(fixture.lane(fixture.x, 0).await, [id]);
}

pub async fn answers_and_failures_are_reasons(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let answer = |code: &str, text: &str| Settled::Sent(Answer { code: code.into(), text: text.into() });
    let cases = [
        (answer("", ""), None),
        (answer("AA", ""), Some("AA")),
        (answer("", "fine"), Some("fine")),
        (answer("200", "OK"), Some("200: OK")),
        (Settled::Filtered("not ours".into()), Some("not ours")),
        (Settled::Quarantined(Failure::new("AR", "é \"no\"")), Some("AR: é \"no\"")),
    ];
    for (settled, reason) in cases {
        let id = fixture.store_one(fixture.message("body")).await;
        fixture.settle_one(id, settled).await;
        assert_eq!(fixture.delivery(id, fixture.x).await.reason.as_deref(), reason);
    }
}

fn routed_to_b(fixture: &Fixture, from: MessageId, body: &str) -> NewMessage {
    NewMessage {
        interface: fixture.b,
        origin: Some(Origin { message: from, kind: OriginKind::Route }),
        deliveries: vec![delivery(fixture.z, 0)],
        ..fixture.message(body)
    }
}

pub async fn routes_are_stored_with_their_result(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.message("one"), fixture.message("two")]).await;
    let route = |from: u64, bodies: &[&str]| {
        let messages = bodies.iter().map(|body| routed_to_b(&fixture, MessageId(from), body)).collect();
        fixture.result(MessageId(from), fixture.x, Settled::Routed(messages))
    };
    let batch = WriteBatch {
        messages: vec![fixture.message("three")],
        results: vec![route(1, &["1a", "1b"]), route(2, &["2a"])],
        ..fixture.batch()
    };
    let outcome = fixture.write(batch).await;
    // Messages first, then what the results brought, in order.
    assert_eq!(outcome.messages, [stored(3)]);
    let expected =
        [ResultOutcome::Applied(vec![stored(4), stored(5)]), ResultOutcome::Applied(vec![stored(6)])];
    assert_eq!(outcome.results, expected);
    assert_eq!(fixture.lane(fixture.z, 0).await, [4, 5, 6].map(MessageId));
    assert_eq!(fixture.state(MessageId(1), fixture.x).await, DeliveryState::Sent);
    let view = fixture.store.get_message(MessageId(5)).await.unwrap().unwrap();
    assert_eq!(
        (view.interface, view.origin, view.origin_kind),
        (fixture.b, Some(MessageId(1)), Some("route"))
    );
}

pub async fn routes_of_a_stale_result_are_not_stored(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.store(vec![fixture.message("one"), fixture.message("two")]).await;
    fixture.settle_one(MessageId(1), sent()).await;
    let route = |from: u64| {
        let messages = vec![routed_to_b(&fixture, MessageId(from), &format!("of {from}"))];
        fixture.result(MessageId(from), fixture.x, Settled::Routed(messages))
    };
    let expected = [ResultOutcome::Stale, ResultOutcome::Applied(vec![stored(3)]), ResultOutcome::Stale];
    assert_eq!(fixture.settle(vec![route(1), route(2), route(2)]).await, expected);
    assert_eq!(fixture.all().await, [3, 2, 1].map(MessageId));
    assert_eq!(fixture.store.load_messages(&[MessageId(3)]).await.unwrap()[0].body, "of 2");
}

pub async fn large_routes_are_stored_or_leave_nothing(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let large = "x".repeat((1 << 20) + 5);
    fixture.store(vec![fixture.message("one"), fixture.message("two")]).await;
    fixture.settle_one(MessageId(1), sent()).await;
    let route = |from: u64| {
        let messages = vec![routed_to_b(&fixture, MessageId(from), &large)];
        fixture.result(MessageId(from), fixture.x, Settled::Routed(messages))
    };
    let expected = [ResultOutcome::Stale, ResultOutcome::Applied(vec![stored(3)])];
    assert_eq!(fixture.settle(vec![route(1), route(2)]).await, expected);
    assert_eq!(fixture.store.load_messages(&[MessageId(3)]).await.unwrap()[0].body, large);
}

pub async fn failed_attempts_are_recorded(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
    let attempt = |number: u32, settled| DeliveryResult {
        attempts: AttemptNo(number),
        attempted: Some(Attempted {
            started_at: Timestamp(u64::from(number)),
            took: Duration::from_millis(9),
        }),
        ..fixture.result(id, fixture.x, settled)
    };
    fixture.settle(vec![attempt(1, retry(Timestamp(50)))]).await;
    // Nothing was tried: nothing to record.
    fixture.settle(vec![DeliveryResult { attempted: None, ..attempt(1, retry(Timestamp(60))) }]).await;
    fixture.settle(vec![attempt(2, retry(Timestamp(70))), attempt(3, sent())]).await;
    fixture.settle(vec![fixture.result(id, fixture.y, sent())]).await;
    let attempts = fixture.store.list_attempts(id).await.unwrap();
    let told: Vec<_> = attempts.iter().map(|a| (a.number.0, a.outcome, a.text.as_str())).collect();
    assert_eq!(told, [(1, "retry", "away: not there"), (2, "retry", "away: not there"), (3, "sent", "")]);
    let first = attempts.first().unwrap();
    assert_eq!(
        (first.destination, first.round, first.started_at, first.took_ms),
        (fixture.x, Round(0), Timestamp(1), 9)
    );
    // A sent first attempt is told by its delivery alone; a failed one is always recorded.
    let id = fixture.store_one(fixture.message("body")).await;
    fixture.settle_one(id, quarantined()).await;
    let [only] = fixture.store.list_attempts(id).await.unwrap().try_into().unwrap();
    assert_eq!((only.outcome, only.text.as_str()), ("quarantined", "bad: no good"));
}

pub async fn what_a_sender_was_given_is_kept(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0), (fixture.y, 0)])).await;
    let given = |key: &str, body| {
        let attributes = Attributes::new(vec![("made".into(), key.into())]).unwrap();
        Some(Box::new(SavedOutput { key: Key::new(key), attributes: Arc::new(attributes), body }))
    };
    let kept = |bytes: &'static [u8]| SavedBody::Kept(Bytes::from_static(bytes));
    let at = |destination, number: u32, settled, output| DeliveryResult {
        attempts: AttemptNo(number),
        output,
        ..fixture.result(id, destination, settled)
    };
    fixture.settle(vec![at(fixture.x, 1, retry(Timestamp(50)), given("first", kept(b"one")))]).await;
    fixture.settle(vec![at(fixture.x, 2, retry(Timestamp(60)), None)]).await;
    let [first] = fixture.store.list_outputs(id).await.unwrap().try_into().unwrap();
    assert_eq!(
        (first.attempt, first.key.as_deref(), first.body),
        (AttemptNo(1), Some("first"), OutputBody::Kept(3))
    );
    assert_eq!(first.attributes.pairs(), [("made".to_owned(), "first".to_owned())]);
    assert_eq!(fixture.store.load_output(id, fixture.x).await.unwrap().as_deref(), Some(&b"one"[..]));
    // The newest replaces it, also with less; what does not count changes nothing.
    fixture.settle(vec![at(fixture.x, 3, sent(), given("second", SavedBody::TooLarge(7)))]).await;
    fixture.settle(vec![at(fixture.x, 4, sent(), given("stale", kept(b"stale")))]).await;
    // Whatever became of it, and also where its bytes had no room.
    fixture.settle(vec![at(fixture.y, 1, retry(Timestamp(70)), given("full", SavedBody::NoRoom(8)))]).await;
    let outputs = fixture.store.list_outputs(id).await.unwrap();
    assert_eq!(outputs.last().map(|output| output.body), Some(OutputBody::NoRoom(8)));
    fixture.settle(vec![at(fixture.y, 2, sent(), given("same", SavedBody::Same))]).await;
    let outputs = fixture.store.list_outputs(id).await.unwrap();
    let told: Vec<_> = outputs.iter().map(|one| (one.destination, one.attempt.0, one.body)).collect();
    assert_eq!(told, [(fixture.x, 3, OutputBody::TooLarge(7)), (fixture.y, 2, OutputBody::Same)]);
    assert_eq!(fixture.store.load_output(id, fixture.x).await.unwrap(), None);
    assert_eq!(fixture.store.load_output(id, fixture.y).await.unwrap(), None);
    fixture.outlive().await;
    assert_eq!(fixture.store.list_outputs(id).await.unwrap(), []);
}

pub async fn what_the_sender_of_a_quarantined_message_was_given_is_kept(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message_to(&[(fixture.x, 0)])).await;
    let body = SavedBody::Kept(Bytes::from_static(b"made"));
    let output = SavedOutput { key: None, attributes: Arc::default(), body };
    let result = fixture.result(id, fixture.x, quarantined());
    fixture.settle(vec![DeliveryResult { output: Some(Box::new(output)), ..result }]).await;
    let [output] = fixture.store.list_outputs(id).await.unwrap().try_into().unwrap();
    assert_eq!((output.round, output.saved_at, output.body), (Round(0), fixture.now(), OutputBody::Kept(4)));
    assert_eq!(fixture.store.load_output(id, fixture.x).await.unwrap().as_deref(), Some(&b"made"[..]));
    // A resent one keeps it until its sender is given something again.
    fixture.act(id, None, RESEND).await;
    assert_eq!(fixture.store.list_outputs(id).await.unwrap(), [output]);
}

pub async fn a_large_batch_of_mixed_results_is_stored(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let message = || fixture.message_to(&[(fixture.x, 0), (fixture.y, 5)]);
    fixture.store((0..300).map(|_| message()).collect()).await;
    let settled = |n: u64| match n % 5 {
        0 => sent(),
        1 => Settled::Sent(Answer { code: "AA".into(), text: format!("number {n}") }),
        2 => Settled::Filtered(format!("kind {}", n % 7)),
        3 => quarantined(),
        _ => retry(Timestamp(1000 + n)),
    };
    let at_x = (1..=300).map(|n| fixture.result(MessageId(n), fixture.x, settled(n)));
    let at_y = (1..=300).map(|n| fixture.result(MessageId(n), fixture.y, settled(n + 1)));
    let outcomes = fixture.settle(at_x.chain(at_y).collect()).await;
    assert!(outcomes.iter().all(|outcome| *outcome == applied()));
    for n in [1, 2, 64, 65, 100, 199, 298, 299, 300] {
        let id = MessageId(n);
        for (destination, settled) in [(fixture.x, settled(n)), (fixture.y, settled(n + 1))] {
            let view = fixture.delivery(id, destination).await;
            let expected = (settled.state(), settled.due_at(), settled.reason());
            assert_eq!((view.state, view.due_at, view.reason), expected, "{id} at {destination}");
        }
        let states = [settled(n).state(), settled(n + 1).state()];
        assert_eq!(fixture.status(id).await, Some(MessageStatus::of_deliveries(states)), "{id}");
    }
    let waiting = (1..=300).filter(|n| n % 5 == 4).map(MessageId).collect::<Vec<_>>();
    assert_eq!(fixture.lane(fixture.x, 0).await, waiting);
    let one: Vec<MessageOutcome> = fixture.store(vec![message()]).await;
    assert_eq!(one, [stored(301)]);
}
