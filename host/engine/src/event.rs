//! What the core is told and what it asks for: the whole border between the machines and the world.
//!
//! The shell turns effects into calls of the store and of `Deliver` and their answers into events;
//! the simulation does the same with faults.

use std::time::Duration;

use bytes::Bytes;
use portway_model::{
    DestinationId, Draft, GroupId, InterfaceId, Lane, MessageId, RetentionState, Timestamp, code,
};
use portway_store::{
    Action, ActionOutcome, Claimed, ConfirmRetention, DestinationAction, Expired, Expiry, LaneHead,
    Maintenance, MoveRetention, Moved, News, Pending, Registered, Store, StoreError, StoredMessage, Topology,
    WriteBatch, WriteOutcome,
};

use crate::drain::DrainOrder;
use crate::fact::Fact;
use crate::fate::Fate;
use crate::gate::Permit;
use crate::ports::{Run, RunReport};
use crate::settings::LayoutChange;

/// Names a caller that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names a run that is in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// Names a read that is in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// Messages of one source that wait to be stored.
#[derive(Debug)]
pub struct Submission {
    pub interface: InterfaceId,
    pub received_at: Timestamp,
    /// When it was handed over, by the monotonic clock.
    pub came_at: Duration,
    /// At least one, but beside a cursor.
    pub drafts: Vec<Draft>,
    pub unit: Unit,
    /// The only draft is a corrected copy.
    pub edit: Option<Box<Edit>>,
    /// Held until all of them are answered.
    pub permit: Permit,
}

/// How the messages of a submission belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Each is stored or refused by itself.
    #[default]
    Each,
    /// All in one transaction, or none.
    Whole,
    /// The same, together with the source's cursor. The answer has one fate more:
    /// [`Fate::Kept`], or why nothing was stored.
    WithCursor(Bytes),
}

/// What a corrected copy is made of, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The original.
    pub of: MessageId,
    /// None: to every destination of its interface.
    pub destinations: Option<Vec<DestinationId>>,
    /// Who corrected it, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    Submit {
        ticket: Ticket,
        submission: Submission,
    },
    Act {
        ticket: Ticket,
        action: Action,
    },
    /// Answered by [`Effect::Acted`] when it is stored; of no message.
    ActOnDestination {
        ticket: Ticket,
        action: DestinationAction,
    },
    /// Answered by [`Effect::Acted`] at once; of no message.
    Drain {
        ticket: Ticket,
        order: DrainOrder,
    },
    /// Answered by [`Effect::Registered`].
    Register {
        ticket: Ticket,
        topology: Topology,
    },
    /// Made between two batches. Answered by [`Effect::Acted`] when it is made; of no message; and
    /// then by [`Effect::Settled`].
    ChangeLayout {
        ticket: Ticket,
        change: LayoutChange,
    },
    /// Answered by [`Effect::RetentionConfirmed`].
    ConfirmRetention {
        ticket: Ticket,
        confirm: ConfirmRetention,
    },
    Shutdown,
    Claimed(Result<Claimed, StoreError>),
    News(News),
    Registered(Result<Registered, StoreError>),
    Wrote(Result<WriteOutcome, StoreError>),
    Found(Result<Option<WriteOutcome>, StoreError>),
    Maintained(Result<Maintenance, StoreError>),
    Expired(Result<Expired, StoreError>),
    Moved(Result<Moved, StoreError>),
    RetentionConfirmed(Result<Option<RetentionState>, StoreError>),
    Read {
        id: ReadId,
        answer: Result<ReadAnswer, StoreError>,
    },
    Delivered {
        id: RunId,
        report: RunReport,
    },
    Closed(Result<(), StoreError>),
}

/// What is to be done. Of writing, finding, registering, confirming and maintaining at most one is in hand at a
/// time; beside it at most one step with old messages, but not beside registering and confirming.
#[derive(Debug)]
pub enum Effect {
    Write(WriteBatch),
    FindMark(u64),
    /// Answered by [`Event::Registered`].
    Register(Topology),
    /// Beside everything else. Answered by [`Event::Claimed`].
    Claim(Vec<GroupId>),
    Maintain {
        free_wait: Duration,
    },
    Expire(Expiry),
    /// Answered by [`Event::Moved`].
    MoveRetention(MoveRetention),
    /// Answered by [`Event::RetentionConfirmed`].
    ConfirmRetention(ConfirmRetention),
    Read {
        id: ReadId,
        read: Read,
    },
    Deliver {
        id: RunId,
        run: Run,
    },
    Answer {
        ticket: Ticket,
        fates: Vec<Fate>,
    },
    Acted {
        ticket: Ticket,
        outcome: Result<ActionOutcome, ActError>,
    },
    Registered {
        ticket: Ticket,
        answer: Result<Registered, ActError>,
    },
    /// None: nothing waits for a confirmation.
    RetentionConfirmed {
        ticket: Ticket,
        answer: Result<Option<RetentionState>, ActError>,
    },
    /// Destinations that went or began anew with a change of the layout have nothing of before in
    /// hand any more, and everything that became of it is stored.
    Settled {
        ticket: Ticket,
    },
    /// Worth a line in the log.
    Note(Fact),
    /// What waited in the store is known: deliveries go on.
    Ready,
    /// Everything that can be delivered is, and the process was asked to stop then.
    Drained,
    /// Everything in hand is stored: close the store. Answered by [`Event::Closed`].
    Close,
    /// Nothing follows.
    End(Result<(), EngineError>),
}

/// What is read from the store.
#[derive(Clone, Debug)]
pub enum Read {
    Work,
    LaneHeads(DestinationId),
    HeldHeads(DestinationId),
    Suspects(DestinationId),
    Lane { destination: DestinationId, lane: Lane, after: MessageId, limit: u32 },
    Due { destination: DestinationId, until: Timestamp, limit: u32 },
    NextDue { destination: DestinationId, after: Timestamp },
    Messages(Vec<MessageId>),
}

/// The answer to a [`Read`] of the same name.
#[derive(Debug)]
pub enum ReadAnswer {
    Work(Vec<DestinationId>),
    LaneHeads(Vec<LaneHead>),
    HeldHeads(Vec<LaneHead>),
    Suspects(Vec<MessageId>),
    Lane(Vec<Pending>),
    Due(Vec<Pending>),
    NextDue(Option<Timestamp>),
    Messages(Vec<StoredMessage>),
}

impl Read {
    /// Asks the store.
    pub async fn run(&self, store: &dyn Store) -> Result<ReadAnswer, StoreError> {
        Ok(match self {
            Read::Work => ReadAnswer::Work(store.destinations_with_work().await?),
            Read::LaneHeads(destination) => ReadAnswer::LaneHeads(store.lane_heads(*destination).await?),
            Read::HeldHeads(destination) => ReadAnswer::HeldHeads(store.held_heads(*destination).await?),
            Read::Suspects(destination) => ReadAnswer::Suspects(store.list_suspects(*destination).await?),
            Read::Lane { destination, lane, after, limit } => {
                ReadAnswer::Lane(store.read_lane(*destination, *lane, *after, *limit).await?)
            }
            Read::Due { destination, until, limit } => {
                ReadAnswer::Due(store.read_due(*destination, *until, *limit).await?)
            }
            Read::NextDue { destination, after } => {
                ReadAnswer::NextDue(store.next_due(*destination, *after).await?)
            }
            Read::Messages(ids) => ReadAnswer::Messages(store.load_messages(ids).await?),
        })
    }
}

/// Why an operator's action was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActError {
    #[error("the store refuses it: {0}")]
    Refused(String),
    #[error("the store cannot take it now: {0}")]
    Unavailable(String),
    #[error("the engine stops")]
    Stopped,
    #[error("another engine owns it: ask that one (`portway status` names it)")]
    NotOwner,
    #[error("there is no destination {0}")]
    UnknownDestination(DestinationId),
}

/// Why an engine ended that nobody stopped.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the store failed for good")]
    Store(#[source] StoreError),
    #[error("the store did not answer as agreed: {0}")]
    Contract(String),
    #[error("results could not be stored before the end: {0}")]
    Unstored(String),
    #[error("the engine is gone")]
    Gone,
}

impl EngineError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            EngineError::Store(_) => code::STORE_FAILED,
            EngineError::Contract(_) => code::STORE_BROKE_CONTRACT,
            EngineError::Unstored(_) => code::RESULTS_NOT_STORED,
            EngineError::Gone => code::ENGINE_GONE,
        }
    }
}
