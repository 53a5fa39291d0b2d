//! What one transaction stores: messages, results of deliveries, operators' actions.

use std::time::Duration;

use bytes::Bytes;
use portway_model::{
    Answer, AttemptNo, DeliveryState, DestinationId, Draft, Epoch, Failure, GroupId, InterfaceId, Lane,
    MessageId, Round, SavedOutput, StateWrite, Term, Timestamp,
};

/// What has to be on disk when a write returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives the end of the process, not of the machine.
    #[default]
    Relaxed,
    /// Flushed: survives power loss, together with every write before it.
    Strict,
}

/// One transaction. All of it is stored, or nothing.
///
/// Applied in this order: messages, cursors, results, actions, suspects, actions on destinations.
/// Results are for messages of earlier writes: nobody knew the numbers of these.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    /// Names this transaction; unique within a store, also over restarts.
    pub mark: u64,
    /// When it is stored, by the engine's clock; becomes `stored_at`.
    pub now: Timestamp,
    pub durability: Durability,
    pub messages: Vec<NewMessage>,
    pub cursors: Vec<SourceCursor>,
    pub results: Vec<DeliveryResult>,
    pub actions: Vec<Action>,
    pub suspects: Vec<Suspect>,
    pub destination_actions: Vec<DestinationAction>,
}

/// A message to store with its deliveries. Its id is drawn inside the transaction,
/// in the order of the batch; its tier is the one its interface has by then.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub interface: InterfaceId,
    pub group: GroupId,
    pub received_at: Timestamp,
    pub draft: Draft,
    /// None: the dedupe key is stored but not looked up.
    pub dedupe: Option<DedupeWindow>,
    pub origin: Option<Origin>,
    /// Who made it of its origin, where a person did: recorded there.
    pub edited: Option<Box<Edited>>,
    /// What it is found by.
    pub terms: Vec<Term>,
    /// Where to, and in which lane. With `draft.doubt` they are stored as quarantined.
    pub deliveries: Vec<NewDelivery>,
}

/// How far a source has come. Replaces what was stored for the interface before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCursor {
    pub interface: InterfaceId,
    /// Opaque; at most [`SourceCursor::BYTES_MAX`].
    pub cursor: Bytes,
}

impl SourceCursor {
    /// Bytes of a cursor.
    pub const BYTES_MAX: usize = 64 << 10;
}

/// How long a dedupe key is remembered, from when it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupeWindow(pub Duration);

/// One delivery of a new message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    pub destination: DestinationId,
    pub lane: Lane,
}

/// The message that another came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub message: MessageId,
    pub kind: OriginKind,
}

/// Who made a corrected copy of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub author: String,
    pub reason: String,
}

impl Edited {
    /// What the record of the original calls it, and its number as stored.
    pub const ACTION: (&str, u8) = ("edit", 4);
}

/// How a message came from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// Delivered into another interface by a route.
    Route,
    /// It repeats it: same dedupe key, same body.
    Duplicate,
    /// Same dedupe key, other body: stored and delivered, and marked with this.
    Conflict,
    /// A person corrected it.
    Edit,
}

/// What became of a new message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// Stored under this id. `conflict`: the message with the same dedupe key and another body.
    Stored { id: MessageId, conflict: Option<MessageId> },
    /// Repeats `of`. It is kept as a message of its own (`id`), without body and deliveries.
    Duplicate { id: MessageId, of: MessageId },
}

/// What one attempt made of a delivery. Only counts while the delivery is pending and
/// in the same round; and, unless it is sent, while the group has the same owner.
#[derive(Clone, Debug)]
pub struct DeliveryResult {
    pub destination: DestinationId,
    pub message: MessageId,
    /// Of the tenure in which it was tried.
    pub epoch: Epoch,
    pub round: Round,
    /// The attempts of this round, this one included where it counts.
    pub attempts: AttemptNo,
    pub settled: Settled,
    /// Recorded in the history of attempts; none where nothing was tried.
    pub attempted: Option<Attempted>,
    /// What its plugins keep from now on, stored where the result counts. Only what was sent or
    /// filtered has any: of everything else nothing may stay.
    pub state: Vec<StateWrite>,
    /// What the sender was given, where that is kept: it replaces what was kept before.
    pub output: Option<Box<SavedOutput>>,
}

/// When an attempt ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted {
    pub started_at: Timestamp,
    pub took: Duration,
}

/// How a delivery goes on.
#[derive(Clone, Debug)]
pub enum Settled {
    Sent(Answer),
    /// Sent into another interface: these are stored in the same transaction, exactly once.
    /// Not stored if the result does not count.
    Routed(Vec<NewMessage>),
    Filtered(String),
    Quarantined(Failure),
    /// Stays pending; not before `due_at`. `failure` is what `status` shows as the reason.
    Retry {
        due_at: Timestamp,
        failure: Failure,
    },
}

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultOutcome {
    /// Stored; with what became of its routed messages.
    Applied(Vec<MessageOutcome>),
    /// The delivery was not pending any more, or is in a later round.
    Stale,
    /// It belongs to another engine by now, or to this one in a later epoch.
    Disowned,
}

/// What an operator does to deliveries of one message. Recorded in `message_actions`.
#[derive(Clone, Debug)]
pub struct Action {
    pub message: MessageId,
    /// None: all of the message's deliveries that the action fits.
    pub destination: Option<DestinationId>,
    pub kind: ActionKind,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
    /// Names the request: what it did to a message at a destination is not done again under this name.
    pub request: Option<String>,
}

/// What can be done to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Send again: every state but pending becomes pending in the next round with no attempts
    /// and `due_at` = now, in [`Lane::APART`]. With `keep_lane` a quarantined delivery of an
    /// ordered lane stays in it (it is what the lane waits for) and has no `due_at`.
    Resend { keep_lane: bool },
    /// Do not send: pending and quarantined become dismissed.
    Dismiss,
    /// Try now what waits for its time: pending with `due_at` is due, in its place and its round.
    Retry,
}

/// What became of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// The deliveries it changed, as they are now. Empty: none fitted.
    Done(Vec<(DestinationId, Lane, Round)>),
    /// There is no such message.
    NoMessage,
    /// Its body was pruned or it is a duplicate: it cannot be sent again.
    NoBody,
    /// The same request did it before.
    Repeated,
}

/// What an operator does to a destination as a whole. Recorded, and remembered over restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationAction {
    pub destination: DestinationId,
    pub kind: DestinationActionKind,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// What can be done to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DestinationActionKind {
    /// Nothing new is sent until it is resumed. The newest pause is the one that is shown.
    Pause,
    /// It may go on: after a pause, and after whatever stopped it.
    Resume,
    /// A value that a plugin keeps there is removed. A pause stays what it is.
    RemoveState(StateKey),
}

/// Names a value that a plugin keeps for a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateKey {
    /// Which use of a plugin it belongs to.
    pub space: String,
    pub key: String,
}

/// A delivery that is about to be tried, and may have been before: by a process that died, or at a
/// destination that may not send it twice.
/// The count of such tries rises by one; a result for the delivery forgets it, and so does a resend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub destination: DestinationId,
    pub message: MessageId,
}

/// What became of a [`WriteBatch`]: the same lengths and order as its lists.
#[derive(Clone, Debug, Default)]
pub struct WriteOutcome {
    pub messages: Vec<MessageOutcome>,
    pub results: Vec<ResultOutcome>,
    pub actions: Vec<ActionOutcome>,
    /// How often each suspect was recorded, this time included.
    pub suspects: Vec<u32>,
    /// Groups of this engine in which others stored messages, before this transaction, of which it was
    /// not told yet. They come before what this transaction stored.
    pub elsewhere: Vec<GroupId>,
}

impl WriteBatch {
    /// Every message it may store: those of sources, and those of routes.
    pub fn new_messages(&self) -> impl Iterator<Item = &NewMessage> {
        let routed = self.results.iter().flat_map(|result| match &result.settled {
            Settled::Routed(messages) => messages.as_slice(),
            Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => &[],
        });
        self.messages.iter().chain(routed)
    }
}

impl NewMessage {
    /// Bytes this message needs in memory, for budgets.
    pub fn bytes(&self) -> usize {
        let deliveries = self.deliveries.len() * size_of::<NewDelivery>();
        self.draft.body.len() + deliveries + size_of::<NewMessage>()
    }

    /// The bytes as received.
    pub fn body(&self) -> &Bytes {
        &self.draft.body
    }
}

impl OriginKind {
    /// As shown to people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            OriginKind::Route => "route",
            OriginKind::Duplicate => "duplicate",
            OriginKind::Conflict => "conflict",
            OriginKind::Edit => "edit",
        }
    }

    /// As stored; numbers are never reused.
    pub const fn number(self) -> u8 {
        match self {
            OriginKind::Route => 1,
            OriginKind::Duplicate => 2,
            OriginKind::Conflict => 3,
            OriginKind::Edit => 4,
        }
    }

    /// From what is stored; none: from a newer binary.
    pub const fn from_number(number: u8) -> Option<OriginKind> {
        match number {
            1 => Some(OriginKind::Route),
            2 => Some(OriginKind::Duplicate),
            3 => Some(OriginKind::Conflict),
            4 => Some(OriginKind::Edit),
            _ => None,
        }
    }
}

impl ActionKind {
    /// As shown to people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            ActionKind::Resend { .. } => "resend",
            ActionKind::Dismiss => "dismiss",
            ActionKind::Retry => "retry",
        }
    }

    /// As stored; numbers are never reused.
    pub const fn number(self) -> u8 {
        match self {
            ActionKind::Resend { .. } => 1,
            ActionKind::Dismiss => 2,
            ActionKind::Retry => 3,
        }
    }

    /// What is stored, as shown to people and programs.
    pub const fn name_of(number: u8) -> &'static str {
        match number {
            1 => "resend",
            2 => "dismiss",
            3 => "retry",
            4 => Edited::ACTION.0,
            _ => "unknown",
        }
    }
}

impl DestinationActionKind {
    /// As shown to people and programs.
    pub const fn as_str(&self) -> &'static str {
        Self::name_of(self.number())
    }

    /// As stored; numbers are never reused.
    pub const fn number(&self) -> u8 {
        match self {
            DestinationActionKind::Pause => 1,
            DestinationActionKind::Resume => 2,
            DestinationActionKind::RemoveState(_) => 3,
        }
    }

    /// What is stored, as shown to people and programs.
    pub const fn name_of(number: u8) -> &'static str {
        match number {
            1 => "pause",
            2 => "resume",
            3 => "remove-state",
            _ => "unknown",
        }
    }
}

impl Settled {
    /// The state a delivery has after this.
    pub const fn state(&self) -> DeliveryState {
        match self {
            Settled::Sent(_) | Settled::Routed(_) => DeliveryState::Sent,
            Settled::Filtered(_) => DeliveryState::Filtered,
            Settled::Quarantined(_) => DeliveryState::Quarantined,
            Settled::Retry { .. } => DeliveryState::Pending,
        }
    }

    /// Whether it counts after the group has another owner: what arrived has arrived.
    pub const fn outlives_owner(&self) -> bool {
        match self {
            Settled::Sent(_) | Settled::Routed(_) => true,
            Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => false,
        }
    }

    /// Whether what plugins wrote to their state for it is kept.
    pub const fn keeps_state(&self) -> bool {
        match self {
            Settled::Sent(_) | Settled::Routed(_) | Settled::Filtered(_) => true,
            Settled::Quarantined(_) | Settled::Retry { .. } => false,
        }
    }

    /// What the history of attempts calls it.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Settled::Sent(_) | Settled::Routed(_) => "sent",
            Settled::Filtered(_) => "filtered",
            Settled::Quarantined(_) => "quarantined",
            Settled::Retry { .. } => "retry",
        }
    }

    /// Not before this time, where it stays pending.
    pub const fn due_at(&self) -> Option<Timestamp> {
        match self {
            Settled::Retry { due_at, .. } => Some(*due_at),
            Settled::Sent(_) | Settled::Routed(_) | Settled::Filtered(_) | Settled::Quarantined(_) => None,
        }
    }

    /// What [`crate::DeliveryView::reason`] says after this.
    pub fn reason(&self) -> Option<String> {
        match self {
            Settled::Sent(answer) => match (answer.code.is_empty(), answer.text.is_empty()) {
                (true, true) => None,
                (false, true) => Some(answer.code.clone()),
                (true, false) => Some(answer.text.clone()),
                (false, false) => Some(format!("{}: {}", answer.code, answer.text)),
            },
            Settled::Routed(_) => None,
            Settled::Filtered(reason) => Some(reason.clone()),
            Settled::Quarantined(failure) | Settled::Retry { failure, .. } => Some(failure.to_string()),
        }
    }
}

impl DeliveryResult {
    /// The attempt to record: every failed one, and the successful one that followed failures.
    pub fn recorded(&self) -> Option<Attempted> {
        let failed = match self.settled {
            Settled::Quarantined(_) | Settled::Retry { .. } => true,
            Settled::Sent(_) | Settled::Routed(_) | Settled::Filtered(_) => false,
        };
        self.attempted.filter(|_| failed || self.attempts.0 > 1)
    }
}
