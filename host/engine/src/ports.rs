//! What the engine needs from outside, as traits: a way to deliver, and the time.
//!
//! The binary hands it the real ones, the simulation faulty ones.

use std::time::Duration;

use async_trait::async_trait;
use portway_model::{
    Answer, Attributes, DestinationId, Envelope, Failure, Guarantee, InterfaceId, Key, Later, SavedOutput,
    StateWrite, Timestamp, Trouble, code,
};

/// Wall time for what is stored, and a monotonic time for waits.
pub trait Clock: Send + Sync + 'static {
    /// Wall time; may step either way.
    fn now(&self) -> Timestamp;
    /// Since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
}

/// Deliveries of one lane (or of none) that are tried together, in order.
#[derive(Clone, Debug)]
pub struct Run {
    pub destination: DestinationId,
    /// One lane: after the first message that is not final the rest must be `Untried`.
    pub ordered: bool,
    /// What one of these did the last time is not known, or was a fault: one message alone.
    pub singly: bool,
    /// A quarantined message ends an ordered run: the lane waits for an operator.
    pub hold_on_quarantine: bool,
    /// With at-most-once a message that may have arrived must be `Quarantine`, and `Retry` or
    /// `Untried` only what surely did not.
    pub guarantee: Guarantee,
    /// At least one, at most 256.
    pub messages: Vec<Envelope>,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// One a message, in the order of the run.
    pub verdicts: Vec<Verdict>,
    /// Why the destination as a whole waits or stops, beside the verdicts.
    pub stop: Option<Stop>,
    /// A fault was seen: what is still pending goes on one by one for as many messages as the run had.
    pub go_singly: bool,
    /// What plugins keep of messages of the run, each message at most once. What of it counts follows
    /// from the verdicts: state of a message that was neither sent nor filtered is dropped.
    pub state: Vec<MessageState>,
    /// What the sender was given, one a message, where the destination keeps it; else empty.
    pub outputs: Vec<Option<Box<SavedOutput>>>,
}

/// What plugins keep of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageState {
    /// Which message of the run.
    pub index: u32,
    pub writes: Vec<StateWrite>,
}

/// What became of one message of a run.
#[derive(Clone, Debug)]
pub enum Verdict {
    Sent(Answer),
    /// Delivered by storing it in other interfaces, exactly once.
    Route(Vec<Routed>),
    Filtered(String),
    Quarantine(Failure),
    /// Uses up an attempt.
    Retry(Later),
    /// Nothing was tried; uses up no attempt.
    Untried,
    /// The plugin used up its fuel, memory or time on this message: it stays pending, and three
    /// in a row stop the destination.
    Runaway(Failure),
}

/// A message for another interface.
#[derive(Clone, Debug)]
pub struct Routed {
    pub target: InterfaceId,
    pub key: Option<Key>,
    pub attributes: Attributes,
    pub body: bytes::Bytes,
}

/// Why a destination as a whole does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is away: it waits and is asked again, no attempt is used up.
    Unavailable(Later),
    /// A person must change something.
    Misconfigured(Failure),
}

impl Verdict {
    /// At a destination that may not send twice: nobody knows whether it arrived.
    pub fn in_doubt(why: &str) -> Verdict {
        Verdict::Quarantine(in_doubt(why))
    }
}

/// Why a delivery is quarantined that may have arrived.
pub(crate) fn in_doubt(why: &str) -> Failure {
    let text = format!("it may have arrived, and is not sent again by itself: {why}");
    Failure::new(code::MAY_HAVE_ARRIVED, text)
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        match trouble {
            Trouble::Unavailable(later) => Stop::Unavailable(later),
            Trouble::Misconfigured(failure) => Stop::Misconfigured(failure),
        }
    }
}

/// Transforms and sends a run.
#[async_trait]
pub trait Deliver: Send + Sync + 'static {
    /// Answers within the destination's time-out; a call that answers later keeps its slot until
    /// it does. Never panics; a lie in the report is the engine's to find out.
    async fn deliver(&self, run: Run) -> RunReport;
}
