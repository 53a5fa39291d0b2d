//! What the local API asks of a running engine, answered from its parts.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use portway_admin::views::{self, Time};
use portway_admin::{
    Action, ActionKind, BulkAction, ConfirmRetention, Control, ControlError, ControlErrorKind,
    DestinationAction, DestinationActionKind, DrainOrder, Edit, LaneAction, LaneActionKind, RemoveState,
    params,
};
use portway_config::{DestinationSettings, InterfaceSettings, Project};
use portway_engine::ports::Clock;
use portway_engine::status::OwnershipStatus;
use portway_engine::{AfterDrain, EngineHandle};
use portway_model::{DeliveryState, DestinationId, GroupId, InterfaceId, MessageId, Term, code};
use portway_store::{ActionOutcome, EngineView, ListMessages, MessageView, QueueView, Store, StoreError};

mod bulk;
mod current;
mod edit;
mod held;
mod lane;
mod look;
mod outputs;
mod retention;
mod state;
use look::LastLook;
use outputs::output;

use super::clock::SystemClock;
use super::latency::LatencyCounts;
use super::names::Names;
use super::observer::{Observers, plugin_counts};
use super::picture;
use super::sources::SourceParts;
use super::store;
use super::traces::Traces;
pub use current::CurrentControl;

/// The deliveries' times, by destination.
pub type Latencies = HashMap<DestinationId, Arc<LatencyCounts>>;

/// A running engine as the API sees it.
pub struct EngineControl {
    project: Project,
    names: Names,
    engine: EngineHandle,
    store: Arc<dyn Store>,
    /// In the order of the project's interfaces; none: only routes lead to it.
    parts: Vec<Option<SourceParts>>,
    plugins: Vec<views::Plugin>,
    observers: Observers,
    latencies: Latencies,
    life: Arc<Life>,
    last_look: LastLook,
}

/// What outlives a change of the project.
pub struct Life {
    started_at: Time,
    started: Instant,
    is_stopping: AtomicBool,
    traces: Option<Arc<Traces>>,
}

impl Life {
    pub fn begin(traces: Option<Arc<Traces>>) -> Arc<Life> {
        Arc::new(Life {
            started_at: Time(SystemClock::new().now()),
            started: Instant::now(),
            is_stopping: AtomicBool::new(false),
            traces,
        })
    }

    /// From now on the engine says that it stops.
    pub fn stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}

impl EngineControl {
    pub fn new(
        project: Project,
        names: Names,
        engine: EngineHandle,
        store: Arc<dyn Store>,
        parts: Vec<Option<SourceParts>>,
        (plugins, observers, latencies): (Vec<views::Plugin>, Observers, Latencies),
        life: Arc<Life>,
    ) -> Self {
        let last_look = LastLook::default();
        EngineControl { project, names, engine, store, parts, plugins, observers, latencies, life, last_look }
    }

    fn state(&self, engine: &portway_engine::Status) -> views::EngineState {
        if self.life.is_stopping.load(Ordering::Relaxed) {
            return views::EngineState::Stopping;
        }
        match (engine.ready, &engine.ownership) {
            (false, _) => views::EngineState::Starting,
            (true, OwnershipStatus::Owner { .. }) => views::EngineState::Running,
            (true, OwnershipStatus::Standby { .. }) => views::EngineState::Standby,
        }
    }

    fn engine_on_store(&self, view: &EngineView) -> views::EngineOnStore {
        let name_of = |group: &GroupId| self.names.interface_name(InterfaceId(group.0));
        views::EngineOnStore {
            name: view.engine.clone(),
            started_at: Time(view.started_at),
            is_this: view.is_self,
            interfaces: view.groups.iter().map(name_of).collect(),
        }
    }

    fn interface(
        &self,
        interface: &InterfaceSettings,
        parts: Option<&SourceParts>,
        engine: &portway_engine::Status,
        queues: &HashMap<DestinationId, QueueView>,
    ) -> views::Interface {
        let name = interface.name.as_str();
        let destinations = interface.destinations.iter().filter_map(|settings| {
            let id = self.names.destination(name, settings.name.value.as_str())?;
            let status = engine.destinations.iter().find(|status| status.id == id);
            let (own, order) = (settings.name.value.as_str(), order_word(settings));
            let view = picture::destination(own, target_words(settings), order, status, queues, id);
            let latency = self.latencies.get(&id).map(|counts| counts.view()).unwrap_or_default();
            Some(views::Destination { latency, ..view })
        });
        let source = parts.map(|parts| parts.handle.status());
        let refusals = source.as_ref().map(picture::refusals);
        views::Interface {
            name: name.to_owned(),
            listener: parts.zip(interface.source.as_ref()).and_then(|(parts, settings)| {
                let source = source.as_ref()?;
                Some(views::Listener {
                    plugin: settings.plugin.value.as_str().to_owned(),
                    address: parts.handle.address()?.to_string(),
                    tls: settings.tls.is_some(),
                    connections: source.connections,
                    connections_max: source.connections_max,
                    accepted: source.connections_total,
                })
            }),
            poll: parts.zip(interface.source.as_ref()).and_then(|(parts, settings)| {
                let status = parts.handle.poll()?;
                Some(views::Poll {
                    plugin: settings.plugin.value.as_str().to_owned(),
                    state: status.state.as_str().to_owned(),
                    reason: status.state.failure().map(ToString::to_string),
                    polled_at: status.polled_at.map(Time),
                })
            }),
            items: source.as_ref().map(items).unwrap_or_default(),
            refusals: refusals.unwrap_or_default(),
            notices: parts.map(|parts| parts.observer.notices()).unwrap_or_default(),
            source: source.as_ref().map(picture::source_counts).unwrap_or_default(),
            plugins: self.observers.get(name).map(|all| plugin_counts(all)).unwrap_or_default(),
            destinations: destinations.collect(),
        }
    }

    fn message(&self, view: MessageView) -> views::Message {
        views::Message {
            id: view.id,
            interface: self.names.interface_name(view.interface),
            status: view.status,
            received_at: Time(view.received_at),
            stored_at: Time(view.stored_at),
            occurred_at: view.occurred_at.map(Time),
            key: view.key,
            dedupe: view.dedupe,
            body_bytes: view.body_bytes,
            origin: view.origin,
            origin_kind: view.origin_kind.map(str::to_owned),
        }
    }

    /// A search that can find nothing says so.
    fn check_searchable(
        &self,
        list: &params::ListMessages,
        attribute: Option<&str>,
    ) -> Result<(), ControlError> {
        // An interface is led to by its key first.
        let Some(wanted) = list.key.as_ref().map(|_| Term::KEY).or(attribute) else { return Ok(()) };
        let is_meant =
            |own: &&InterfaceSettings| list.interface.as_deref().is_none_or(|name| own.name.as_str() == name);
        let mut meant = self.project.interfaces.iter().filter(is_meant);
        if meant.any(|own| own.search.iter().any(|name| name == wanted)) {
            return Ok(());
        }
        let which = list.interface.as_deref().map_or_else(
            || "no interface makes".to_owned(),
            |name| format!("interface `{name}` does not make"),
        );
        let text = format!("{which} `{wanted}` searchable; add it to its `search`");
        Err(ControlError::new(ControlErrorKind::Invalid, code::NOT_SEARCHABLE, text))
    }

    fn interface_id(&self, name: &str) -> Result<InterfaceId, ControlError> {
        self.names
            .interface(name)
            .ok_or_else(|| not_found(code::NO_INTERFACE, format!("there is no interface `{name}`")))
    }

    fn destination_id(&self, interface: &str, name: &str) -> Result<DestinationId, ControlError> {
        self.interface_id(interface)?;
        let text = || format!("interface `{interface}` has no destination `{name}`");
        self.names.destination(interface, name).ok_or_else(|| not_found(code::NO_DESTINATION, text()))
    }
}

#[async_trait]
impl Control for EngineControl {
    async fn health(&self) -> views::Health {
        match self.engine.status().await {
            Ok(status) => {
                let intake_open = status.ready && status.intake.closed.is_none();
                views::Health { state: self.state(&status), intake_open }
            }
            Err(_) => views::Health { state: views::EngineState::Stopping, intake_open: false },
        }
    }

    async fn status(&self) -> Result<views::Status, ControlError> {
        let mut engine = self.engine.status().await.map_err(|error| failed(code::ENGINE, chain(&error)))?;
        let (seen, away) = self.look(&mut engine).await;
        let pairs = self.project.interfaces.iter().zip(&self.parts);
        Ok(views::Status {
            engine: views::Engine {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                project: self.project.dir.display().to_string(),
                state: self.state(&engine),
                started_at: self.life.started_at,
                uptime_s: self.life.started.elapsed().as_secs(),
                process_id: std::process::id(),
            },
            intake: picture::intake(&engine.intake),
            drain: engine.drain.as_ref().map(picture::drain),
            commits: picture::commits(&engine.commits),
            store: views::Store {
                path: store::place(&self.project),
                free_bytes: engine.intake.free_bytes,
                log_bytes: engine.intake.log_bytes,
                pruned: engine.intake.pruned,
                notes: self.store.notes(),
                away,
            },
            retention: picture::retention(&engine.retention),
            memory: picture::memory(&engine.memory),
            interfaces: pairs
                .map(|(one, parts)| self.interface(one, parts.as_ref(), &engine, &seen.queues))
                .collect(),
            plugins: self.plugins.clone(),
            engines: seen.engines.iter().map(|view| self.engine_on_store(view)).collect(),
            traces: self.life.traces.as_ref().map(|traces| traces.view()),
        })
    }

    async fn list_messages(&self, list: params::ListMessages) -> Result<views::MessagePage, ControlError> {
        let interface = list.interface.as_deref().map(|name| self.interface_id(name)).transpose()?;
        let destination = match (&list.interface, &list.destination) {
            (_, None) => None,
            (Some(interface), Some(name)) => Some(self.destination_id(interface, name)?),
            (None, Some(_)) => {
                let text = "a destination is named together with its interface";
                return Err(ControlError::new(ControlErrorKind::Invalid, code::NO_INTERFACE, text));
            }
        };
        let attribute = list.attribute.as_deref().and_then(|attribute| attribute.split_once('='));
        self.check_searchable(&list, attribute.map(|(name, _)| name))?;
        let query = ListMessages {
            interface,
            key: list.key,
            attribute: attribute.map(|(name, value)| (name.to_owned(), value.to_owned())),
            text: list.text,
            from: list.from.map(|from| from.0),
            to: list.to.map(|to| to.0),
            status: list.status,
            destination,
            before: list.cursor,
            limit: list.limit,
        };
        let page = self.store.list_messages(&query).await.map_err(unavailable)?;
        let items = page.items.into_iter().map(|view| self.message(view)).collect();
        Ok(views::MessagePage { items, next: page.next })
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<views::MessageDetail>, ControlError> {
        let Some(view) = self.store.get_message(id).await.map_err(unavailable)? else {
            return Ok(None);
        };
        let deliveries = self.store.list_deliveries(id).await.map_err(unavailable)?;
        let attempts = self.store.list_attempts(id).await.map_err(unavailable)?;
        let outputs = self.store.list_outputs(id).await.map_err(unavailable)?;
        let actions = self.store.list_actions(id).await.map_err(unavailable)?;
        let name = |id| self.names.destination_name(id);
        let body_bytes = view.body_bytes;
        Ok(Some(views::MessageDetail {
            attributes: view.attributes.pairs().to_vec(),
            message: self.message(view),
            deliveries: deliveries.into_iter().map(|one| delivery(name(one.destination), one)).collect(),
            attempts: attempts.into_iter().map(|one| attempt(name(one.destination), one)).collect(),
            outputs: outputs.into_iter().map(|one| output(name(one.destination), body_bytes, one)).collect(),
            actions: actions.into_iter().map(|one| action_record(one.destination.map(name), one)).collect(),
            edits: self.store.list_edits(id).await.map_err(unavailable)?,
        }))
    }

    async fn get_body(&self, id: MessageId) -> Result<Option<Bytes>, ControlError> {
        let messages = self.store.load_messages(&[id]).await.map_err(unavailable)?;
        Ok(messages.into_iter().next().map(|message| message.body))
    }

    async fn get_output(&self, id: MessageId, destination: &str) -> Result<Bytes, ControlError> {
        self.load_output(id, destination).await
    }

    async fn act(&self, action: Action) -> Result<views::ActionDone, ControlError> {
        let view = self.store.get_message(action.message).await.map_err(unavailable)?;
        let view = view.ok_or_else(|| no_message(action.message))?;
        let interface = self.names.interface_name(view.interface);
        let destination =
            action.destination.as_deref().map(|name| self.destination_id(&interface, name)).transpose()?;
        let asked = portway_store::Action {
            message: view.id,
            destination,
            kind: match action.kind {
                // Whether a delivery keeps its lane is decided by the engine, from its destination's policy.
                ActionKind::Resend => portway_store::ActionKind::Resend { keep_lane: false },
                ActionKind::Dismiss => portway_store::ActionKind::Dismiss,
                ActionKind::Retry => portway_store::ActionKind::Retry,
            },
            author: action.author,
            reason: action.reason,
            request: None,
        };
        let conflict = |code, text| ControlError::new(ControlErrorKind::Conflict, code, text);
        match self.engine.act(asked).await.map_err(|error| failed(code::NOT_DONE, chain(&error)))? {
            ActionOutcome::Done(changed) if changed.is_empty() => {
                let text = format!("message {} has no delivery that can be {}", view.id, past(action.kind));
                Err(conflict(code::NOTHING_FITS, text))
            }
            ActionOutcome::Done(changed) => Ok(views::ActionDone {
                message: view.id,
                action: action.kind.as_str().to_owned(),
                destinations: changed.iter().map(|(id, ..)| self.names.destination_name(*id)).collect(),
            }),
            ActionOutcome::NoMessage => Err(no_message(view.id)),
            ActionOutcome::Repeated => Err(conflict(code::NOTHING_FITS, "it was done before".to_owned())),
            ActionOutcome::NoBody => {
                Err(conflict(code::NO_BODY, format!("message {} has no body any more", view.id)))
            }
        }
    }

    async fn edit(&self, edit: Edit) -> Result<views::Edited, ControlError> {
        self.store_edit(edit).await
    }

    async fn act_all(&self, bulk: BulkAction) -> Result<Vec<views::BulkItem>, ControlError> {
        self.act_on_many(bulk).await
    }

    async fn act_on_destination(&self, action: DestinationAction) -> Result<(), ControlError> {
        let destination = self.destination_id(&action.interface, &action.destination)?;
        let kind = match action.kind {
            DestinationActionKind::Pause => portway_store::DestinationActionKind::Pause,
            DestinationActionKind::Resume => portway_store::DestinationActionKind::Resume,
        };
        let (author, reason) = (action.author, action.reason);
        let asked = portway_store::DestinationAction { destination, kind, author, reason };
        self.engine.act_on_destination(asked).await.map_err(|error| failed(code::NOT_DONE, chain(&error)))
    }

    async fn act_on_lane(&self, action: LaneAction) -> Result<views::ActionDone, ControlError> {
        let head = self.head(&action).await?;
        self.act(Action {
            message: head.message,
            destination: Some(action.destination),
            kind: match (action.kind, head.state) {
                (LaneActionKind::Skip, _) => ActionKind::Dismiss,
                (LaneActionKind::Retry, DeliveryState::Pending) => ActionKind::Retry,
                // Its policy keeps it in its lane.
                (LaneActionKind::Retry, _) => ActionKind::Resend,
            },
            author: action.author,
            reason: action.reason,
        })
        .await
    }

    async fn list_state(
        &self,
        interface: &str,
        destination: &str,
        list: params::ListState,
    ) -> Result<views::StatePage, ControlError> {
        self.list_plugin_state(interface, destination, list).await
    }

    async fn get_state(
        &self,
        interface: &str,
        destination: &str,
        state: params::GetState,
    ) -> Result<views::StateValue, ControlError> {
        self.get_plugin_state(interface, destination, state).await
    }

    async fn remove_state(&self, remove: RemoveState) -> Result<views::StateRemoved, ControlError> {
        self.remove_plugin_state(remove).await
    }

    async fn list_destination_actions(
        &self,
        interface: &str,
        destination: &str,
    ) -> Result<Vec<views::DestinationActionRecord>, ControlError> {
        let id = self.destination_id(interface, destination)?;
        let actions = self.store.list_destination_actions(id).await.map_err(unavailable)?;
        Ok(actions.into_iter().map(picture::destination_action).collect())
    }

    async fn list_retention(&self) -> Result<views::Retentions, ControlError> {
        self.retentions().await
    }

    async fn confirm_retention(
        &self,
        confirm: ConfirmRetention,
    ) -> Result<views::RetentionConfirmed, ControlError> {
        self.confirm(confirm).await
    }

    async fn drain(&self, order: DrainOrder) -> Result<(), ControlError> {
        let order = match order {
            DrainOrder::Begin { author, stop } => {
                let then = if stop { AfterDrain::Stop } else { AfterDrain::Stay };
                portway_engine::DrainOrder::Begin { author, then }
            }
            DrainOrder::Cancel => portway_engine::DrainOrder::Cancel,
        };
        self.engine.drain(order).await.map_err(|error| failed(code::NOT_DONE, chain(&error)))
    }

    async fn backup(&self, target: &Path) -> Result<views::Backup, ControlError> {
        let began = Instant::now();
        self.store.backup(target).await.map_err(|error| failed(code::BACKUP, chain(&error)))?;
        let bytes = std::fs::metadata(target).map_or(0, |metadata| metadata.len());
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(views::Backup { file: target.display().to_string(), bytes, took_ms })
    }

    async fn list_refusals(&self) -> Result<Vec<views::Refused>, ControlError> {
        let mut refused = Vec::new();
        for (interface, parts) in self.project.interfaces.iter().zip(&self.parts) {
            let Some(parts) = parts else {
                continue;
            };
            refused.extend(refusals_of(interface.name.as_str(), parts));
        }
        refused.sort_by_key(|one| std::cmp::Reverse(one.at));
        Ok(refused)
    }
}

/// Those whose bytes were kept, then connections that never got as far, by reason.
fn refusals_of(interface: &str, parts: &SourceParts) -> Vec<views::Refused> {
    let kept = parts.handle.refusals().into_iter().map(|refusal| views::Refused {
        interface: interface.to_owned(),
        reason: refusal.failure.code.clone(),
        count: 1,
        at: Some(Time(refusal.at)),
        peer: Some(refusal.peer.to_string()),
        text: Some(format!("{}\n{}", refusal.failure.text, refusal.shown())),
    });
    let status = parts.handle.status();
    let counted = status.connections_refused.into_iter().map(|(reason, count)| views::Refused {
        interface: interface.to_owned(),
        reason,
        count,
        at: None,
        peer: None,
        text: None,
    });
    kept.chain(counted).collect()
}

fn items(source: &portway_sources::SourceStatus) -> views::Items {
    views::Items {
        messages: source.messages,
        refused: source.refused,
        controls: source.control,
        settled: source.answered + source.unanswered,
        answered: source.answered,
    }
}

fn delivery(destination: String, view: portway_store::DeliveryView) -> views::Delivery {
    views::Delivery {
        destination,
        state: view.state,
        lane: view.lane.number(),
        round: view.round.0,
        attempts: view.attempts.0,
        due_at: view.due_at.map(Time),
        finished_at: view.finished_at.map(Time),
        reason: view.reason,
    }
}

fn attempt(destination: String, view: portway_store::AttemptView) -> views::Attempt {
    views::Attempt {
        destination,
        round: view.round.0,
        number: view.number.0,
        started_at: Time(view.started_at),
        took_ms: view.took_ms,
        outcome: view.outcome.to_owned(),
        text: view.text,
    }
}

fn action_record(destination: Option<String>, view: portway_store::ActionView) -> views::ActionRecord {
    views::ActionRecord {
        at: Time(view.at),
        destination,
        action: view.action.to_owned(),
        author: view.author,
        reason: view.reason,
    }
}

fn order_word(settings: &DestinationSettings) -> &'static str {
    match settings.order {
        portway_model::Order::Strict => "strict",
        portway_model::Order::Key => "key",
        portway_model::Order::None => "none",
    }
}

fn target_words(settings: &DestinationSettings) -> String {
    match (&settings.sender, &settings.route) {
        (Some(sender), _) => sender.plugin.value.as_str().to_owned(),
        (None, Some(route)) => format!("route {}", route.value),
        (None, None) => String::new(),
    }
}

fn past(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Resend => "resent",
        ActionKind::Dismiss => "dismissed",
        ActionKind::Retry => "tried now",
    }
}

fn not_found(code: &'static str, text: String) -> ControlError {
    ControlError::new(ControlErrorKind::NotFound, code, text)
}

fn no_message(id: MessageId) -> ControlError {
    not_found(code::NO_MESSAGE, format!("there is no message {id}"))
}

fn failed(code: &'static str, text: String) -> ControlError {
    ControlError::new(ControlErrorKind::Failed, code, text)
}

fn unavailable(error: StoreError) -> ControlError {
    ControlError::new(ControlErrorKind::Unavailable, code::STORE, chain(&error))
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
