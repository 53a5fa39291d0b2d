//! Whether a destination works: running, away, asked again with one run, or stopped.

use std::fmt;
use std::time::Duration;

use portway_model::{AttemptNo, Failure, Later, MessageId, RetryPolicy, Timestamp, code};
use portway_store::Pause;

use crate::event::RunId;
use crate::ports::Stop;
use crate::status::DestinationState;
use crate::time::Moment;

/// Runaways in a row that stop a destination.
const RUNAWAYS_MAX: u32 = 3;

/// See the file.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// An operator's word, beside what the destination itself does.
    pause: Option<Pause>,
    state: State,
    /// Waits in a row.
    tries: u32,
    runaways: Runaways,
}

/// Runaways in a row.
#[derive(Debug, Default)]
struct Runaways {
    count: u32,
    /// For the operator: the newest of them.
    last: Option<(MessageId, Failure)>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Running,
    Waiting {
        why: Failure,
        since: Timestamp,
        until: Duration,
    },
    /// The wait is over: one run tells whether it is back.
    Probing {
        why: Failure,
        since: Timestamp,
        run: Option<RunId>,
    },
    Stopped {
        why: Failure,
        since: Timestamp,
    },
}

/// What a report says of the destination as a whole.
#[derive(Debug)]
pub(crate) struct Heard {
    pub run: RunId,
    pub stop: Option<Stop>,
    /// At least one message was tried and came to something.
    pub progress: bool,
}

/// What follows for the destination's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// It goes on.
    Resumed,
    /// It waits until then.
    Waits(Duration),
    Stopped,
    Paused,
}

/// What is worth telling of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News<'a> {
    Runs,
    Waits(&'a Failure),
    Stopped(&'a Failure),
    Paused(&'a Pause),
}

/// How to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience<'a> {
    pub policy: &'a RetryPolicy,
    /// A random number from 0 to 1.
    pub chance: f64,
    pub at: Moment,
}

impl Standing {
    /// As an engine starts with it.
    pub fn new(pause: Option<Pause>) -> Self {
        Standing { pause, ..Standing::default() }
    }

    /// What an operator said while another engine was the owner.
    pub fn set_pause(&mut self, pause: Option<Pause>) {
        self.pause = pause;
    }

    /// An operator's word outlives the destination it was given for.
    pub fn take_pause_of(&mut self, old: &mut Standing) {
        self.pause = old.pause.take();
    }

    /// Deliveries are worth reading and queueing.
    pub fn is_active(&self) -> bool {
        if self.pause.is_some() {
            return false;
        }
        match self.state {
            State::Running | State::Probing { .. } => true,
            State::Waiting { .. } | State::Stopped { .. } => false,
        }
    }

    /// Why it does not run, if that is news: not each time it is asked again.
    pub fn news(&self, change: Change) -> Option<News<'_>> {
        if change == Change::Paused {
            return self.pause.as_ref().map(News::Paused);
        }
        match &self.state {
            State::Running => self.pause.is_none().then_some(News::Runs),
            State::Waiting { why, .. } => (self.tries == 1).then_some(News::Waits(why)),
            State::Probing { .. } => None,
            State::Stopped { why, .. } => Some(News::Stopped(why)),
        }
    }

    pub fn is_probing(&self) -> bool {
        matches!(self.state, State::Probing { .. })
    }

    /// A run may begin.
    pub fn admits_run(&self) -> bool {
        if self.pause.is_some() {
            return false;
        }
        match self.state {
            State::Running | State::Probing { run: None, .. } => true,
            State::Probing { run: Some(_), .. } | State::Waiting { .. } | State::Stopped { .. } => false,
        }
    }

    pub fn began(&mut self, id: RunId) {
        if let State::Probing { run, .. } = &mut self.state {
            *run = Some(id);
        }
    }

    /// A run ended without a word.
    pub fn forget(&mut self, id: RunId) {
        if let State::Probing { run, .. } = &mut self.state
            && *run == Some(id)
        {
            *run = None;
        }
    }

    /// A message made the plugin use up its fuel, memory or time.
    pub fn ran_away(&mut self, message: MessageId, why: &Failure) {
        self.runaways.count = self.runaways.count.saturating_add(1);
        self.runaways.last = Some((message, why.clone()));
    }

    /// A message came to something.
    pub fn worked(&mut self) {
        self.runaways = Runaways::default();
    }

    pub fn runaways(&self) -> u32 {
        self.runaways.count
    }

    /// Takes in what a run says of the whole.
    pub fn heard(&mut self, heard: Heard, patience: Patience<'_>) -> Change {
        let is_probe = matches!(&self.state, State::Probing { run: Some(run), .. } if *run == heard.run);
        self.forget(heard.run);
        match heard.stop {
            Some(Stop::Misconfigured(why)) => self.stop(why, patience.at.wall),
            _ if self.runaways.count >= RUNAWAYS_MAX => {
                self.stop(Failure::new(code::RUNAWAY, self.runaways.to_string()), patience.at.wall)
            }
            Some(Stop::Unavailable(later)) => self.wait(later, is_probe, patience),
            None if heard.progress => self.resume_if_away(),
            None => Change::None,
        }
    }

    /// Stops until [`Standing::resume`]; a destination that is stopped keeps its first reason.
    pub fn stop(&mut self, why: Failure, since: Timestamp) -> Change {
        if matches!(self.state, State::Stopped { .. }) {
            return Change::None;
        }
        self.state = State::Stopped { why, since };
        Change::Stopped
    }

    /// An operator says that nothing new is to be sent. The newest pause is the one that is shown.
    pub fn pause(&mut self, pause: Pause) -> Change {
        self.pause = Some(pause);
        Change::Paused
    }

    /// An operator says that it may go on.
    pub fn resume(&mut self) -> Change {
        self.runaways = Runaways::default();
        self.tries = 0;
        let was_paused = self.pause.take().is_some();
        match std::mem::take(&mut self.state) {
            State::Running if !was_paused => Change::None,
            State::Running => Change::Resumed,
            State::Waiting { .. } | State::Probing { .. } | State::Stopped { .. } => Change::Resumed,
        }
    }

    /// The wait may be over.
    pub fn wake(&mut self, monotonic: Duration) -> Change {
        match std::mem::take(&mut self.state) {
            State::Waiting { why, since, until } if until <= monotonic => {
                self.state = State::Probing { why, since, run: None };
                Change::Resumed
            }
            other => {
                self.state = other;
                Change::None
            }
        }
    }

    /// For people.
    pub fn state(&self, at: &Moment) -> DestinationState {
        if let Some(pause) = &self.pause {
            return DestinationState::Paused(pause.clone());
        }
        match &self.state {
            State::Running => DestinationState::Running,
            State::Waiting { why, since, until } => {
                DestinationState::Waiting { why: why.clone(), since: *since, until: at.wall_of(*until) }
            }
            State::Probing { why, since, .. } => {
                DestinationState::Waiting { why: why.clone(), since: *since, until: at.wall }
            }
            State::Stopped { why, since } => DestinationState::Stopped { why: why.clone(), since: *since },
        }
    }

    fn wait(&mut self, later: Later, is_probe: bool, patience: Patience<'_>) -> Change {
        let since = match &self.state {
            State::Running => patience.at.wall,
            State::Probing { since, .. } if is_probe => *since,
            // What other runs say while it waits is no news.
            State::Probing { .. } | State::Waiting { .. } | State::Stopped { .. } => return Change::None,
        };
        self.tries = self.tries.saturating_add(1);
        let wait = patience.policy.wait(AttemptNo(self.tries), later.after_ms, patience.chance);
        // A wait of nothing would ask without end.
        let until = patience.at.monotonic + wait.max(Duration::from_millis(1));
        self.state = State::Waiting { why: later.failure, since, until };
        Change::Waits(until)
    }

    fn resume_if_away(&mut self) -> Change {
        match self.state {
            State::Running => {
                self.tries = 0;
                Change::None
            }
            State::Waiting { .. } | State::Probing { .. } => {
                self.tries = 0;
                self.state = State::Running;
                Change::Resumed
            }
            State::Stopped { .. } => Change::None,
        }
    }
}

impl fmt::Display for Runaways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count;
        write!(f, "{count} tries in a row used up the plugin's fuel, memory or time")?;
        match &self.last {
            Some((message, why)) => write!(f, ", the last with message {message}: {}", why.text),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(ms: u64) -> Moment {
        let wall = Timestamp(ms);
        Moment { wall, steady: wall, monotonic: Duration::from_millis(ms) }
    }

    fn hear(standing: &mut Standing, run: u64, ms: u64, stop: Option<Stop>) -> Change {
        let policy = RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() };
        let progress = stop.is_none();
        let patience = Patience { policy: &policy, chance: 0.0, at: moment(ms) };
        standing.heard(Heard { run: RunId(run), stop, progress }, patience)
    }

    fn away() -> Option<Stop> {
        Some(Stop::Unavailable(Later { failure: Failure::new("refused", "no"), after_ms: None }))
    }

    #[test]
    fn it_is_asked_again_with_one_run_after_growing_waits() {
        let mut standing = Standing::default();
        assert_eq!(hear(&mut standing, 1, 0, away()), Change::Waits(Duration::from_secs(1)));
        assert_eq!(hear(&mut standing, 2, 0, away()), Change::None, "a second run in hand is no news");
        assert_eq!(standing.wake(Duration::from_millis(999)), Change::None);
        assert_eq!(standing.wake(Duration::from_secs(1)), Change::Resumed);
        assert!(standing.admits_run());
        standing.began(RunId(3));
        assert!(!standing.admits_run());
        assert_eq!(hear(&mut standing, 3, 1_000, away()), Change::Waits(Duration::from_secs(3)));
        standing.wake(Duration::from_secs(3));
        standing.began(RunId(4));
        assert_eq!(hear(&mut standing, 4, 3_000, None), Change::Resumed);
        assert_eq!(hear(&mut standing, 5, 4_000, away()), Change::Waits(Duration::from_secs(5)));
    }

    fn run_away(standing: &mut Standing) {
        standing.ran_away(MessageId(7), &Failure::new("fuel", "no fuel is left"));
    }

    #[test]
    fn three_runaways_in_a_row_stop_it_and_resume_starts_it_again() {
        let mut standing = Standing::default();
        run_away(&mut standing);
        run_away(&mut standing);
        standing.worked();
        (0..2).for_each(|_| run_away(&mut standing));
        assert_eq!(hear(&mut standing, 1, 0, None), Change::None);
        run_away(&mut standing);
        assert_eq!(hear(&mut standing, 1, 0, None), Change::Stopped);
        assert!(!standing.is_active());
        let Some(News::Stopped(why)) = standing.news(Change::Stopped) else { panic!("it says why") };
        assert!(why.text.ends_with("the last with message 7: no fuel is left"), "{}", why.text);
        assert_eq!(standing.resume(), Change::Resumed);
        assert_eq!(hear(&mut standing, 1, 0, None), Change::None);
    }

    #[test]
    fn a_paused_destination_begins_nothing_whatever_it_hears_until_it_is_resumed() {
        let pause = |reason: &str| Pause { since: Timestamp(7), author: "ann".into(), reason: reason.into() };
        let mut standing = Standing::new(Some(pause("before")));
        assert!(!standing.is_active() && !standing.admits_run());
        assert_eq!(standing.resume(), Change::Resumed);
        assert_eq!(standing.pause(pause("first")), Change::Paused);
        assert_eq!(hear(&mut standing, 1, 0, away()), Change::Waits(Duration::from_secs(1)));
        assert_eq!(standing.wake(Duration::from_secs(1)), Change::Resumed);
        assert!(!standing.is_active() && !standing.admits_run(), "not even to ask whether it is back");
        standing.pause(pause("second"));
        let state = standing.state(&moment(0));
        assert!(matches!(state, DestinationState::Paused(pause) if pause.reason == "second"));
        assert_eq!(standing.resume(), Change::Resumed);
        assert!(standing.is_active() && standing.admits_run());
        assert_eq!(standing.resume(), Change::None);
    }

    #[test]
    fn a_stopped_destination_keeps_its_reason_and_is_not_started_by_a_late_report() {
        let mut standing = Standing::default();
        standing.stop(Failure::new("first", ""), Timestamp(0));
        hear(&mut standing, 1, 0, Some(Stop::Misconfigured(Failure::new("second", ""))));
        assert_eq!(hear(&mut standing, 1, 0, None), Change::None);
        let state = standing.state(&moment(0));
        assert!(matches!(state, DestinationState::Stopped { why, .. } if why.code == "first"));
    }
}
