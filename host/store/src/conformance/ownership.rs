//! Who owns what: one engine at a time, and what others do meanwhile.

use portway_model::{DeliveryState, Epoch, GroupId, Timestamp};

use super::Harness;
use super::fixture::{Fixture, START, applied, claim, quarantined, retry, sent, topology};
use crate::{Action, ActionKind, Claimed, DeliveryResult, News, ResultOutcome, Settled, Suspect, WriteBatch};

pub async fn an_unclean_end_is_told_once(harness: &dyn Harness) {
    let store = harness.open().await;
    let registered = store.register(&topology()).await.unwrap();
    assert!(!claim(&*store, &registered).await.unclean, "a new store");
    assert!(!claim(&*store, &registered).await.unclean, "the same engine again");
    let store = harness.reopen(store).await;
    let tenure = claim(&*store, &registered).await;
    assert!(tenure.unclean, "killed");
    assert!(!claim(&*store, &registered).await.unclean, "it was told before");
    store.close().await.unwrap();
    let store = harness.reopen(store).await;
    assert!(!claim(&*store, &registered).await.unclean, "closed");
    // Opened, but no engine came as far as to own something: that is no unclean end.
    store.close().await.unwrap();
    let store = harness.reopen(store).await;
    store.register(&topology()).await.unwrap();
    let store = harness.reopen(store).await;
    assert!(!claim(&*store, &registered).await.unclean, "never in use");
}

pub async fn each_owner_has_an_epoch_of_its_own(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let first = fixture.epoch;
    let registered = fixture.store.register(&topology()).await.unwrap();
    assert_eq!(claim(&*fixture.store, &registered).await.epoch, first, "it is the owner");
    let fixture = fixture.reopen(harness).await;
    assert!(fixture.epoch > first, "after the end of the process");
    let second = fixture.epoch;
    fixture.store.close().await.unwrap();
    let fixture = fixture.reopen(harness).await;
    assert!(fixture.epoch > second, "after an end in order");
}

pub async fn a_result_of_an_earlier_epoch_counts_only_if_it_is_sent(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let (mut ids, later) = (Vec::new(), Timestamp(START.0 + 1));
    for _ in 0..4 {
        ids.push(fixture.store_one(fixture.message("body")).await);
    }
    let before = fixture.epoch;
    let fixture = fixture.reopen(harness).await;
    let settled = [retry(later), quarantined(), Settled::Filtered("no".into()), sent()];
    let of = |(id, settled): (_, Settled), epoch: Epoch| DeliveryResult {
        epoch,
        ..fixture.result(id, fixture.x, settled)
    };
    let pairs = || ids.iter().copied().zip(settled.clone());
    let outcomes = fixture.settle(pairs().map(|pair| of(pair, before)).collect()).await;
    assert_eq!(outcomes[..3], [const { ResultOutcome::Disowned }; 3]);
    assert_eq!(outcomes[3], applied());
    assert_eq!(fixture.state(ids[0], fixture.x).await, DeliveryState::Pending);
    assert_eq!(fixture.state(ids[3], fixture.x).await, DeliveryState::Sent);
    let outcomes = fixture.settle(pairs().map(|pair| of(pair, fixture.epoch)).collect()).await;
    assert_eq!(outcomes, [applied(), applied(), applied(), ResultOutcome::Stale]);
}

/// Its owner of now may have read it as pending, and be about to record it and to send it again.
pub async fn what_is_sent_in_an_earlier_epoch_leaves_the_record_of_a_suspect(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let id = fixture.store_one(fixture.message("body")).await;
    let suspects = vec![Suspect { destination: fixture.x, message: id }];
    let batch = |fixture: &Fixture| WriteBatch { suspects: suspects.clone(), ..fixture.batch() };
    assert_eq!(fixture.write(batch(&fixture)).await.suspects, [1]);
    let result = fixture.result(id, fixture.x, sent());
    let fixture = fixture.reopen(harness).await;
    assert_eq!(fixture.settle(vec![result]).await, [applied()]);
    assert_eq!(fixture.write(batch(&fixture)).await.suspects, [2]);
}

pub async fn an_engine_owns_all_it_asks_for_or_nothing(harness: &dyn Harness) {
    let Some((fixture, other)) = two(harness).await else { return };
    let (a, b, more) = (GroupId(fixture.a.0), GroupId(fixture.b.0), GroupId(77));
    let Claimed::Refused(owners) = other.claim(&[more, b], START).await.unwrap() else {
        panic!("the group belongs to another engine")
    };
    assert_eq!(owners.iter().map(|owner| owner.group).collect::<Vec<_>>(), [b]);
    assert!(!owners[0].engine.is_empty());
    let views = other.list_engines().await.unwrap();
    let groups = |is_self: bool| {
        let mut of = views.iter().filter(|view| view.is_self == is_self).flat_map(|view| view.groups.clone());
        let mut groups: Vec<GroupId> = of.by_ref().collect();
        groups.sort();
        groups
    };
    assert_eq!((groups(false), groups(true)), (vec![a, b], vec![]), "nothing was claimed");
    let Claimed::Owned(tenure) = other.claim(&[more], START).await.unwrap() else { panic!("nobody owns it") };
    assert!(!tenure.unclean && !tenure.overlaps);
    fixture.store.close().await.unwrap();
    let Claimed::Owned(tenure) = other.claim(&[a, b], START).await.unwrap() else {
        panic!("they were given back")
    };
    assert!(!tenure.unclean && !tenure.overlaps, "in order");
}

pub async fn an_owner_is_told_what_others_stored_for_it(harness: &dyn Harness) {
    let Some((fixture, other)) = two(harness).await else { return };
    let a = GroupId(fixture.a.0);
    assert_eq!(fixture.write(WriteBatch::default()).await.elsewhere, []);
    let messages = vec![fixture.message("by another")];
    let outcome = other.write(WriteBatch { messages, ..fixture.batch() }).await.unwrap();
    assert_eq!(outcome.elsewhere, [], "they are not its own");
    let outcome = fixture.write(WriteBatch { mark: 100, ..fixture.batch() }).await;
    let told = if outcome.elsewhere.is_empty() {
        fixture.store.news().await
    } else {
        News::Elsewhere(outcome.elsewhere)
    };
    assert_eq!(told, News::Elsewhere(vec![a]));
    // What is told with a write is true for everything that was stored before it.
    let messages = vec![fixture.message("by another")];
    other.write(WriteBatch { mark: 200, messages, ..fixture.batch() }).await.unwrap();
    assert_eq!(fixture.lane(fixture.x, 0).await.len(), 2);
    other.close().await.unwrap();
}

/// An engine that lost its groups a moment ago lets an operator act on them: it does not know it yet.
pub async fn an_owner_is_told_what_an_operator_did_through_another(harness: &dyn Harness) {
    let Some((fixture, other)) = two(harness).await else { return };
    let id = fixture.store_one(fixture.message("body")).await;
    let action = Action {
        message: id,
        destination: Some(fixture.x),
        kind: ActionKind::Dismiss,
        author: "ann".into(),
        reason: "no".into(),
        request: None,
    };
    other.write(WriteBatch { mark: 100, actions: vec![action], ..fixture.batch() }).await.unwrap();
    let outcome = fixture.write(WriteBatch { mark: 101, ..fixture.batch() }).await;
    let told = if outcome.elsewhere.is_empty() {
        fixture.store.news().await
    } else {
        News::Elsewhere(outcome.elsewhere)
    };
    assert_eq!(told, News::Elsewhere(vec![GroupId(fixture.a.0)]));
    other.close().await.unwrap();
}

pub async fn each_engine_finds_its_own_marks(harness: &dyn Harness) {
    let Some((fixture, other)) = two(harness).await else { return };
    fixture.write(WriteBatch { mark: 11, ..fixture.batch() }).await;
    other.write(WriteBatch { mark: 12, ..fixture.batch() }).await.unwrap();
    assert!(fixture.store.find_mark(11).await.unwrap().is_some());
    assert!(fixture.store.find_mark(12).await.unwrap().is_none());
    assert!(other.find_mark(12).await.unwrap().is_some());
}

/// Two engines on one store, the first the owner of everything; none: only one engine may use it,
/// which is said where such a store is opened.
async fn two(harness: &dyn Harness) -> Option<(Fixture, std::sync::Arc<dyn crate::Store>)> {
    let fixture = Fixture::open(harness).await;
    let other = harness.another(&fixture.store).await?;
    assert_eq!(other.register(&topology()).await.unwrap().interfaces.len(), 2);
    Some((fixture, other))
}
