//! When the next batch forms, and how long runs leave the processors to sources.
//!
//! At once, but for two cases. Sources that were just answered come back: a batch formed before they
//! do leaves half of them to the next one, and every second flush is wasted. So the next batch waits
//! for them, if they are known to come back in less time than a commit takes. And while messages
//! come, results ride with them, because theirs need no flush.

use std::time::Duration;

/// The longest wait, however long commits take.
const WINDOW_MAX: Duration = Duration::from_millis(2);
/// How long results wait for a batch of messages to ride with.
const RIDE: Duration = Duration::from_millis(10);

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// A commit's time, smoothed.
    commit: Option<Duration>,
    /// How long nine of ten answered sources take to come back, smoothed.
    back: Option<Duration>,
    round: Option<Round>,
    /// The last batch of messages was committed.
    last_messages: Option<Duration>,
}

/// What happened since a commit.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Duration,
    /// Submissions that were answered.
    answered: usize,
    /// Submissions that came since.
    came: usize,
}

/// What waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub submissions: usize,
    /// When the oldest result was accepted.
    pub oldest_result: Option<Duration>,
}

impl Round {
    fn are_back(&self) -> bool {
        self.missing() == 0
    }

    fn missing(&self) -> usize {
        (self.answered * 9).div_ceil(10).saturating_sub(self.came)
    }
}

impl Gather {
    /// A batch with messages was committed and its sources were answered.
    pub fn committed(&mut self, took: Duration, answered: usize, monotonic: Duration) {
        self.last_messages = Some(monotonic);
        smooth(&mut self.commit, took);
        if let Some(round) = self.round.take().filter(|round| !round.are_back()) {
            // They took longer than that.
            smooth(&mut self.back, monotonic.saturating_sub(round.began));
        }
        self.round = Some(Round { began: monotonic, answered, came: 0 });
    }

    /// A submission came at this time.
    pub fn came(&mut self, monotonic: Duration) {
        let Some(round) = self.round.as_mut().filter(|round| round.began <= monotonic) else { return };
        let were_back = round.are_back();
        round.came += 1;
        if round.are_back() && !were_back {
            smooth(&mut self.back, monotonic.saturating_sub(round.began));
        }
    }

    /// How many are still to come before nothing is waited for any more.
    pub fn missing(&self) -> usize {
        self.round.map_or(0, |round| round.missing())
    }

    /// Whether the next batch waits, and until when.
    pub fn waits_until(&self, waiting: Waiting, monotonic: Duration) -> Option<Duration> {
        let until = if waiting.submissions > 0 { self.for_sources()? } else { self.for_ride(waiting)? };
        (until > monotonic).then_some(until)
    }

    /// Until when sources that were just answered are awaited; none: nearly all are back, or they are not known
    /// to come back soon.
    pub fn expects_until(&self, monotonic: Duration) -> Option<Duration> {
        let round = self.round.filter(|round| !round.are_back())?;
        let back = self.back.filter(|back| *back <= WINDOW_MAX)?;
        let until = round.began + (back * 2).min(WINDOW_MAX);
        (until > monotonic).then_some(until)
    }

    /// Waiting pays if it takes clearly less time than the flush that it saves.
    fn for_sources(&self) -> Option<Duration> {
        let round = self.round.filter(|round| !round.are_back())?;
        let commit = self.commit?;
        let back = self.back.unwrap_or(commit / 2);
        let window = (back * 2).min(commit).min(WINDOW_MAX);
        (back * 4 <= commit * 3).then_some(round.began + window)
    }

    fn for_ride(&self, waiting: Waiting) -> Option<Duration> {
        let (last_messages, oldest) = (self.last_messages?, waiting.oldest_result?);
        (last_messages + RIDE > oldest).then_some(oldest + RIDE)
    }
}

/// Moves a mean by a quarter towards a sample; one that is far off counts as four times the mean.
fn smooth(mean: &mut Option<Duration>, sample: Duration) {
    let known = mean.unwrap_or(sample);
    let near = sample.min(known.saturating_mul(4).max(Duration::from_micros(10)));
    *mean = Some((known * 3 + near) / 4);
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
    fn it_waits_for_those_that_were_answered_but_not_longer_than_a_commit_takes() {
        let mut gather = Gather::default();
        gather.committed(COMMIT, 10, at(0));
        assert_eq!(gather.waits_until(submissions(10), at(10)), Some(at(1_000)));
        (0..8).for_each(|_| gather.came(at(200)));
        assert!(gather.waits_until(submissions(18), at(200)).is_some());
        gather.came(at(200));
        assert_eq!(gather.waits_until(submissions(19), at(200)), None, "nearly all are back");
        gather.committed(COMMIT, 10, at(2_000));
        let window = gather.waits_until(submissions(10), at(2_000)).unwrap() - at(2_000);
        assert_eq!(window, Duration::from_micros(400), "twice what it took the last time");
    }

    #[test]
    fn where_sources_take_longer_than_a_commit_it_does_not_wait() {
        let mut gather = Gather::default();
        gather.committed(COMMIT, 10, at(0));
        gather.committed(COMMIT, 10, at(5_000));
        assert_eq!(gather.waits_until(submissions(5), at(5_000)), None);
        // They come back sooner: that is seen without waiting.
        for round in 2..20 {
            gather.committed(COMMIT, 10, at(round * 5_000));
            (0..10).for_each(|_| gather.came(at(round * 5_000 + 100)));
        }
        gather.committed(COMMIT, 10, at(100_000));
        assert!(gather.waits_until(submissions(5), at(100_000)).is_some());
    }

    #[test]
    fn sources_are_awaited_that_are_known_to_come_back_soon() {
        let mut gather = Gather::default();
        gather.committed(COMMIT, 1, at(0));
        assert_eq!(gather.expects_until(at(0)), None, "not known yet");
        gather.came(at(300));
        gather.committed(COMMIT, 1, at(2_000));
        assert_eq!(gather.expects_until(at(2_000)), Some(at(2_600)), "twice what it took");
        assert_eq!(gather.expects_until(at(2_600)), None, "longer than that nobody waits");
        gather.came(at(2_700));
        assert_eq!(gather.expects_until(at(2_700)), None, "it is back");
        // One that thinks for a while is not awaited.
        gather.committed(COMMIT, 1, at(10_000));
        (2..20).for_each(|round| gather.committed(COMMIT, 1, at(round * 10_000)));
        assert_eq!(gather.expects_until(at(190_000)), None);
    }

    #[test]
    fn results_ride_with_messages_while_messages_come() {
        let mut gather = Gather::default();
        let results = Waiting { submissions: 0, oldest_result: Some(at(1_000)) };
        assert_eq!(gather.waits_until(results, at(1_000)), None, "nothing comes");
        gather.committed(COMMIT, 1, at(0));
        assert_eq!(gather.waits_until(results, at(1_000)), Some(at(11_000)));
        let later = Waiting { submissions: 0, oldest_result: Some(at(20_000)) };
        assert_eq!(gather.waits_until(later, at(20_000)), None, "nothing comes any more");
    }
}
