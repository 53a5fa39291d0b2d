//! What the API needs of a running engine, as a trait.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use portway_model::MessageId;

use crate::{params, views};

/// A running engine, for people who look after it. Names are those of the project.
#[async_trait]
pub trait Control: Send + Sync + 'static {
    /// Cheap: asked by whatever watches the process.
    async fn health(&self) -> views::Health;

    /// Everything that can be seen at one moment.
    async fn status(&self) -> Result<views::Status, ControlError>;

    /// Messages, newest first. The limit is within 1 and [`params::ListMessages::LIMIT_MAX`].
    async fn list_messages(&self, list: params::ListMessages) -> Result<views::MessagePage, ControlError>;

    /// One message with its deliveries, attempts and actions.
    async fn get_message(&self, id: MessageId) -> Result<Option<views::MessageDetail>, ControlError>;

    /// Its bytes as received; none: there is no such message, or its body was removed.
    async fn get_body(&self, id: MessageId) -> Result<Option<Bytes>, ControlError>;

    /// The bytes that the sender of a destination was given.
    async fn get_output(&self, id: MessageId, destination: &str) -> Result<Bytes, ControlError>;

    /// Does something to a message's deliveries, and records it.
    async fn act(&self, action: Action) -> Result<views::ActionDone, ControlError>;

    /// Stores a corrected copy of a message, which goes to destinations of its interface.
    async fn edit(&self, edit: Edit) -> Result<views::Edited, ControlError>;

    /// The same to many messages, and an answer for each, in order.
    async fn act_all(&self, bulk: BulkAction) -> Result<Vec<views::BulkItem>, ControlError>;

    /// Pauses a destination, or lets it go on: after a pause, and after whatever stopped it.
    async fn act_on_destination(&self, action: DestinationAction) -> Result<(), ControlError>;

    /// Does something to the head of a lane that is blocked, and records it.
    async fn act_on_lane(&self, action: LaneAction) -> Result<views::ActionDone, ControlError>;

    /// What plugins keep for a destination.
    async fn list_state(
        &self,
        interface: &str,
        destination: &str,
        list: params::ListState,
    ) -> Result<views::StatePage, ControlError>;

    /// One value that a plugin keeps for a destination.
    async fn get_state(
        &self,
        interface: &str,
        destination: &str,
        state: params::GetState,
    ) -> Result<views::StateValue, ControlError>;

    /// Removes such a value, and records it.
    async fn remove_state(&self, remove: RemoveState) -> Result<views::StateRemoved, ControlError>;

    /// What operators did to a destination, newest first.
    async fn list_destination_actions(
        &self,
        interface: &str,
        destination: &str,
    ) -> Result<Vec<views::DestinationActionRecord>, ControlError>;

    /// How long messages are kept, of every interface.
    async fn list_retention(&self) -> Result<views::Retentions, ControlError>;

    /// Agrees to a retention that removes messages, and records it.
    async fn confirm_retention(
        &self,
        confirm: ConfirmRetention,
    ) -> Result<views::RetentionConfirmed, ControlError>;

    /// Takes no more messages and delivers what was accepted, or takes that back.
    async fn drain(&self, order: DrainOrder) -> Result<(), ControlError>;

    /// A consistent copy of the store into a file that does not exist yet.
    async fn backup(&self, target: &Path) -> Result<views::Backup, ControlError>;

    /// What was refused at the listeners and by the sources, newest first where that is known.
    async fn list_refusals(&self) -> Result<Vec<views::Refused>, ControlError>;
}

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub message: MessageId,
    /// None: all of the message's deliveries that it fits.
    pub destination: Option<String>,
    pub kind: ActionKind,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// A corrected copy of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The original, which stays as it is.
    pub message: MessageId,
    pub body: Bytes,
    /// None: to every destination of its interface.
    pub destinations: Option<Vec<String>>,
    /// Who corrected it, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// What an operator asks for many messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkAction {
    /// At most [`params::BulkAct::MESSAGES_MAX`], none twice.
    pub messages: Vec<MessageId>,
    /// None: all deliveries of each message that it fits.
    pub destination: Option<String>,
    pub kind: ActionKind,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
    /// Names the request: what it did once it does not do again.
    pub request: String,
}

/// What an operator asks for a destination as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationAction {
    pub interface: String,
    pub destination: String,
    pub kind: DestinationActionKind,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// What can be asked for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationActionKind {
    Pause,
    Resume,
}

/// A value that a plugin keeps for a destination is to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveState {
    pub interface: String,
    pub destination: String,
    /// None: the only use of a plugin there that keeps something.
    pub space: Option<String>,
    pub key: String,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// What an operator asks for the head of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneAction {
    pub interface: String,
    pub destination: String,
    pub head: Head,
    pub kind: LaneActionKind,
    /// Who asked, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// Which lane is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The only one that is blocked.
    Only,
    Lane(u16),
    /// The one that this message blocks.
    Message(MessageId),
}

/// What can be done to the head of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneActionKind {
    /// It is dismissed, and the lane goes on behind it.
    Skip,
    /// It is tried now, in its place.
    Retry,
}

/// An operator agrees to what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmRetention {
    /// Whose messages.
    pub interface: String,
    /// Who agrees, for the record.
    pub author: String,
    /// Why, for the record.
    pub reason: String,
}

/// What an operator asks for the engine as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainOrder {
    Begin {
        /// Who asked.
        author: String,
        /// The process stops when everything that can be delivered is.
        stop: bool,
    },
    Cancel,
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    Resend,
    Dismiss,
    /// Try now what waits for its time.
    Retry,
}

impl ActionKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ActionKind::Resend => "resend",
            ActionKind::Dismiss => "dismiss",
            ActionKind::Retry => "retry",
        }
    }
}

/// Why it could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ControlError {
    pub kind: ControlErrorKind,
    /// For programs, kebab-case.
    pub code: &'static str,
    /// For people: a lower-case fragment, values in backticks.
    pub text: String,
}

/// What a caller does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlErrorKind {
    /// There is no such thing.
    NotFound,
    /// It does not fit the state of things.
    Conflict,
    /// It was asked wrongly.
    Invalid,
    /// Ask again later.
    Unavailable,
    /// It was tried and did not work.
    Failed,
}

impl ControlError {
    pub fn new(kind: ControlErrorKind, code: &'static str, text: impl Into<String>) -> Self {
        ControlError { kind, code, text: text.into() }
    }
}
