//! What runs made of deliveries, on its way to the store; and what rides with it.
//!
//! Results wait here until the committer takes them. Counts per destination how many are not
//! flushed yet: beyond the limit its sends wait, at half of it a flush is asked for, so that
//! sends and flushes overlap.

use std::collections::VecDeque;
use std::time::Duration;

use portway_model::{Answer, Failure, Guarantee, Lane, code};
use portway_store::{Action, DeliveryResult, DestinationAction, NewMessage, Settled, Suspect};

use crate::event::{RunId, Ticket};
use crate::layout::Place;

/// Results in one commit: more would keep the messages of the next one waiting.
const BATCH_RESULTS_MAX: usize = 2_048;
/// More results than this do not wait for a batch to ride with.
const RIDERS_MAX: usize = 256;
/// Bytes of saved outputs in one commit; the first result is taken whatever it has.
const BATCH_OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Bytes of saved outputs of a destination that are not flushed: beyond them its sends wait.
const UNFLUSHED_OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Results that were written are flushed at the latest after this time, if nothing else flushes.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// Where a delivery was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the order of its lane, or of the store where it stands apart.
    Queue,
    /// Apart, and its time had come.
    Due,
}

/// A result with what its destination must know when it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub place: Place,
    pub lane: Lane,
    pub origin: Origin,
    pub result: DeliveryResult,
    /// It was dropped, not sent.
    pub is_drop: bool,
    /// It came with state: its lane goes on when that can be read.
    pub has_state: bool,
    /// Bytes of the output it came with, also when they are dropped on the way.
    pub output_bytes: usize,
    /// How often the store refused it.
    pub refusals: u8,
}

impl Finished {
    /// The store is full: of its output only the size is stored.
    pub fn leave_output(&mut self) {
        if let Some(output) = &mut self.result.output {
            output.leave();
        }
    }
}

/// See the file.
#[derive(Debug)]
pub(crate) struct Completer {
    results: VecDeque<Finished>,
    /// Results that store messages: they wait while the store has no room.
    routed: VecDeque<Finished>,
    routed_bytes: usize,
    actions: VecDeque<(Ticket, Action)>,
    suspects: VecDeque<(RunId, Suspect)>,
    /// Some of them may not be sent twice: they have to be on disk before they are sent.
    flushes_suspects: bool,
    destination_actions: VecDeque<(Ticket, DestinationAction)>,
    ledger: Vec<Unflushed>,
    /// Destinations with written results, each once.
    written: Vec<Place>,
    /// When the oldest result that is not taken was accepted.
    oldest_waiting: Option<Duration>,
    oldest_written: Option<Duration>,
    unflushed_max: u32,
    over_half: usize,
    /// A destination cannot go on before a flush.
    is_starved: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Unflushed {
    /// Accepted and not flushed.
    accepted: u32,
    /// Of these, written.
    written: u32,
    /// Bytes of outputs among the accepted.
    output_bytes: usize,
    /// Of these, written.
    output_bytes_written: usize,
}

/// What a batch takes from here.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub results: Vec<Finished>,
    pub actions: Vec<(Ticket, Action)>,
    pub suspects: Vec<(RunId, Suspect)>,
    pub destination_actions: Vec<(Ticket, DestinationAction)>,
    /// It carries what must be on disk before anything follows from it.
    pub flushes: bool,
}

/// Whether messages can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreRoom {
    Free,
    Full,
}

impl Completer {
    pub fn new(destinations: usize, unflushed_max: usize) -> Self {
        Completer {
            results: VecDeque::new(),
            routed: VecDeque::new(),
            routed_bytes: 0,
            actions: VecDeque::new(),
            suspects: VecDeque::new(),
            flushes_suspects: false,
            destination_actions: VecDeque::new(),
            ledger: vec![Unflushed::default(); destinations],
            written: Vec::new(),
            oldest_waiting: None,
            oldest_written: None,
            unflushed_max: u32::try_from(unflushed_max).unwrap_or(u32::MAX).max(1),
            over_half: 0,
            is_starved: false,
        }
    }

    /// There are so many destinations now; never fewer than before.
    pub fn grow(&mut self, destinations: usize) {
        let destinations = destinations.max(self.ledger.len());
        self.ledger.resize(destinations, Unflushed::default());
    }

    /// Results of a destination that are not written: the store shows their deliveries as pending.
    pub fn unwritten(&self, place: Place) -> u32 {
        self.ledger.get(place).map_or(0, |entry| entry.accepted.saturating_sub(entry.written))
    }

    /// Messages of routes that wait: an interface they go to may have changed.
    pub fn routed_mut(&mut self) -> impl Iterator<Item = &mut NewMessage> {
        self.routed.iter_mut().flat_map(|finished| match &mut finished.result.settled {
            Settled::Routed(messages) => messages.as_mut_slice(),
            Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => {
                &mut []
            }
        })
    }

    /// Accepts a result: the lane may go on.
    pub fn accept(&mut self, finished: Finished, monotonic: Duration) {
        self.oldest_waiting.get_or_insert(monotonic);
        let half = self.half();
        if let Some(entry) = self.ledger.get_mut(finished.place) {
            entry.accepted += 1;
            entry.output_bytes += finished.output_bytes;
            self.over_half += usize::from(entry.accepted == half);
        }
        if let Settled::Routed(messages) = &finished.result.settled {
            self.routed_bytes += messages.iter().map(NewMessage::bytes).sum::<usize>();
            self.routed.push_back(finished);
        } else {
            self.results.push_back(finished);
        }
    }

    pub fn act(&mut self, ticket: Ticket, action: Action) {
        self.actions.push_back((ticket, action));
    }

    pub fn act_on_destination(&mut self, ticket: Ticket, action: DestinationAction) {
        self.destination_actions.push_back((ticket, action));
    }

    pub fn suspect(&mut self, run: RunId, suspect: Suspect, guarantee: Guarantee) {
        self.flushes_suspects |= guarantee == Guarantee::AtMostOnce;
        self.suspects.push_back((run, suspect));
    }

    /// Records nothing of what waits to be recorded; the runs that waited for it.
    pub fn drop_suspects(&mut self) -> Vec<RunId> {
        self.flushes_suspects = false;
        self.suspects.drain(..).map(|(run, _)| run).collect()
    }

    /// Results of a destination that are not flushed.
    pub fn unflushed(&self, place: Place) -> u32 {
        self.ledger.get(place).map_or(0, |entry| entry.accepted)
    }

    /// How many more results of a destination may come.
    pub fn room(&self, place: Place) -> u32 {
        let output_bytes = self.ledger.get(place).map_or(0, |entry| entry.output_bytes);
        if output_bytes >= UNFLUSHED_OUTPUT_BYTES_MAX {
            return 0;
        }
        self.unflushed_max.saturating_sub(self.unflushed(place))
    }

    pub fn unflushed_max(&self) -> u32 {
        self.unflushed_max
    }

    /// A destination has no room: its results are flushed as soon as they are written.
    pub fn starves(&mut self, place: Place) {
        self.is_starved |= self.unflushed(place) > 0;
    }

    /// Bytes of routed messages that wait.
    pub fn routed_bytes(&self) -> usize {
        self.routed_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.results.is_empty() && self.routed.is_empty() && !self.has_orders()
    }

    /// Something waits that is worth a transaction of its own.
    fn has_orders(&self) -> bool {
        !self.actions.is_empty() || !self.suspects.is_empty() || !self.destination_actions.is_empty()
    }

    pub fn has_work(&self, room: StoreRoom) -> bool {
        let routes = room == StoreRoom::Free && !self.routed.is_empty();
        routes || !self.results.is_empty() || self.has_orders()
    }

    /// When the oldest result that waits was accepted; none: something waits that should not.
    pub fn oldest_result(&self) -> Option<Duration> {
        let can_wait = !self.has_orders() && self.results.len() < RIDERS_MAX;
        self.oldest_waiting.filter(|_| can_wait)
    }

    /// Whether the next write must flush for the sake of results.
    pub fn wants_flush(&self, room: StoreRoom, monotonic: Duration) -> bool {
        // What cannot be written cannot be flushed.
        if self.written.is_empty() && !self.has_work(room) {
            return false;
        }
        self.is_starved || self.over_half > 0 || self.flush_at().is_some_and(|at| at <= monotonic)
    }

    /// When what is written is flushed at the latest.
    pub fn flush_at(&self) -> Option<Duration> {
        self.oldest_written.map(|oldest| oldest + FLUSH_AFTER)
    }

    /// Takes what the next batch carries; actions and suspects only behind all results, because
    /// they build on them.
    pub fn take(&mut self, room: StoreRoom) -> Share {
        let mut share = Share::default();
        if room == StoreRoom::Free {
            share.results.extend(self.routed.drain(..));
            self.routed_bytes = 0;
        }
        let count = self.batch_results();
        share.results.extend(self.results.drain(..count));
        if room == StoreRoom::Full {
            // Results are stored so that work can go on; what is only kept for people takes no room now.
            share.results.iter_mut().for_each(Finished::leave_output);
        }
        if self.results.is_empty() {
            self.oldest_waiting = None;
            share.actions.extend(self.actions.drain(..));
            share.suspects.extend(self.suspects.drain(..));
            share.flushes = std::mem::take(&mut self.flushes_suspects);
            share.destination_actions.extend(self.destination_actions.drain(..));
        }
        share
    }

    /// How many of the plain results go into the next batch.
    fn batch_results(&self) -> usize {
        let mut bytes = 0;
        let fits = |finished: &&Finished| {
            let is_first = bytes == 0;
            bytes += finished.output_bytes;
            is_first || bytes <= BATCH_OUTPUT_BYTES_MAX
        };
        self.results.iter().take(BATCH_RESULTS_MAX).take_while(fits).count()
    }

    /// A result was written, not necessarily flushed.
    pub fn wrote(&mut self, finished: &Finished, monotonic: Duration) {
        let place = finished.place;
        if let Some(entry) = self.ledger.get_mut(place) {
            if entry.written == 0 {
                self.written.push(place);
            }
            entry.written += 1;
            entry.output_bytes_written += finished.output_bytes;
            self.oldest_written.get_or_insert(monotonic);
        }
    }

    /// Everything written is flushed; the destinations that have room again.
    pub fn flushed(&mut self) -> Vec<Place> {
        let half = self.half();
        let places = std::mem::take(&mut self.written);
        for place in &places {
            if let Some(entry) = self.ledger.get_mut(*place) {
                let over_before = entry.accepted >= half;
                entry.accepted = entry.accepted.saturating_sub(entry.written);
                entry.written = 0;
                entry.output_bytes = entry.output_bytes.saturating_sub(entry.output_bytes_written);
                entry.output_bytes_written = 0;
                self.over_half -= usize::from(over_before && entry.accepted < half);
            }
        }
        self.oldest_written = None;
        self.is_starved = false;
        places
    }

    /// What to store instead of a result the store refuses; none: it must take this one.
    pub fn instead(finished: Finished, text: &str) -> Option<Finished> {
        let settled = match (finished.refusals, &finished.result.settled) {
            (0, Settled::Sent(_)) => Settled::Sent(Answer::default()),
            (0, _) => Settled::Quarantined(Failure::new(code::RESULT_REFUSED, text)),
            _ => return None,
        };
        // It may be the state or the output that is refused.
        let (state, output) = (Vec::new(), None);
        let result = DeliveryResult { settled, attempted: None, state, output, ..finished.result };
        Some(Finished { result, refusals: finished.refusals + 1, ..finished })
    }

    /// Puts back what [`Completer::instead`] made, before everything else.
    pub fn put_back(&mut self, finished: Finished) {
        self.results.push_front(finished);
    }

    fn half(&self) -> u32 {
        self.unflushed_max.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portway_model::{AttemptNo, DestinationId, Epoch, MessageId, Round, SavedBody, SavedOutput};

    use super::*;

    fn sent(message: u64) -> Finished {
        Finished {
            place: 0,
            lane: Lane::FIRST,
            origin: Origin::Queue,
            result: DeliveryResult {
                destination: DestinationId(1),
                message: MessageId(message),
                epoch: Epoch(1),
                round: Round(0),
                attempts: AttemptNo(1),
                settled: Settled::Sent(Answer::default()),
                attempted: None,
                state: Vec::new(),
                output: None,
            },
            is_drop: false,
            has_state: false,
            output_bytes: 0,
            refusals: 0,
        }
    }

    const SOON: Duration = Duration::from_millis(1);

    #[test]
    fn a_flush_is_asked_for_at_half_and_frees_only_what_was_written() {
        let mut completer = Completer::new(1, 8);
        for message in 0..4 {
            assert!(!completer.wants_flush(StoreRoom::Free, SOON));
            completer.accept(sent(message), SOON);
        }
        assert!(completer.wants_flush(StoreRoom::Free, SOON));
        assert_eq!(completer.take(StoreRoom::Free).results.len(), 4);
        (0..4).for_each(|message| completer.wrote(&sent(message), SOON));
        completer.accept(sent(5), SOON);
        assert_eq!(completer.room(0), 3);
        assert_eq!(completer.flushed(), [0]);
        assert_eq!(completer.room(0), 7);
        assert!(!completer.wants_flush(StoreRoom::Free, SOON));
    }

    #[test]
    fn what_is_written_is_flushed_after_a_while_without_other_work() {
        let mut completer = Completer::new(1, 8);
        completer.accept(sent(1), SOON);
        completer.wrote(&sent(1), SOON);
        assert_eq!(completer.flush_at(), Some(SOON + FLUSH_AFTER));
        assert!(completer.wants_flush(StoreRoom::Free, SOON + FLUSH_AFTER));
        completer.flushed();
        assert_eq!(completer.flush_at(), None);
    }

    #[test]
    fn routes_wait_while_the_store_is_full_and_plain_results_go_on() {
        let mut completer = Completer::new(1, 8);
        let mut route = sent(1);
        route.result.settled = Settled::Routed(Vec::new());
        completer.accept(route, SOON);
        completer.starves(0);
        assert!(!completer.has_work(StoreRoom::Full) && !completer.wants_flush(StoreRoom::Full, SOON));
        assert!(completer.wants_flush(StoreRoom::Free, SOON));
        completer.accept(sent(2), SOON);
        assert_eq!(completer.take(StoreRoom::Full).results.len(), 1);
        assert_eq!(completer.take(StoreRoom::Free).results.len(), 1);
    }

    fn with_output(bytes: usize) -> Finished {
        let mut finished = sent(1);
        finished.output_bytes = bytes;
        finished.result.output = Some(Box::new(SavedOutput {
            key: None,
            attributes: Arc::default(),
            body: SavedBody::Kept(vec![b'x'; bytes].into()),
        }));
        finished
    }

    #[test]
    fn outputs_are_bounded_in_a_batch_and_by_destination() {
        let mut completer = Completer::new(2, 8);
        for _ in 0..3 {
            completer.accept(with_output(BATCH_OUTPUT_BYTES_MAX / 2), SOON);
        }
        assert_eq!((completer.room(0), completer.room(1)), (0, 8), "only that destination waits");
        completer.starves(0);
        let first = completer.take(StoreRoom::Free).results;
        assert_eq!((first.len(), completer.take(StoreRoom::Free).results.len()), (2, 1));
        first.iter().for_each(|finished| completer.wrote(finished, SOON));
        assert_eq!(completer.flushed(), [0]);
        assert_eq!(completer.room(0), 7);
        completer.accept(with_output(2 * BATCH_OUTPUT_BYTES_MAX), SOON);
        assert_eq!(completer.take(StoreRoom::Free).results.len(), 1, "one goes whatever it has");
    }

    #[test]
    fn a_full_store_takes_results_without_their_outputs() {
        let mut completer = Completer::new(1, 8);
        completer.accept(with_output(9), SOON);
        let taken = completer.take(StoreRoom::Full).results;
        let output = taken[0].result.output.as_ref().unwrap();
        assert_eq!(output.body, SavedBody::NoRoom(9));
        completer.wrote(&taken[0], SOON);
        completer.flushed();
        assert_eq!(completer.room(0), 8);
    }

    #[test]
    fn a_refused_result_is_simplified_once_and_then_must_be_taken() {
        let mut filtered = sent(1);
        filtered.result.settled = Settled::Filtered("why".into());
        let second = Completer::instead(filtered, "bad text").unwrap();
        assert!(
            matches!(&second.result.settled, Settled::Quarantined(failure) if failure.text == "bad text")
        );
        assert!(Completer::instead(second, "again").is_none());
        let sent = Completer::instead(sent(1), "bad answer").unwrap();
        assert!(matches!(sent.result.settled, Settled::Sent(_)), "what arrived stays sent");
    }
}
