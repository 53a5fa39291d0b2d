//! What goes wrong in the in-memory store, and when.
//!
//! Both hooks are asynchronous, so that a simulation can also make a call slow, or never let it
//! return (a process that died): the call is dropped together with its engine.

use async_trait::async_trait;

use crate::ErrorKind;

/// Which call of the store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Register,
    Claim,
    ListEngines,
    Write,
    FindMark,
    SourceCursor,
    GetState,
    ListStateKeys,
    CountState,
    CountPending,
    DestinationsWithWork,
    LaneHeads,
    HeldHeads,
    ListSuspects,
    ReadLane,
    ReadDue,
    NextDue,
    LoadMessages,
    ListQueues,
    ListMessages,
    GetMessage,
    ListDeliveries,
    ListAttempts,
    ListOutputs,
    LoadOutput,
    ListActions,
    ListEdits,
    ListDestinationActions,
    Expire,
    MoveRetention,
    ConfirmRetention,
    ListRetention,
    Backup,
    Maintain,
    Close,
}

/// Whether a call is made at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Go,
    /// Nothing happens in the store. With [`ErrorKind::Unknown`]: the connection died
    /// before the commit.
    Fail(ErrorKind),
}

/// Whether a call that was made gives its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Given,
    /// What was written stays written. A write fails with [`ErrorKind::Unknown`], all else
    /// with [`ErrorKind::Unavailable`].
    Lost,
}

/// Decides what goes wrong.
#[async_trait]
pub trait Faults: Send + Sync + 'static {
    /// Asked before a call does anything.
    async fn before(&self, _call: Call) -> Step {
        Step::Go
    }

    /// Asked after a call that succeeded.
    async fn after(&self, _call: Call) -> Answered {
        Answered::Given
    }
}

/// Nothing ever goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {}

impl Call {
    /// The method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Call::Register => "register",
            Call::Claim => "claim",
            Call::ListEngines => "list_engines",
            Call::Write => "write",
            Call::FindMark => "find_mark",
            Call::SourceCursor => "source_cursor",
            Call::GetState => "get_state",
            Call::ListStateKeys => "list_state_keys",
            Call::CountState => "count_state",
            Call::CountPending => "count_pending",
            Call::DestinationsWithWork => "destinations_with_work",
            Call::LaneHeads => "lane_heads",
            Call::HeldHeads => "held_heads",
            Call::ListSuspects => "list_suspects",
            Call::ReadLane => "read_lane",
            Call::ReadDue => "read_due",
            Call::NextDue => "next_due",
            Call::LoadMessages => "load_messages",
            Call::ListQueues => "list_queues",
            Call::ListMessages => "list_messages",
            Call::GetMessage => "get_message",
            Call::ListDeliveries => "list_deliveries",
            Call::ListAttempts => "list_attempts",
            Call::ListOutputs => "list_outputs",
            Call::LoadOutput => "load_output",
            Call::ListActions => "list_actions",
            Call::ListEdits => "list_edits",
            Call::ListDestinationActions => "list_destination_actions",
            Call::Expire => "expire",
            Call::MoveRetention => "move_retention",
            Call::ConfirmRetention => "confirm_retention",
            Call::ListRetention => "list_retention",
            Call::Backup => "backup",
            Call::Maintain => "maintain",
            Call::Close => "close",
        }
    }

    /// How a call fails whose answer was lost.
    pub(super) fn kind_of_lost(self) -> ErrorKind {
        if self == Call::Write { ErrorKind::Unknown } else { ErrorKind::Unavailable }
    }
}
