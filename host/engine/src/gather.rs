//! When the next batch forms.
//!
//! At once, but for two cases. Sources that were just answered come back: a batch formed before they
//! do leaves half of them to the next one, and every second flush is wasted. So the next batch waits
//! for them, for a part of the time a commit takes at most, and not at all where they are not seen to
//! come back. And while messages come, results ride with them, because theirs need no flush.

use std::time::Duration;

/// The longest part of a commit's time that is waited, in percent.
const SHARE_MAX: u32 = 40;
/// However long commits take.
const WINDOW_MAX: Duration = Duration::from_millis(2);
/// After so many batches that gained nothing it is tried again.
const RETRY_AFTER: u32 = 64;
/// How long results wait for a batch of messages to ride with.
const RIDE: Duration = Duration::from_millis(10);

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// A commit's time, smoothed.
    commit: Duration,
    /// In percent of it; 0: sources do not come back in time.
    share: u32,
    batches_without: u32,
    round: Option<Round>,
    /// The last batch of messages was committed.
    last_messages: Option<Duration>,
}

/// From the end of a commit to the next batch.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Submissions that were answered, and those that waited already.
    answered: usize,
    waited: usize,
    until: Duration,
}

/// What waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub submissions: usize,
    /// When the oldest result was accepted.
    pub oldest_result: Option<Duration>,
}

impl Gather {
    pub fn new() -> Self {
        Gather { share: SHARE_MAX, ..Gather::default() }
    }

    /// A batch with messages was committed.
    pub fn committed(&mut self, took: Duration, answered: usize, waited: usize, monotonic: Duration) {
        if self.commit.is_zero() {
            self.commit = took;
        }
        // One that took long (its end had to be found out) says nothing of the next.
        self.commit = (self.commit * 3 + took.min(self.commit * 4)) / 4;
        self.last_messages = Some(monotonic);
        if self.share == 0 {
            self.batches_without += 1;
            if self.batches_without >= RETRY_AFTER {
                (self.share, self.batches_without) = (SHARE_MAX, 0);
            }
        }
        let window = (self.commit * self.share / 100).min(WINDOW_MAX);
        self.round = Some(Round { answered, waited, until: monotonic + window });
    }

    /// Whether the next batch waits, and until when.
    pub fn waits_until(&self, waiting: Waiting, monotonic: Duration) -> Option<Duration> {
        let until = if waiting.submissions > 0 {
            self.for_sources(waiting.submissions)?
        } else {
            self.for_ride(waiting)?
        };
        (until > monotonic).then_some(until)
    }

    /// Nine of ten that may come are worth a batch.
    fn for_sources(&self, submissions: usize) -> Option<Duration> {
        let round = self.round?;
        let all_are_back = submissions * 10 >= (round.answered + round.waited) * 9;
        (!all_are_back).then_some(round.until)
    }

    fn for_ride(&self, waiting: Waiting) -> Option<Duration> {
        let (last_messages, oldest) = (self.last_messages?, waiting.oldest_result?);
        (last_messages + RIDE > oldest).then_some(oldest + RIDE)
    }

    /// A batch with messages is formed: learns whether waiting gained anything.
    pub fn formed(&mut self, submissions: usize) {
        let Some(round) = self.round.take() else { return };
        let came_back = submissions.saturating_sub(round.waited);
        if round.answered == 0 || self.share == 0 {
            return;
        }
        if came_back * 2 >= round.answered {
            self.share = SHARE_MAX;
        } else {
            self.share /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: Duration = Duration::from_millis(1);

    fn submissions(submissions: usize) -> Waiting {
        Waiting { submissions, oldest_result: None }
    }

    fn at(micros: u64) -> Duration {
        Duration::from_micros(1_000_000 + micros)
    }

    #[test]
    fn it_waits_for_those_that_were_answered_but_not_longer_than_a_part_of_a_commit() {
        let mut gather = Gather::new();
        gather.committed(COMMIT, 32, 32, at(0));
        assert_eq!(gather.waits_until(submissions(40), at(10)), Some(at(400)));
        assert_eq!(gather.waits_until(submissions(60), at(10)), None, "nearly all are back");
        assert_eq!(gather.waits_until(submissions(40), at(400)), None, "long enough");
    }

    #[test]
    fn where_nobody_comes_back_it_soon_waits_no_longer_and_tries_again_later() {
        let mut gather = Gather::new();
        let mut waits = 0;
        for _ in 0..50 {
            gather.committed(COMMIT, 10, 5, at(0));
            waits += u32::from(gather.waits_until(submissions(5), at(1)).is_some());
            gather.formed(5);
        }
        assert!(waits <= 7, "{waits}");
        (0..RETRY_AFTER).for_each(|_| gather.committed(COMMIT, 10, 5, at(0)));
        assert!(gather.waits_until(submissions(5), at(1)).is_some());
    }

    #[test]
    fn results_ride_with_messages_while_messages_come() {
        let mut gather = Gather::new();
        let results = Waiting { submissions: 0, oldest_result: Some(at(1_000)) };
        assert_eq!(gather.waits_until(results, at(1_000)), None, "nothing comes");
        gather.committed(COMMIT, 1, 0, at(0));
        assert_eq!(gather.waits_until(results, at(1_000)), Some(at(11_000)));
        let later = Waiting { submissions: 0, oldest_result: Some(at(20_000)) };
        assert_eq!(gather.waits_until(later, at(20_000)), None, "nothing comes any more");
    }
}
