//! Reads for the dispatcher: a few at a time, in the order they were asked for, and again
//! after a pause when the store fails.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use portway_model::Lane;

use crate::event::{Read, ReadId, RunId};
use crate::layout::Place;

/// Reads in hand at a time.
const READS_MAX: usize = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Start,
    LaneHeads(Place),
    HeldHeads(Place),
    Suspects(Place),
    Lane(Place, Lane),
    Fresh(Place),
    Due(Place),
    NextDue(Place),
    Bodies(RunId),
}

impl For {
    /// The destination it is for.
    fn place(self) -> Option<Place> {
        match self {
            // A run that is in hand is counted with its destination.
            For::Start | For::Bodies(_) => None,
            For::LaneHeads(place)
            | For::HeldHeads(place)
            | For::Suspects(place)
            | For::Lane(place, _)
            | For::Fresh(place)
            | For::Due(place)
            | For::NextDue(place) => Some(place),
        }
    }
}

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    asked: u64,
    wanted: VecDeque<(ReadId, For, Read)>,
    in_hand: BTreeMap<ReadId, (For, Read)>,
    pause_until: Option<Duration>,
    tries: u32,
}

impl Reader {
    pub fn ask(&mut self, reader: For, read: Read) -> ReadId {
        self.asked += 1;
        let id = ReadId(self.asked);
        self.wanted.push_back((id, reader, read));
        id
    }

    /// Nothing is in hand or waits.
    pub fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.in_hand.is_empty()
    }

    /// A read is asked for and not begun: it will see whatever is stored by now.
    pub fn waits(&self, reader: For) -> bool {
        self.wanted.iter().any(|(_, waiting, _)| *waiting == reader)
    }

    /// Something is read for a destination.
    pub fn reads_for(&self, place: Place) -> bool {
        let wanted = self.wanted.iter().map(|(_, reader, _)| reader);
        let mut all = wanted.chain(self.in_hand.values().map(|(reader, _)| reader));
        all.any(|reader| reader.place() == Some(place))
    }

    /// The next read to do now.
    pub fn next(&mut self, monotonic: Duration) -> Option<(ReadId, Read)> {
        let paused = self.pause_until.is_some_and(|until| until > monotonic);
        if paused || self.in_hand.len() >= READS_MAX {
            return None;
        }
        let (id, reader, read) = self.wanted.pop_front()?;
        self.in_hand.insert(id, (reader, read.clone()));
        Some((id, read))
    }

    /// Who asked, and for what.
    pub fn answered(&mut self, id: ReadId) -> Option<(For, Read)> {
        self.pause_until = None;
        self.tries = 0;
        self.in_hand.remove(&id)
    }

    /// Reads it again after a pause.
    pub fn failed(&mut self, id: ReadId, monotonic: Duration) {
        let Some((reader, read)) = self.in_hand.remove(&id) else { return };
        self.wanted.push_front((id, reader, read));
        let pause = FIRST_PAUSE.saturating_mul(1_u32 << self.tries.min(10)).min(LONGEST_PAUSE);
        self.tries += 1;
        self.pause_until = Some(monotonic + pause);
    }

    /// When reads go on; none if they are not paused or there is nothing to read.
    pub fn wake_at(&self) -> Option<Duration> {
        self.pause_until.filter(|_| !self.wanted.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_read_is_the_next_after_the_pause() {
        let mut reader = Reader::default();
        let first = reader.ask(For::Start, Read::Work);
        reader.ask(For::LaneHeads(1), Read::Work);
        let now = Duration::from_secs(1);
        assert_eq!(reader.next(now).map(|(id, _)| id), Some(first));
        reader.failed(first, now);
        assert!(reader.next(now).is_none());
        let later = reader.wake_at().unwrap();
        assert_eq!(reader.next(later).map(|(id, _)| id), Some(first));
        assert_eq!(reader.answered(first).map(|(reader, _)| reader), Some(For::Start));
        assert_eq!(reader.wake_at(), None);
    }

    #[test]
    fn what_is_read_for_a_destination_is_known_until_it_is_answered() {
        let mut reader = Reader::default();
        let id = reader.ask(For::Lane(3, Lane::FIRST), Read::Work);
        assert!(reader.reads_for(3) && !reader.reads_for(2));
        reader.next(Duration::ZERO);
        assert!(reader.reads_for(3));
        reader.failed(id, Duration::ZERO);
        assert!(reader.reads_for(3), "it is read again");
        reader.next(Duration::from_secs(1));
        reader.answered(id);
        assert!(!reader.reads_for(3));
    }

    #[test]
    fn only_a_few_reads_are_in_hand() {
        let mut reader = Reader::default();
        (0..20).for_each(|place| {
            reader.ask(For::Due(place), Read::Work);
        });
        let in_hand = std::iter::from_fn(|| reader.next(Duration::ZERO)).count();
        assert_eq!(in_hand, READS_MAX);
    }
}
