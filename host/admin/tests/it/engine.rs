//! An engine that only remembers what it was asked.

use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use portway_admin::views::{self, Time};
use portway_admin::{
    Action, BulkAction, ConfirmRetention, Control, ControlError, ControlErrorKind, DestinationAction,
    DrainOrder, Edit, LaneAction, RemoveState, params,
};
use portway_model::{DeliveryState, MessageId, MessageStatus, Timestamp};

#[derive(Default)]
pub(crate) struct Engine {
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) stopping: Mutex<bool>,
    /// Messages stored since the start; a change of it is one of the status.
    pub(crate) more_stored: Mutex<u64>,
    /// Status asked so often.
    pub(crate) looks: Mutex<u64>,
    pub(crate) is_away: Mutex<bool>,
    /// Its store was not read since the start.
    pub(crate) away: Mutex<Option<views::StoreAway>>,
}

impl Engine {
    fn note(&self, text: String) {
        self.asked.lock().unwrap().push(text);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn time(millis: u64) -> Time {
    Time(Timestamp(millis))
}

fn message(id: MessageId) -> views::Message {
    views::Message {
        id,
        interface: "lab".into(),
        status: MessageStatus::Quarantined,
        received_at: time(1_000),
        stored_at: time(1_001),
        occurred_at: None,
        key: Some("P1".into()),
        dedupe: None,
        body_bytes: 5,
        origin: None,
        origin_kind: None,
    }
}

fn destination() -> views::Destination {
    views::Destination {
        name: "api".into(),
        to: "http".into(),
        order: "key".into(),
        state: views::DestinationState::Waiting,
        why: Some(views::Reason { code: "unreachable".into(), text: "connection refused".into() }),
        since: Some(time(2_000)),
        until: Some(time(9_000)),
        pause: None,
        waiting: 3,
        oldest: Some(time(1_000)),
        quarantined: 1,
        runs: 0,
        lanes_blocked: 1,
        blocked: vec![views::BlockedLane {
            lane: 7,
            message: 42,
            why: "http-503: try later".into(),
            attempts: 2,
            due_at: Some(time(9_000)),
        }],
        counts: views::DeliveryCounts { sent: 10, filtered: 1, quarantined: 1, retried: 4, dropped: 0 },
        rate: None,
        latency: views::DeliveryLatency::default(),
    }
}

fn polled() -> views::Interface {
    views::Interface {
        name: "inbox".into(),
        listener: None,
        poll: Some(views::Poll {
            plugin: "file".into(),
            state: "resting".into(),
            reason: None,
            polled_at: Some(time(7_000)),
        }),
        items: views::Items::default(),
        refusals: Vec::new(),
        notices: Vec::new(),
        source: views::SourceCounts::default(),
        plugins: Vec::new(),
        destinations: Vec::new(),
    }
}

#[async_trait]
impl Control for Engine {
    async fn health(&self) -> views::Health {
        let stopping = *self.stopping.lock().unwrap();
        let state = if stopping { views::EngineState::Stopping } else { views::EngineState::Running };
        views::Health { state, intake_open: !stopping }
    }

    async fn status(&self) -> Result<views::Status, ControlError> {
        *self.looks.lock().unwrap() += 1;
        if *self.is_away.lock().unwrap() {
            return Err(ControlError::new(ControlErrorKind::Unavailable, "store", "the store is busy"));
        }
        Ok(views::Status {
            engine: views::Engine {
                version: "0.1.0".into(),
                project: "/p".into(),
                state: views::EngineState::Running,
                started_at: time(0),
                uptime_s: 11,
                process_id: 1,
            },
            intake: views::Intake {
                closed: None,
                waiting: 0,
                stored: 14 + *self.more_stored.lock().unwrap(),
                duplicates: 1,
                refused: Vec::new(),
            },
            drain: None,
            traces: None,
            commits: views::Commits {
                commits: 5,
                strict: 5,
                messages: 14,
                results: 12,
                failures: 0,
                mean_ms: 1.5,
                p50_ms: 1.0,
                p99_ms: 4.0,
                busy_ratio: 0.1,
                busy_ms: 7.5,
            },
            store: views::Store {
                path: "/p/data/portway.db".into(),
                free_bytes: Some(1),
                log_bytes: 2,
                pruned: 3,
                notes: Vec::new(),
                away: self.away.lock().unwrap().clone(),
            },
            retention: views::RetentionCounts { changing: 1, unconfirmed: 2, clock_off_s: 3 },
            memory: views::Memory { resident_bytes: None, waiting: 3, body_bytes: 9, runs: 0 },
            interfaces: vec![
                views::Interface {
                    name: "lab".into(),
                    listener: Some(views::Listener {
                        plugin: "mllp".into(),
                        address: "127.0.0.1:2575".into(),
                        tls: false,
                        connections: 2,
                        connections_max: 100,
                        accepted: 6,
                    }),
                    poll: None,
                    items: views::Items { messages: 15, refused: 1, controls: 0, settled: 16, answered: 16 },
                    refusals: vec![views::Count { reason: "not-allowed".into(), count: 2 }],
                    notices: Vec::new(),
                    source: views::SourceCounts {
                        stored: 14,
                        duplicates: 1,
                        requests: vec![views::Count { reason: "2xx".into(), count: 7 }],
                        ..views::SourceCounts::default()
                    },
                    plugins: vec![views::PluginCounts {
                        plugin: "json-map".into(),
                        destination: Some("api".into()),
                        faults: vec![views::Count { reason: "trap".into(), count: 3 }],
                        notices: Vec::new(),
                        secrets: vec![views::SecretUses {
                            secret: "KEY".into(),
                            action: "sign".into(),
                            count: 7,
                        }],
                    }],
                    destinations: vec![destination()],
                },
                polled(),
            ],
            engines: Vec::new(),
            plugins: Vec::new(),
        })
    }

    async fn list_messages(&self, list: params::ListMessages) -> Result<views::MessagePage, ControlError> {
        self.note(format!("{list:?}"));
        Ok(views::MessagePage { items: vec![message(MessageId(42))], next: Some(MessageId(42)) })
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<views::MessageDetail>, ControlError> {
        let delivery = views::Delivery {
            destination: "api".into(),
            state: DeliveryState::Quarantined,
            lane: 7,
            round: 0,
            attempts: 2,
            due_at: None,
            finished_at: Some(time(3_000)),
            reason: Some("http-400: no".into()),
        };
        Ok((id == MessageId(42)).then(|| views::MessageDetail {
            message: message(id),
            attributes: vec![("hl7.type".into(), "ORU^R01".into())],
            deliveries: vec![delivery],
            attempts: Vec::new(),
            outputs: Vec::new(),
            actions: Vec::new(),
            edits: Vec::new(),
        }))
    }

    async fn get_body(&self, id: MessageId) -> Result<Option<Bytes>, ControlError> {
        Ok((id == MessageId(42)).then(|| Bytes::from_static(b"a\rb\0c")))
    }

    async fn get_output(&self, id: MessageId, destination: &str) -> Result<Bytes, ControlError> {
        let none = || ControlError::new(ControlErrorKind::NotFound, "no-output", "nothing was kept");
        (id == MessageId(42) && destination == "api").then(|| Bytes::from_static(b"made")).ok_or_else(none)
    }

    async fn act(&self, action: Action) -> Result<views::ActionDone, ControlError> {
        self.note(format!("{action:?}"));
        if action.message != MessageId(42) {
            return Err(ControlError::new(
                ControlErrorKind::NotFound,
                "no-message",
                "there is no such message",
            ));
        }
        Ok(views::ActionDone {
            message: action.message,
            action: action.kind.as_str().into(),
            destinations: vec!["api".into()],
        })
    }

    async fn edit(&self, edit: Edit) -> Result<views::Edited, ControlError> {
        self.note(format!("{edit:?}"));
        Ok(views::Edited { message: MessageId(43), of: edit.message })
    }

    async fn act_all(&self, bulk: BulkAction) -> Result<Vec<views::BulkItem>, ControlError> {
        self.note(format!("{bulk:?}"));
        let item = |message| views::BulkItem {
            message,
            destinations: vec!["api".into()],
            repeated: false,
            error: None,
        };
        Ok(bulk.messages.into_iter().map(item).collect())
    }

    async fn act_on_destination(&self, action: DestinationAction) -> Result<(), ControlError> {
        self.note(format!("{action:?}"));
        let text = format!("there is no destination `{}` in `{}`", action.destination, action.interface);
        (action.destination == "api")
            .then_some(())
            .ok_or_else(|| ControlError::new(ControlErrorKind::NotFound, "no-destination", text))
    }

    async fn act_on_lane(&self, action: LaneAction) -> Result<views::ActionDone, ControlError> {
        self.note(format!("{action:?}"));
        let destinations = vec![action.destination];
        Ok(views::ActionDone { message: MessageId(42), action: "dismiss".into(), destinations })
    }

    async fn list_state(
        &self,
        _: &str,
        _: &str,
        list: params::ListState,
    ) -> Result<views::StatePage, ControlError> {
        let space = list.space.unwrap_or_else(|| "counter".into());
        let key = views::StateKey { space, key: format!("{}1", list.prefix) };
        Ok(views::StatePage { keys: vec![key.clone()], next: Some(key) })
    }

    async fn get_state(
        &self,
        _: &str,
        _: &str,
        state: params::GetState,
    ) -> Result<views::StateValue, ControlError> {
        let space = state.space.unwrap_or_else(|| "counter".into());
        let (value, encoding) = ("YQBi".into(), "base64".into());
        Ok(views::StateValue { space, key: state.key, bytes: 3, value, encoding })
    }

    async fn remove_state(&self, remove: RemoveState) -> Result<views::StateRemoved, ControlError> {
        self.note(format!("{remove:?}"));
        let RemoveState { interface, destination, space, key, .. } = remove;
        let space = space.unwrap_or_else(|| "counter".into());
        Ok(views::StateRemoved { interface, destination, space, key })
    }

    async fn list_destination_actions(
        &self,
        interface: &str,
        destination: &str,
    ) -> Result<Vec<views::DestinationActionRecord>, ControlError> {
        let reason = format!("of {interface}/{destination}");
        let (action, author) = ("pause".into(), "ann".into());
        Ok(vec![views::DestinationActionRecord { at: time(5), action, author, reason }])
    }

    async fn list_retention(&self) -> Result<views::Retentions, ControlError> {
        Ok(views::Retentions { age_now: time(9), clock: None, interfaces: Vec::new() })
    }

    async fn confirm_retention(
        &self,
        confirm: ConfirmRetention,
    ) -> Result<views::RetentionConfirmed, ControlError> {
        self.note(format!("{confirm:?}"));
        let to = views::Window { retention: "1w".into(), quarantined: "keep".into() };
        Ok(views::RetentionConfirmed { interface: confirm.interface, to, in_force: true })
    }

    async fn drain(&self, order: DrainOrder) -> Result<(), ControlError> {
        self.note(format!("{order:?}"));
        Ok(())
    }

    async fn backup(&self, target: &Path) -> Result<views::Backup, ControlError> {
        Ok(views::Backup { file: target.display().to_string(), bytes: 1, took_ms: 2 })
    }

    async fn list_refusals(&self) -> Result<Vec<views::Refused>, ControlError> {
        Ok(vec![views::Refused {
            interface: "lab".into(),
            reason: "not-allowed".into(),
            count: 2,
            at: Some(time(5)),
            peer: Some("10.1.2.3:4".into()),
            text: None,
        }])
    }
}
