//! The engine from outside: a cheap handle whose calls end when they are stored.

use std::sync::Arc;

use bytes::Bytes;
use portway_model::{DestinationId, Draft, InterfaceId, RetentionState, Timestamp, code};
use portway_store::{
    Action, ActionKind, ActionOutcome, ConfirmRetention, DeliveryView, DestinationAction, Registered, Store,
    StoreError, Topology,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::drain::DrainOrder;
use crate::event::{ActError, Edit, EngineError, Submission, Unit};
use crate::fate::Fate;
use crate::gate::{Gate, GateError};
use crate::inbox::{Inbox, Letter};
use crate::ports::Clock;
use crate::settings::LayoutChange;
use crate::status::Status;

/// Counted for each draft beside its body.
const DRAFT_BYTES: usize = 512;

/// What a handle asks of the engine, beside storing messages.
#[derive(Debug)]
pub(crate) enum Request {
    Act {
        action: Action,
        reply: oneshot::Sender<Result<ActionOutcome, ActError>>,
    },
    ActOnDestination {
        action: DestinationAction,
        reply: oneshot::Sender<Result<ActionOutcome, ActError>>,
    },
    Drain {
        order: DrainOrder,
        reply: oneshot::Sender<Result<ActionOutcome, ActError>>,
    },
    Register {
        topology: Topology,
        reply: oneshot::Sender<Result<Registered, ActError>>,
    },
    ChangeLayout {
        change: LayoutChange,
        reply: oneshot::Sender<Result<ActionOutcome, ActError>>,
        settled: oneshot::Sender<()>,
    },
    ConfirmRetention {
        confirm: ConfirmRetention,
        reply: oneshot::Sender<Result<Option<RetentionState>, ActError>>,
    },
    Status(oneshot::Sender<Status>),
    Shutdown,
}

/// See the file. Clones are the same engine.
#[derive(Clone)]
pub struct EngineHandle {
    requests: mpsc::Sender<Request>,
    inbox: Inbox,
    gate: Gate,
    ready: watch::Receiver<bool>,
    drained: watch::Receiver<bool>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    unit_max: UnitMax,
}

/// What fits into one transaction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitMax {
    pub messages: usize,
    /// Of all bodies; a single message may be more.
    pub bytes: usize,
}

impl UnitMax {
    fn fits(&self, drafts: &[Draft]) -> bool {
        let bytes: usize = drafts.iter().map(|draft| draft.body.len()).sum();
        drafts.len() <= self.messages && (drafts.len() <= 1 || bytes <= self.bytes)
    }
}

impl EngineHandle {
    pub(crate) fn new(
        (requests, inbox): (mpsc::Sender<Request>, Inbox),
        gate: Gate,
        (ready, drained): (watch::Receiver<bool>, watch::Receiver<bool>),
        (store, clock): (Arc<dyn Store>, Arc<dyn Clock>),
        unit_max: UnitMax,
    ) -> Self {
        EngineHandle { requests, inbox, gate, ready, drained, store, clock, unit_max }
    }

    /// Stores messages of an interface. Answers after their commit, one fate a draft, in order.
    pub async fn submit(
        &self,
        interface: InterfaceId,
        received_at: Timestamp,
        drafts: Vec<Draft>,
        unit: Unit,
    ) -> Vec<Fate> {
        self.hand_over(interface, received_at, drafts, unit, None).await
    }

    /// Stores a corrected copy of a message in an interface, as [`EngineHandle::submit`] does.
    pub async fn edit(
        &self,
        interface: InterfaceId,
        received_at: Timestamp,
        draft: Draft,
        edit: Edit,
    ) -> Fate {
        let edit = Some(Box::new(edit));
        let fates = self.hand_over(interface, received_at, vec![draft], Unit::Each, edit).await;
        fates.into_iter().next().unwrap_or_else(Fate::stopped)
    }

    async fn hand_over(
        &self,
        interface: InterfaceId,
        received_at: Timestamp,
        drafts: Vec<Draft>,
        unit: Unit,
        edit: Option<Box<Edit>>,
    ) -> Vec<Fate> {
        let (is_whole, cursor_bytes) = match &unit {
            Unit::Each => (false, 0),
            Unit::Whole => (true, 0),
            Unit::WithCursor(cursor) => (true, cursor.len()),
        };
        let count = drafts.len() + usize::from(matches!(unit, Unit::WithCursor(_)));
        if count == 0 {
            return Vec::new();
        }
        let bytes = drafts.iter().map(draft_bytes).sum::<usize>() + cursor_bytes;
        let is_too_large = is_whole && !self.unit_max.fits(&drafts);
        let permit = match self.gate.admit(interface, bytes) {
            Ok(_) if is_too_large => return vec![Fate::too_large("more than one transaction takes"); count],
            Ok(permit) => permit,
            Err(error) => return vec![not_admitted(error, interface); count],
        };
        let (reply, answer) = oneshot::channel();
        let came_at = self.clock.monotonic();
        let submission = Submission { interface, received_at, came_at, drafts, unit, edit, permit };
        if !self.inbox.push(Letter { submission, reply }) {
            return vec![Fate::stopped(); count];
        }
        answer.await.unwrap_or_else(|_| vec![Fate::stopped(); count])
    }

    /// How far an interface's source has come; empty: nothing was stored yet.
    pub async fn source_cursor(&self, interface: InterfaceId) -> Result<Bytes, StoreError> {
        Ok(self.store.source_cursor(interface).await?.unwrap_or_default())
    }

    /// Deliveries of these destinations that are pending, counted up to `limit`.
    pub async fn count_pending(&self, destinations: &[DestinationId], limit: u32) -> Result<u32, StoreError> {
        self.store.count_pending(destinations, limit).await
    }

    /// What fits into one transaction together.
    pub fn unit_max(&self) -> UnitMax {
        self.unit_max
    }

    /// Does what an operator asks, and records it. Whether a resent delivery stays in its lane
    /// follows from its destination's policy, whatever the action says.
    pub async fn act(&self, action: Action) -> Result<ActionOutcome, ActError> {
        let asked = self.ask(action).await?;
        gather(asked).await
    }

    /// The same for many, which share transactions; one answer each, in order.
    pub async fn act_all(&self, actions: Vec<Action>) -> Vec<Result<ActionOutcome, ActError>> {
        let mut asked = Vec::with_capacity(actions.len());
        for action in actions {
            asked.push(self.ask(action).await);
        }
        let mut outcomes = Vec::with_capacity(asked.len());
        for answers in asked {
            outcomes.push(match answers {
                Ok(answers) => gather(answers).await,
                Err(error) => Err(error),
            });
        }
        outcomes
    }

    async fn ask(&self, action: Action) -> Result<Vec<Answering>, ActError> {
        let mut answers = Vec::new();
        for action in self.split(action).await? {
            let (reply, answer) = oneshot::channel();
            self.requests.send(Request::Act { action, reply }).await.map_err(|_| ActError::Stopped)?;
            answers.push(answer);
        }
        Ok(answers)
    }

    async fn split(&self, action: Action) -> Result<Vec<Action>, ActError> {
        if action.destination.is_some() || action.kind == ActionKind::Dismiss {
            return Ok(vec![action]);
        }
        let deliveries = self.store.list_deliveries(action.message).await;
        let deliveries = deliveries.map_err(|error| ActError::Unavailable(error.to_string()))?;
        Ok(split_resend(action, &deliveries))
    }

    /// Pauses a destination, or lets one that is paused, stopped or away go on; when this returns,
    /// it is stored.
    pub async fn act_on_destination(&self, action: DestinationAction) -> Result<(), ActError> {
        let (reply, answer) = oneshot::channel();
        let request = Request::ActOnDestination { action, reply };
        self.requests.send(request).await.map_err(|_| ActError::Stopped)?;
        answer.await.map_err(|_| ActError::Stopped)?.map(drop)
    }

    /// Takes no more messages and delivers what was accepted, or takes that back.
    pub async fn drain(&self, order: DrainOrder) -> Result<(), ActError> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Drain { order, reply };
        self.requests.send(request).await.map_err(|_| ActError::Stopped)?;
        answer.await.map_err(|_| ActError::Stopped)?.map(drop)
    }

    /// Gives interfaces and destinations their numbers, as [`Store::register`] does, while the
    /// engine runs.
    pub async fn register(&self, topology: Topology) -> Result<Registered, ActError> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Register { topology, reply };
        self.requests.send(request).await.map_err(|_| ActError::Stopped)?;
        answer.await.map_err(|_| ActError::Stopped)?
    }

    /// Runs other interfaces and destinations from the next batch on; made when this returns.
    pub async fn change_layout(&self, change: LayoutChange) -> Result<Settling, ActError> {
        let (reply, answer) = oneshot::channel();
        let (settled, settling) = oneshot::channel();
        let request = Request::ChangeLayout { change, reply, settled };
        self.requests.send(request).await.map_err(|_| ActError::Stopped)?;
        answer.await.map_err(|_| ActError::Stopped)??;
        Ok(Settling(settling))
    }

    /// Agrees to a retention that removes messages, as an operator; recorded when this returns. The
    /// retention as it is then; none: nothing waits for a confirmation.
    pub async fn confirm_retention(
        &self,
        interface: InterfaceId,
        author: String,
        reason: String,
    ) -> Result<Option<RetentionState>, ActError> {
        let (reply, answer) = oneshot::channel();
        let confirm = ConfirmRetention { interface, now: self.clock.now(), author, reason };
        let request = Request::ConfirmRetention { confirm, reply };
        self.requests.send(request).await.map_err(|_| ActError::Stopped)?;
        answer.await.map_err(|_| ActError::Stopped)?
    }

    /// Returns when everything that can be delivered is, and the process was asked to stop then; not
    /// if the engine ends for another reason.
    pub async fn on_drained(&self) {
        let mut drained = self.drained.clone();
        if drained.wait_for(|is_drained| *is_drained).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A picture of this moment.
    pub async fn status(&self) -> Result<Status, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Status(reply)).await.map_err(|_| EngineError::Gone)?;
        let mut status = answer.await.map_err(|_| EngineError::Gone)?;
        let (busy, too_large) = self.gate.refused();
        for (code, count) in [(code::BUSY, busy), (code::TOO_LARGE, too_large)] {
            status.intake.refuse(code, count);
        }
        Ok(status)
    }

    /// Returns when what waited in the store is known and deliveries go on.
    pub async fn on_ready(&self) -> Result<(), EngineError> {
        let mut ready = self.ready.clone();
        ready.wait_for(|is_ready| *is_ready).await.map(|_| ()).map_err(|_| EngineError::Gone)
    }

    /// Takes no more messages, lets runs in hand finish, stores their results, and returns when
    /// the engine has ended.
    pub async fn shutdown(&self) {
        let _ = self.requests.send(Request::Shutdown).await;
        self.requests.closed().await;
    }
}

/// Destinations that went or began anew finish what they have in hand.
#[derive(Debug)]
pub struct Settling(oneshot::Receiver<()>);

impl Settling {
    /// Returns when nothing of before is in hand and every result is stored.
    pub async fn settled(self) -> Result<(), ActError> {
        self.0.await.map_err(|_| ActError::Stopped)
    }
}

type Answering = oneshot::Receiver<Result<ActionOutcome, ActError>>;

/// What became of the parts of one action.
async fn gather(answers: Vec<Answering>) -> Result<ActionOutcome, ActError> {
    let (mut all, mut is_repeat) = (Vec::new(), false);
    for answer in answers {
        match answer.await.map_err(|_| ActError::Stopped)?? {
            ActionOutcome::Done(changed) => all.extend(changed),
            ActionOutcome::Repeated => is_repeat = true,
            other @ (ActionOutcome::NoMessage | ActionOutcome::NoBody) => return Ok(other),
        }
    }
    if all.is_empty() && is_repeat { Ok(ActionOutcome::Repeated) } else { Ok(ActionOutcome::Done(all)) }
}

/// One action for each delivery of a message: destinations differ in what a resend does to a lane.
pub fn split_resend(action: Action, deliveries: &[DeliveryView]) -> Vec<Action> {
    if deliveries.is_empty() {
        return vec![action];
    }
    let of = |delivery: &DeliveryView| Action { destination: Some(delivery.destination), ..action.clone() };
    deliveries.iter().map(of).collect()
}

fn draft_bytes(draft: &Draft) -> usize {
    let attributes = draft.attributes.pairs().iter().map(|(name, value)| name.len() + value.len());
    draft.body.len() + attributes.sum::<usize>() + DRAFT_BYTES
}

fn not_admitted(error: GateError, interface: InterfaceId) -> Fate {
    match error {
        GateError::Busy => Fate::busy("too much waits to be stored", std::time::Duration::from_secs(1)),
        GateError::TooLarge => Fate::too_large("larger than what may wait to be stored at all"),
        GateError::UnknownInterface => Fate::invalid(format!("there is no interface {interface}")),
    }
}
