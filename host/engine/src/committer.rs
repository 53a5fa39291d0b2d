//! One transaction at a time: what a batch is, and what follows when the store fails.
//!
//! Leaves to others: what waits (`intake`, `completer`), and what a stored batch means for
//! waiters and destinations (`core`).

use std::collections::VecDeque;
use std::time::Duration;

use portway_model::Timestamp;
use portway_store::{Durability, ErrorKind, NewMessage, SourceCursor, StoreError, WriteBatch, WriteOutcome};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::completer::{Finished, Share};
use crate::event::{EngineError, RunId, Ticket};
use crate::intake::Seat;
use crate::status::CommitStatus;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Sources wait through trouble of the store this long before they are told to come again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Messages, results, actions and suspects of one transaction, with whom each concerns.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub messages: Vec<(Seat, NewMessage)>,
    /// Of the sources of some of them, or by themselves.
    pub cursors: Vec<(Seat, SourceCursor)>,
    pub results: Vec<Finished>,
    pub actions: Vec<(Ticket, portway_store::Action)>,
    pub suspects: Vec<(RunId, portway_store::Suspect)>,
    pub destination_actions: Vec<(Ticket, portway_store::DestinationAction)>,
    pub durability: Durability,
}

/// What became of the write that was in hand.
#[derive(Debug)]
pub(crate) enum After {
    Committed(Batch, WriteOutcome),
    /// The only row of this batch is not acceptable.
    Refused(Batch, String),
    /// Nothing of this batch is stored: there is no room. What is left after its messages are
    /// answered is given back.
    Full(Batch, String),
    /// Tried again.
    Again,
    Ended(EngineError),
}

/// See the file.
#[derive(Debug)]
pub(crate) struct Committer {
    hand: Hand,
    /// Batches that come before anything new.
    redo: VecDeque<Batch>,
    trouble: Option<Trouble>,
    marks: ChaCha8Rng,
    pub status: CommitStatus,
}

/// What the store's writer does.
#[derive(Debug)]
enum Hand {
    Free,
    Housekeeping,
    Writing {
        batch: Batch,
        mark: u64,
        began: Duration,
    },
    /// Whether the batch was stored is asked, or will be when the pause is over.
    Finding {
        batch: Batch,
        mark: u64,
        asked: bool,
    },
}

/// Since when the store fails.
#[derive(Clone, Debug)]
struct Trouble {
    since: Duration,
    tries: u32,
    pause_until: Duration,
    text: String,
}

impl Batch {
    pub fn from_share(share: Share) -> Self {
        let Share { results, actions, suspects, destination_actions, flushes } = share;
        // An operator's word must survive what a message survives.
        let has_word = !actions.is_empty() || !destination_actions.is_empty();
        let durability = if has_word || flushes { Durability::Strict } else { Durability::Relaxed };
        Batch { results, actions, suspects, destination_actions, durability, ..Batch::default() }
    }

    pub fn len(&self) -> usize {
        self.messages.len()
            + self.cursors.len()
            + self.results.len()
            + self.actions.len()
            + self.suspects.len()
            + self.destination_actions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing of it can be stored without the rest.
    fn is_one(&self) -> bool {
        let mut seats = self.seats();
        let operators = self.actions.len() + self.destination_actions.len();
        let others = self.results.len() + self.suspects.len() + operators;
        match seats.next() {
            None => others <= 1,
            Some(first) => others == 0 && seats.all(|seat| first.is_one_with(&seat)),
        }
    }

    fn seats(&self) -> impl Iterator<Item = Seat> {
        let messages = self.messages.iter().map(|(seat, _)| *seat);
        messages.chain(self.cursors.iter().map(|(seat, _)| *seat))
    }

    /// Takes out what sources wait for.
    pub fn take_seats(&mut self) -> Vec<Seat> {
        let seats = self.seats().collect();
        self.messages.clear();
        self.cursors.clear();
        seats
    }

    /// The second half, in the order in which a batch is applied. What is stored as a whole is
    /// not divided.
    fn split_half(&mut self) -> Batch {
        let (with_messages, mut alone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.cursors)
            .into_iter()
            .partition(|(seat, _)| self.messages.iter().any(|(other, _)| other.is_one_with(seat)));
        let mut at = (self.len() + alone.len()) / 2;
        let mut second = Batch { durability: self.durability, ..Batch::default() };
        let edge = self.edge_near(at.min(self.messages.len()));
        second.messages = self.messages.split_off(edge);
        at = at.saturating_sub(self.messages.len());
        split_at(&mut alone, &mut second.cursors, &mut at);
        self.cursors = alone;
        for (seat, cursor) in with_messages {
            let is_first = self.messages.iter().any(|(other, _)| other.is_one_with(&seat));
            let half = if is_first { &mut *self } else { &mut second };
            half.cursors.push((seat, cursor));
        }
        split_at(&mut self.results, &mut second.results, &mut at);
        split_at(&mut self.actions, &mut second.actions, &mut at);
        split_at(&mut self.suspects, &mut second.suspects, &mut at);
        split_at(&mut self.destination_actions, &mut second.destination_actions, &mut at);
        second
    }

    /// Where the messages can be divided: at `at`, or behind the unit that lies across it, or
    /// before it.
    fn edge_near(&self, at: usize) -> usize {
        let is_inside = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| self.messages.get(before));
            before.zip(self.messages.get(at)).is_some_and(|((one, _), (other, _))| one.is_one_with(other))
        };
        let behind = (at..=self.messages.len()).find(|at| !is_inside(*at)).unwrap_or(at);
        if behind < self.messages.len() || behind == at {
            return behind;
        }
        (0..=at).rev().find(|at| !is_inside(*at)).unwrap_or(0)
    }

    fn to_write(&self, mark: u64, now: Timestamp) -> WriteBatch {
        WriteBatch {
            mark,
            now,
            durability: self.durability,
            messages: self.messages.iter().map(|(_, message)| message.clone()).collect(),
            cursors: self.cursors.iter().map(|(_, cursor)| cursor.clone()).collect(),
            results: self.results.iter().map(|finished| finished.result.clone()).collect(),
            actions: self.actions.iter().map(|(_, action)| action.clone()).collect(),
            suspects: self.suspects.iter().map(|(_, suspect)| *suspect).collect(),
            destination_actions: self.destination_actions.iter().map(|(_, action)| action.clone()).collect(),
        }
    }

    fn fits(&self, outcome: &WriteOutcome) -> bool {
        outcome.messages.len() == self.messages.len()
            && outcome.results.len() == self.results.len()
            && outcome.actions.len() == self.actions.len()
            && outcome.suspects.len() == self.suspects.len()
    }
}

/// Moves what is behind the first `at` items of both lists together.
fn split_at<T>(first: &mut Vec<T>, second: &mut Vec<T>, at: &mut usize) {
    let keep = first.len().min(*at);
    *second = first.split_off(keep);
    *at -= keep;
}

impl Committer {
    pub fn new(seed: u64) -> Self {
        Committer {
            hand: Hand::Free,
            redo: VecDeque::new(),
            trouble: None,
            marks: ChaCha8Rng::seed_from_u64(seed),
            status: CommitStatus::default(),
        }
    }

    /// Nothing is in hand and nothing waits for a pause.
    pub fn is_free(&self, monotonic: Duration) -> bool {
        matches!(self.hand, Hand::Free) && self.pause_until().is_none_or(|until| until <= monotonic)
    }

    /// Nothing is in hand and nothing has to be done again.
    pub fn is_idle(&self) -> bool {
        matches!(self.hand, Hand::Free) && self.redo.is_empty()
    }

    /// Whether a write that may store messages is in hand: its messages can already be read.
    pub fn is_writing(&self) -> bool {
        matches!(self.hand, Hand::Writing { .. } | Hand::Finding { .. })
    }

    /// Whether what is in hand may change held lanes: the store may show it before its outcome is known.
    pub fn is_acting(&self) -> bool {
        match &self.hand {
            Hand::Writing { batch, .. } | Hand::Finding { batch, .. } => !batch.actions.is_empty(),
            Hand::Free | Hand::Housekeeping => false,
        }
    }

    pub fn pause_until(&self) -> Option<Duration> {
        self.trouble.as_ref().map(|trouble| trouble.pause_until)
    }

    /// The store fails: how it goes on is found out with an empty batch, if need be.
    pub fn is_troubled(&self) -> bool {
        self.trouble.is_some()
    }

    /// Why the store cannot be waited for any longer.
    pub fn lost_patience(&self, monotonic: Duration) -> Option<&str> {
        let trouble = self.trouble.as_ref().filter(|trouble| trouble.since + PATIENCE <= monotonic)?;
        Some(&trouble.text)
    }

    /// When patience ends.
    pub fn patience_until(&self) -> Option<Duration> {
        self.trouble.as_ref().map(|trouble| trouble.since + PATIENCE)
    }

    /// A batch that has to be written before anything new.
    pub fn next_redo(&mut self) -> Option<Batch> {
        self.redo.pop_front()
    }

    /// Takes the messages out of everything that has to be written again.
    pub fn strip_redo(&mut self) -> Vec<Seat> {
        let seats = self.redo.iter_mut().flat_map(Batch::take_seats).collect();
        self.redo.retain(|batch| !batch.is_empty());
        seats
    }

    /// Writes this batch before anything new.
    pub fn give_back(&mut self, batch: Batch) {
        if !batch.is_empty() {
            self.redo.push_front(batch);
        }
    }

    /// The writer does housekeeping until [`Committer::release`].
    pub fn borrow(&mut self) {
        self.hand = Hand::Housekeeping;
    }

    pub fn release(&mut self) {
        if matches!(self.hand, Hand::Housekeeping) {
            self.hand = Hand::Free;
        }
    }

    /// Begins to write a batch.
    pub fn write(&mut self, batch: Batch, now: Timestamp, monotonic: Duration) -> WriteBatch {
        // Half of the range: some stores know only signed numbers.
        let mark = self.marks.next_u64() >> 1;
        let write = batch.to_write(mark, now);
        self.hand = Hand::Writing { batch, mark, began: monotonic };
        write
    }

    /// The mark to ask for now.
    pub fn find(&mut self, monotonic: Duration) -> Option<u64> {
        let paused = self.pause_until().is_some_and(|until| until > monotonic);
        match &mut self.hand {
            Hand::Finding { mark, asked, .. } if !*asked && !paused => {
                *asked = true;
                Some(*mark)
            }
            _ => None,
        }
    }

    /// The write in hand came back.
    pub fn wrote(&mut self, answer: Result<WriteOutcome, StoreError>, monotonic: Duration) -> After {
        let Hand::Writing { batch, mark, began } = std::mem::replace(&mut self.hand, Hand::Free) else {
            return After::Ended(EngineError::Contract("a write was answered that was not asked for".into()));
        };
        let took = monotonic.saturating_sub(began);
        match answer {
            Ok(outcome) => self.committed(batch, outcome, took),
            Err(error) => self.failed(batch, mark, error, monotonic),
        }
    }

    /// Whether the write was stored is known.
    pub fn found(&mut self, answer: Result<Option<WriteOutcome>, StoreError>, monotonic: Duration) -> After {
        let Hand::Finding { batch, mark, .. } = std::mem::replace(&mut self.hand, Hand::Free) else {
            return After::Ended(EngineError::Contract("a mark was answered that was not asked for".into()));
        };
        match answer {
            Ok(Some(outcome)) => self.committed(batch, outcome, Duration::ZERO),
            Ok(None) => {
                self.give_back(batch);
                self.trouble = None;
                After::Again
            }
            Err(error) if error.kind() == ErrorKind::Fatal => After::Ended(EngineError::Store(error)),
            Err(error) => {
                self.hand = Hand::Finding { batch, mark, asked: false };
                self.pause(error.to_string(), monotonic);
                After::Again
            }
        }
    }

    fn committed(&mut self, batch: Batch, outcome: WriteOutcome, took: Duration) -> After {
        if !batch.fits(&outcome) {
            return After::Ended(EngineError::Contract(
                "its outcome has other lengths than the batch".into(),
            ));
        }
        self.trouble = None;
        self.status.record(took);
        if batch.durability == Durability::Strict {
            self.status.strict += 1;
            self.status.busy_strict += took;
        }
        self.status.messages += batch.messages.len() as u64;
        self.status.results += batch.results.len() as u64;
        After::Committed(batch, outcome)
    }

    fn failed(&mut self, mut batch: Batch, mark: u64, error: StoreError, monotonic: Duration) -> After {
        self.status.failures += 1;
        match error.kind() {
            ErrorKind::Refused if batch.is_one() => {
                self.trouble = None;
                After::Refused(batch, error.to_string())
            }
            ErrorKind::Refused => {
                self.trouble = None;
                let second = batch.split_half();
                self.give_back(second);
                self.give_back(batch);
                After::Again
            }
            ErrorKind::Full => {
                self.pause(error.to_string(), monotonic);
                After::Full(batch, error.to_string())
            }
            ErrorKind::Unavailable => {
                self.give_back(batch);
                self.pause(error.to_string(), monotonic);
                After::Again
            }
            ErrorKind::Unknown => {
                // Asked at once: only when asking fails there is a pause.
                self.hand = Hand::Finding { batch, mark, asked: false };
                After::Again
            }
            ErrorKind::Fatal => After::Ended(EngineError::Store(error)),
        }
    }

    fn pause(&mut self, text: String, monotonic: Duration) {
        let before = self.trouble.take();
        let tries = before.as_ref().map_or(0, |trouble| trouble.tries.saturating_add(1));
        let since = before.map_or(monotonic, |trouble| trouble.since);
        let pause = FIRST_PAUSE.saturating_mul(1_u32 << tries.min(10)).min(LONGEST_PAUSE);
        self.trouble = Some(Trouble { since, tries, pause_until: monotonic + pause, text });
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{DestinationId, MessageId};
    use portway_store::Suspect;

    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn batch(count: u64) -> Batch {
        let suspect = |n| Suspect { destination: DestinationId(1), message: MessageId(n) };
        Batch { suspects: (0..count).map(|n| (RunId(n), suspect(n))).collect(), ..Batch::default() }
    }

    fn error(kind: ErrorKind) -> Result<WriteOutcome, StoreError> {
        Err(StoreError::new(kind, "no"))
    }

    fn stored(count: u64) -> WriteOutcome {
        WriteOutcome { suspects: (0..count).map(|_| 1).collect(), ..WriteOutcome::default() }
    }

    fn write(committer: &mut Committer, batch: Batch) -> usize {
        committer.write(batch, Timestamp(0), NOW).suspects.len()
    }

    #[test]
    fn a_refused_batch_is_halved_until_the_row_is_found() {
        let mut committer = Committer::new(1);
        committer.give_back(batch(8));
        let (mut stored_rows, mut refused) = (Vec::new(), Vec::new());
        while let Some(next) = committer.next_redo() {
            let ids: Vec<u64> = next.suspects.iter().map(|(_, suspect)| suspect.message.0).collect();
            write(&mut committer, next);
            let answer =
                if ids.contains(&5) { error(ErrorKind::Refused) } else { Ok(stored(ids.len() as u64)) };
            match committer.wrote(answer, NOW) {
                After::Committed(..) => stored_rows.extend(ids),
                After::Refused(..) => refused.extend(ids),
                other => assert!(matches!(other, After::Again), "{other:?}"),
            }
        }
        assert_eq!((stored_rows, refused), (vec![0, 1, 2, 3, 4, 6, 7], vec![5]));
    }

    fn message() -> NewMessage {
        NewMessage {
            interface: portway_model::InterfaceId(1),
            group: portway_model::GroupId(1),
            received_at: Timestamp(0),
            draft: portway_model::Draft {
                body: bytes::Bytes::new(),
                key: None,
                dedupe: None,
                occurred_at: None,
                attributes: portway_model::Attributes::default(),
                doubt: None,
            },
            dedupe: None,
            origin: None,
            edited: None,
            terms: Vec::new(),
            deliveries: Vec::new(),
        }
    }

    fn cursor() -> SourceCursor {
        SourceCursor { interface: portway_model::InterfaceId(1), cursor: bytes::Bytes::new() }
    }

    /// Single messages (none), and units of so many messages and a cursor.
    fn mixed(units: &[Option<usize>]) -> Batch {
        let mut batch = Batch::default();
        for (waiter, size) in units.iter().enumerate() {
            let seats = (0..size.unwrap_or(1)).map(|index| Seat::new(waiter, index, size.is_some()));
            batch.messages.extend(seats.map(|seat| (seat, message())));
            if let Some(size) = size {
                batch.cursors.push((Seat::new(waiter, *size, true), cursor()));
            }
        }
        batch
    }

    #[test]
    fn a_refused_batch_is_never_divided_within_what_belongs_together() {
        let mut dice = ChaCha8Rng::seed_from_u64(11);
        for _ in 0..500 {
            let mut size = || (dice.next_u32() as usize % 6).checked_sub(1);
            let units: Vec<Option<usize>> = (0..5).map(|_| size()).collect();
            let bad = dice.next_u32() as usize % units.len();
            let mut committer = Committer::new(1);
            committer.give_back(mixed(&units));
            let (mut stored, mut refused) = (Vec::new(), Vec::new());
            for _ in 0..200 {
                let Some(next) = committer.next_redo() else { break };
                let seats: Vec<Seat> = next.seats().collect();
                for (waiter, size) in units.iter().enumerate() {
                    let Some(size) = size else { continue };
                    let own = seats.iter().filter(|seat| seat.waiter() == waiter).count();
                    assert!(own == 0 || own == size + 1, "{own} of {size} and a cursor: {units:?}");
                }
                let outcome = WriteOutcome {
                    messages: vec![
                        portway_store::MessageOutcome::Stored { id: MessageId(1), conflict: None };
                        next.messages.len()
                    ],
                    ..WriteOutcome::default()
                };
                committer.write(next, Timestamp(0), NOW);
                let is_bad = seats.iter().any(|seat| seat.waiter() == bad);
                let answer = if is_bad { error(ErrorKind::Refused) } else { Ok(outcome) };
                match committer.wrote(answer, NOW) {
                    After::Committed(..) => stored.extend(seats),
                    After::Refused(..) => refused.extend(seats),
                    other => assert!(matches!(other, After::Again), "{other:?}"),
                }
            }
            assert!(committer.is_idle(), "{units:?}");
            assert!(refused.iter().all(|seat| seat.waiter() == bad), "{units:?}");
            assert!(stored.iter().all(|seat| seat.waiter() != bad), "{units:?}");
            let all: usize = units.iter().map(|size| size.map_or(1, |size| size + 1)).sum();
            assert_eq!(stored.len() + refused.len(), all, "{units:?}");
        }
    }

    #[test]
    fn an_unknown_end_is_found_out_before_anything_else() {
        let mut committer = Committer::new(1);
        write(&mut committer, batch(1));
        assert!(matches!(committer.wrote(error(ErrorKind::Unknown), NOW), After::Again));
        assert!(!committer.is_free(NOW) && committer.is_writing());
        let mark = committer.find(NOW);
        assert!(mark.is_some() && committer.find(NOW).is_none(), "asked once");
        let again = committer.found(Err(StoreError::new(ErrorKind::Unavailable, "away")), NOW);
        assert!(matches!(again, After::Again));
        assert_eq!(committer.find(NOW), None, "not before the pause is over");
        assert_eq!(committer.find(NOW + LONGEST_PAUSE), mark);
        assert!(matches!(committer.found(Ok(Some(stored(1))), NOW), After::Committed(..)));
        assert!(committer.is_idle() && !committer.is_troubled());
    }

    #[test]
    fn what_was_not_stored_is_written_again_under_another_mark() {
        let mut committer = Committer::new(1);
        let first = committer.write(batch(2), Timestamp(0), NOW).mark;
        committer.wrote(error(ErrorKind::Unknown), NOW);
        committer.find(NOW);
        committer.found(Ok(None), NOW);
        let again = committer.next_redo().unwrap();
        assert_ne!(committer.write(again, Timestamp(0), NOW).mark, first);
    }

    #[test]
    fn pauses_grow_and_patience_ends() {
        let mut committer = Committer::new(1);
        let (mut now, mut pauses) = (NOW, Vec::new());
        for _ in 0..8 {
            let next = committer.next_redo().unwrap_or_else(|| batch(1));
            committer.write(next, Timestamp(0), now);
            committer.wrote(error(ErrorKind::Unavailable), now);
            let until = committer.pause_until().unwrap();
            assert!(!committer.is_free(now) && committer.is_free(until));
            pauses.push((until - now).as_millis());
            now = until;
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(committer.lost_patience(now), Some("no"));
    }

    #[test]
    fn an_outcome_of_other_lengths_ends_the_engine() {
        let mut committer = Committer::new(1);
        write(&mut committer, batch(2));
        let after = committer.wrote(Ok(stored(1)), NOW);
        assert!(matches!(after, After::Ended(EngineError::Contract(_))));
    }
}
