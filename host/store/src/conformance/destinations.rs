//! What operators do to destinations as a whole.

use super::Harness;
use super::fixture::{Fixture, topology};
use crate::{DestinationAction, DestinationActionKind, DestinationActionView, ErrorKind, WriteBatch};

impl Fixture {
    async fn act_on_x(&self, kind: DestinationActionKind, reason: &str) {
        let action =
            DestinationAction { destination: self.x, kind, author: "ann".into(), reason: reason.into() };
        self.write(WriteBatch { destination_actions: vec![action], ..self.batch() }).await;
    }
}

pub async fn a_pause_outlives_the_process_until_it_is_resumed(harness: &dyn Harness) {
    let mut fixture = Fixture::open(harness).await;
    assert_eq!(fixture.store.register(&topology()).await.unwrap().pauses, []);
    fixture.wait(5);
    fixture.act_on_x(DestinationActionKind::Pause, "first").await;
    fixture.act_on_x(DestinationActionKind::Pause, "the peer is rebuilt").await;
    let since = fixture.now();
    fixture = fixture.reopen(harness).await;
    let pauses = fixture.store.register(&topology()).await.unwrap().pauses;
    let [(destination, pause)] = pauses.as_slice() else { panic!("{pauses:?}") };
    assert_eq!((*destination, pause.since), (fixture.x, since));
    assert_eq!((pause.author.as_str(), pause.reason.as_str()), ("ann", "the peer is rebuilt"));
    fixture.act_on_x(DestinationActionKind::Resume, "").await;
    assert_eq!(fixture.store.register(&topology()).await.unwrap().pauses, []);
}

pub async fn actions_on_a_destination_are_listed_newest_first(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    fixture.act_on_x(DestinationActionKind::Pause, "one").await;
    fixture.wait(1);
    fixture.act_on_x(DestinationActionKind::Resume, "two").await;
    let actions = fixture.store.list_destination_actions(fixture.x).await.unwrap();
    let shown: Vec<_> = actions.iter().map(|action| (action.action, action.reason.as_str())).collect();
    assert_eq!(shown, [("resume", "two"), ("pause", "one")]);
    assert_eq!((actions[0].at, actions[0].author.as_str()), (fixture.now(), "ann"));
    assert_eq!(fixture.store.list_destination_actions(fixture.y).await.unwrap(), []);
    for number in 0..DestinationActionView::KEPT_MAX {
        fixture.act_on_x(DestinationActionKind::Resume, &number.to_string()).await;
    }
    let actions = fixture.store.list_destination_actions(fixture.x).await.unwrap();
    assert_eq!(actions.len(), DestinationActionView::KEPT_MAX as usize, "older ones are forgotten");
    assert_eq!(actions.last().unwrap().reason, "0");
}

pub async fn an_action_needs_its_destination(harness: &dyn Harness) {
    let fixture = Fixture::open(harness).await;
    let action = DestinationAction {
        destination: portway_model::DestinationId(99),
        kind: DestinationActionKind::Pause,
        author: "ann".into(),
        reason: String::new(),
    };
    let batch = WriteBatch { destination_actions: vec![action], ..fixture.batch() };
    let error = fixture.store.write(batch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}
