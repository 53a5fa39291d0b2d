//! Where submissions wait until the engine has use for them.
//!
//! Waking a thread costs more than taking in a message, and while a commit is under way the engine
//! can do nothing with another: so it says how many it wants, and is woken when as many are there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::event::Submission;
use crate::fate::Fate;

/// Messages of one source, and who waits for their fates.
#[derive(Debug)]
pub(crate) struct Letter {
    pub submission: Submission,
    pub reply: oneshot::Sender<Vec<Fate>>,
}

/// See the file. Not limited by itself: the gate stands before it. Clones are the same inbox.
#[derive(Clone, Debug)]
pub(crate) struct Inbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    enough: Notify,
}

#[derive(Debug)]
struct State {
    letters: Vec<Letter>,
    wanted: usize,
    closed: bool,
}

impl Inbox {
    pub fn new() -> Self {
        let state = State { letters: Vec::new(), wanted: 1, closed: false };
        Inbox(Arc::new(Shared { state: Mutex::new(state), enough: Notify::new() }))
    }

    /// False, and nobody will answer it, if the engine has ended.
    pub fn push(&self, letter: Letter) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.letters.push(letter);
        self.tell(&state);
        true
    }

    /// Everything that is there, in the order in which it came.
    pub fn take(&self) -> Vec<Letter> {
        std::mem::take(&mut self.lock().letters)
    }

    /// From now on the engine is woken by as many.
    pub fn want(&self, count: usize) {
        let mut state = self.lock();
        state.wanted = count.max(1);
        self.tell(&state);
    }

    /// Ready when there are as many as are wanted; now and then when there are fewer.
    pub async fn enough(&self) {
        self.0.enough.notified().await;
    }

    /// Takes no more. Who waits is told that the engine stopped.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.letters.clear();
    }

    fn tell(&self, state: &State) {
        if state.letters.len() >= state.wanted {
            self.0.enough.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use portway_model::{InterfaceId, Timestamp};

    use super::*;
    use crate::event::Unit;
    use crate::gate::Gate;

    fn letter() -> Letter {
        let permit = Gate::new(10, [InterfaceId(1)]).admit(InterfaceId(1), 1).unwrap();
        let (reply, _) = oneshot::channel();
        let submission = Submission {
            interface: InterfaceId(1),
            received_at: Timestamp(0),
            came_at: Duration::ZERO,
            drafts: Vec::new(),
            unit: Unit::Each,
            edit: None,
            permit,
        };
        Letter { submission, reply }
    }

    #[test]
    fn it_wakes_when_there_are_as_many_as_are_wanted() {
        let inbox = Inbox::new();
        inbox.want(3);
        assert!(inbox.push(letter()) && inbox.push(letter()));
        assert!(inbox.enough().now_or_never().is_none());
        inbox.push(letter());
        assert!(inbox.enough().now_or_never().is_some());
        assert_eq!(inbox.take().len(), 3);
    }

    #[test]
    fn wanting_fewer_than_are_there_wakes_at_once() {
        let inbox = Inbox::new();
        inbox.want(usize::MAX);
        inbox.push(letter());
        assert!(inbox.enough().now_or_never().is_none());
        inbox.want(1);
        assert!(inbox.enough().now_or_never().is_some());
    }

    #[test]
    fn nothing_waits_in_an_inbox_that_is_closed() {
        let inbox = Inbox::new();
        inbox.push(letter());
        inbox.close();
        assert!(!inbox.push(letter()) && inbox.take().is_empty());
    }
}
