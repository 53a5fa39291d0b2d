//! One ordered lane: what runs next in it, and what it waits for.

use std::collections::BTreeSet;
use std::time::Duration;

use portway_model::{AttemptNo, MessageId, Timestamp};

use super::stream::{Hint, Stream};
use crate::event::RunId;

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct LaneState {
    pub stream: Stream,
    /// At most one run at a time.
    pub run: Option<RunId>,
    /// Its head waits for a retry.
    pub blocked: Option<Box<Blocked>>,
    /// The first quarantined delivery of a lane that waits for an operator: what comes behind it stays.
    pub held: Option<MessageId>,
    /// A delivery comes again and is waited for: the lane is read again from there, once nothing of it
    /// is in hand or unwritten.
    pub rewind: Option<MessageId>,
    /// Results that are not written yet. Until they are, the store shows them as pending.
    pub unwritten: u32,
    /// Of these, dropped and never sent. They are stored as that before anything behind them is sent: a
    /// new process would send them, behind what came later.
    pub dropping: u32,
    /// Of these, with state of plugins. It is stored before anything behind them is delivered: what
    /// comes next in the lane reads it.
    pub keeping: u32,
    /// So many deliveries are recorded before they are tried: one of them may have ended the last process.
    pub careful: u32,
    /// So many deliveries run by themselves after a fault.
    pub singly: u32,
    /// In the list of lanes that are ready.
    pub listed: bool,
    /// In the list of lanes that want a page.
    pub hungry: bool,
    /// A page was cut because a commit is in hand: read again when it is known.
    pub parked: bool,
}

/// Why a head waits, and until when.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub message: MessageId,
    pub attempts: AttemptNo,
    /// By the monotonic clock.
    pub until: Duration,
    pub reason: String,
}

impl LaneState {
    /// Of which the store has a backlog.
    pub fn unread() -> Self {
        LaneState { stream: Stream::unread(), ..LaneState::default() }
    }

    /// Its next delivery can be sent now.
    pub fn is_ready(&self) -> bool {
        let waits = self.run.is_some() || self.blocked.is_some() || self.rewind.is_some();
        let is_stored = self.dropping == 0 && self.keeping == 0;
        !waits && is_stored && self.stream.front().is_some_and(|hint| self.admits(hint.message))
    }

    /// Its head waits for a time or for an operator.
    pub fn is_stuck(&self) -> bool {
        self.blocked.is_some() || self.stream.front().is_some_and(|head| !self.admits(head.message))
    }

    /// Not behind a quarantined delivery that holds the lane.
    pub fn admits(&self, message: MessageId) -> bool {
        self.held.is_none_or(|held| message < held)
    }

    /// Reading on would bring something that can be sent some time without an operator.
    pub fn wants_page(&self, low_water: usize) -> bool {
        let is_blocked = self.blocked.is_some() && !self.stream.is_empty();
        let is_held = self.held.is_some_and(|held| self.stream.known().0.saturating_add(1) >= held.0);
        let is_low = self.stream.len() < low_water;
        self.stream.is_behind()
            && !self.stream.is_reading()
            && is_low
            && !is_blocked
            && !is_held
            && !self.parked
            && !self.hungry
            && self.rewind.is_none()
    }

    /// Nothing of it is worth keeping.
    pub fn is_done(&self) -> bool {
        self.is_still() && self.stream.is_empty() && !self.stream.is_behind()
    }

    /// The store alone can tell how it goes on.
    pub fn can_be_left(&self) -> bool {
        self.is_still() && self.careful == 0 && self.singly == 0
    }

    fn is_still(&self) -> bool {
        let waits = self.blocked.is_some()
            || self.held.is_some()
            || self.parked
            || self.hungry
            || self.rewind.is_some();
        self.run.is_none() && self.unwritten == 0 && !self.stream.is_reading() && !self.listed && !waits
    }

    /// What its head waits for is gone.
    pub fn unblock(&mut self, message: MessageId) {
        if self.blocked.as_ref().is_some_and(|blocked| blocked.message == message) {
            self.blocked = None;
        }
    }

    /// Its head waits no longer.
    pub fn wake(&mut self, monotonic: Duration) {
        if self.blocked.as_ref().is_some_and(|blocked| blocked.until <= monotonic) {
            self.blocked = None;
            if let Some(head) = self.stream.front_mut() {
                head.due_at = None;
            }
        }
    }

    /// Begins again from where it was told to, if it can by now.
    pub fn try_rewind(&mut self) {
        if self.run.is_none()
            && self.unwritten == 0
            && let Some(message) = self.rewind.take()
        {
            self.stream.rewind(message);
        }
    }

    /// Holds from this delivery on, if not from an earlier one already.
    pub fn hold(&mut self, message: MessageId) {
        self.held = Some(self.held.map_or(message, |held| held.min(message)));
    }

    /// Its next delivery is tried by itself.
    pub fn runs_singly(&self, were_in_hand: &BTreeSet<MessageId>) -> bool {
        self.singly > 0 || self.stream.front().is_some_and(|head| head.goes_alone(were_in_hand))
    }

    /// How many deliveries of the queue a run may have: not what is held, nor what waits for its time.
    pub fn runnable(&self, steady: Timestamp, count_max: usize, were_in_hand: &BTreeSet<MessageId>) -> usize {
        let count_max = if self.runs_singly(were_in_hand) { 1 } else { count_max };
        let may_go = |(index, hint): &(usize, &Hint)| {
            let is_due = hint.due_at.is_none_or(|due_at| due_at <= steady);
            let goes_along = is_due && !hint.goes_alone(were_in_hand);
            (*index == 0 || goes_along) && self.admits(hint.message)
        };
        self.stream.iter().take(count_max).enumerate().take_while(may_go).count()
    }
}
