//! Retention: how long messages are kept, and how one retention gives way to another.
//!
//! Pure: what is stored of it, and which messages go, is the store's.

use std::fmt;
use std::time::Duration;

use crate::Timestamp;

/// How long an interface keeps its messages. Windows are whole weeks: a store that keeps messages in
/// partitions drops them whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    OneWeek,
    ThreeWeeks,
    #[default]
    SevenWeeks,
}

impl Tier {
    /// Every tier, the shortest first.
    pub const ALL: [Tier; 3] = [Tier::OneWeek, Tier::ThreeWeeks, Tier::SevenWeeks];
    /// What nobody said anything about is kept for so long.
    pub const LONGEST: Tier = Tier::SevenWeeks;
    /// Where stores with partitions keep what is needed beyond its window. No message is born there.
    pub const HELD_NUMBER: u8 = 0;

    /// As stored: its days.
    pub const fn number(self) -> u8 {
        match self {
            Tier::OneWeek => 7,
            Tier::ThreeWeeks => 21,
            Tier::SevenWeeks => 49,
        }
    }

    /// None: of a newer binary, or [`Tier::HELD_NUMBER`].
    pub fn from_number(number: u8) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.number() == number)
    }

    /// How old a message becomes.
    pub const fn window(self) -> Duration {
        Duration::from_secs(self.number() as u64 * 86_400)
    }

    /// As it is written in a project.
    pub const fn as_str(self) -> &'static str {
        match self {
            Tier::OneWeek => "1w",
            Tier::ThreeWeeks => "3w",
            Tier::SevenWeeks => "7w",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What becomes of a quarantined message that is older than its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quarantined {
    /// It stays until a person decides.
    #[default]
    Keep,
    /// It goes with the rest.
    Purge,
}

impl Quarantined {
    /// As stored.
    pub const fn number(self) -> u8 {
        match self {
            Quarantined::Keep => 0,
            Quarantined::Purge => 1,
        }
    }

    /// None: of a newer binary.
    pub fn from_number(number: u8) -> Option<Quarantined> {
        [Quarantined::Keep, Quarantined::Purge].into_iter().find(|one| one.number() == number)
    }

    /// As it is written in a project.
    pub const fn as_str(self) -> &'static str {
        match self {
            Quarantined::Keep => "keep",
            Quarantined::Purge => "purge",
        }
    }
}

/// What an interface says of its old messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Retention {
    pub tier: Tier,
    pub quarantined: Quarantined,
}

impl Retention {
    /// Whether there are messages that this lets go and `other` keeps.
    pub fn removes_more_than(self, other: Retention) -> bool {
        let purges = self.quarantined == Quarantined::Purge && other.quarantined == Quarantined::Keep;
        self.tier < other.tier || purges
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quarantined {
            Quarantined::Keep => write!(f, "{}", self.tier),
            Quarantined::Purge => write!(f, "{}, quarantined messages too", self.tier),
        }
    }
}

/// The retention of an interface: what its messages have, what they are getting, and what waits.
///
/// One change runs at a time. What would remove messages waits for a confirmation, and until then
/// the one that keeps more is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionState {
    /// What every message had before the change that runs.
    pub applied: Retention,
    pub change: Option<RetentionChange>,
    pub waiting: Option<WaitingRetention>,
}

/// A change that runs: new messages have the new retention, old ones are getting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionChange {
    pub to: Retention,
    pub since: Timestamp,
}

/// A retention that is configured and not in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingRetention {
    pub to: Retention,
    pub since: Timestamp,
    /// An operator agreed; it waits for the change that runs.
    pub is_confirmed: bool,
}

/// What a confirmation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The change runs now.
    Begun,
    /// It begins when the change that runs is over.
    Noted,
    /// Nothing waits for one.
    NothingWaits,
}

impl RetentionState {
    /// An interface that has no messages yet.
    pub fn new(retention: Retention) -> RetentionState {
        RetentionState { applied: retention, change: None, waiting: None }
    }

    /// What new messages get, and what decides which messages are old.
    pub fn in_force(&self) -> Retention {
        self.change.map_or(self.applied, |change| change.to)
    }

    /// What waits until an operator agrees.
    pub fn unconfirmed(&self) -> Option<WaitingRetention> {
        self.waiting.filter(|waiting| !waiting.is_confirmed && waiting.to.removes_more_than(self.in_force()))
    }

    /// The project says what it wants; said again, nothing happens.
    pub fn want(&mut self, wanted: Retention, now: Timestamp) {
        if wanted == self.in_force() {
            self.waiting = None;
        } else if self.waiting.is_none_or(|waiting| waiting.to != wanted) {
            self.waiting = Some(WaitingRetention { to: wanted, since: now, is_confirmed: false });
        }
        self.begin(now);
    }

    /// An operator agrees to what waits.
    pub fn confirm(&mut self, now: Timestamp) -> Confirmation {
        if self.unconfirmed().is_none() {
            return Confirmation::NothingWaits;
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.is_confirmed = true;
        }
        self.begin(now);
        if self.waiting.is_none() { Confirmation::Begun } else { Confirmation::Noted }
    }

    /// Every message has what the change wanted; the next one may begin.
    pub fn finish(&mut self, now: Timestamp) {
        if let Some(change) = self.change.take() {
            self.applied = change.to;
        }
        self.begin(now);
    }

    /// Begins what waits, if it may.
    fn begin(&mut self, now: Timestamp) {
        let may_begin = self.change.is_none() && self.unconfirmed().is_none();
        if let Some(waiting) = self.waiting.take_if(|_| may_begin)
            && waiting.to != self.applied
        {
            self.change = Some(RetentionChange { to: waiting.to, since: now });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn retention(tier: Tier) -> Retention {
        Retention { tier, quarantined: Quarantined::Keep }
    }

    const WEEK: Retention = Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep };
    const PURGING: Retention = Retention { tier: Tier::SevenWeeks, quarantined: Quarantined::Purge };

    #[test]
    fn a_tier_is_its_number_of_days() {
        let numbers = Tier::ALL.map(Tier::number);
        assert_eq!(numbers, [7, 21, 49]);
        assert_eq!(numbers.map(Tier::from_number), Tier::ALL.map(Some));
        assert_eq!(Tier::from_number(Tier::HELD_NUMBER), None);
        assert_eq!(Tier::OneWeek.window(), Duration::from_secs(7 * 86_400));
        assert!(Tier::ALL.is_sorted(), "a longer one is larger");
    }

    #[test]
    fn a_longer_retention_is_in_force_at_once() {
        let mut state = RetentionState::new(WEEK);
        state.want(retention(Tier::ThreeWeeks), Timestamp(5));
        assert_eq!(state.in_force().tier, Tier::ThreeWeeks);
        assert_eq!(state.change.map(|change| change.since), Some(Timestamp(5)));
        assert_eq!(state.confirm(Timestamp(6)), Confirmation::NothingWaits);
        state.finish(Timestamp(7));
        assert_eq!(state, RetentionState::new(retention(Tier::ThreeWeeks)));
    }

    #[test]
    fn a_shorter_retention_waits_until_it_is_confirmed() {
        for wanted in [WEEK, PURGING] {
            let mut state = RetentionState::default();
            state.want(wanted, Timestamp(5));
            state.want(wanted, Timestamp(6));
            assert_eq!(state.in_force(), Retention::default());
            assert_eq!(state.unconfirmed().map(|waiting| waiting.since), Some(Timestamp(5)));
            assert_eq!(state.confirm(Timestamp(7)), Confirmation::Begun);
            assert_eq!(state.in_force(), wanted);
            state.finish(Timestamp(8));
            assert_eq!(state, RetentionState::new(wanted));
        }
    }

    #[test]
    fn what_is_taken_back_waits_no_more() {
        let mut state = RetentionState::default();
        state.want(WEEK, Timestamp(5));
        state.want(Retention::default(), Timestamp(6));
        assert_eq!(state, RetentionState::default());
    }

    #[test]
    fn one_change_runs_at_a_time() {
        let mut state = RetentionState::new(WEEK);
        state.want(retention(Tier::SevenWeeks), Timestamp(1));
        state.want(retention(Tier::ThreeWeeks), Timestamp(2));
        assert_eq!(state.in_force().tier, Tier::SevenWeeks, "the first goes on");
        assert_eq!(state.confirm(Timestamp(3)), Confirmation::Noted);
        state.finish(Timestamp(4));
        assert_eq!(state.applied.tier, Tier::SevenWeeks);
        assert_eq!(state.in_force().tier, Tier::ThreeWeeks, "what was confirmed meanwhile follows");
    }

    #[test]
    fn another_value_replaces_what_waits_and_needs_its_own_confirmation() {
        let mut state = RetentionState::new(WEEK);
        state.want(retention(Tier::SevenWeeks), Timestamp(1));
        state.want(retention(Tier::ThreeWeeks), Timestamp(2));
        state.confirm(Timestamp(3));
        state.want(WEEK, Timestamp(4));
        state.finish(Timestamp(5));
        assert_eq!(state.in_force().tier, Tier::SevenWeeks);
        assert_eq!(state.unconfirmed().map(|waiting| waiting.to), Some(WEEK));
    }

    fn any_retention() -> impl Strategy<Value = Retention> {
        let tier = prop::sample::select(Tier::ALL.to_vec());
        let quarantined = prop::sample::select(vec![Quarantined::Keep, Quarantined::Purge]);
        (tier, quarantined).prop_map(|(tier, quarantined)| Retention { tier, quarantined })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Want(Retention),
        Confirm,
        Finish,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![any_retention().prop_map(Step::Want), Just(Step::Confirm), Just(Step::Finish)]
    }

    proptest! {
        /// Nothing is removed that nobody agreed to, and in the end there is what was wanted last.
        #[test]
        fn only_a_confirmation_removes_more(first in any_retention(), steps in prop::collection::vec(step(), 0..30)) {
            let mut state = RetentionState::new(first);
            let mut wanted = first;
            let mut agreed: Option<Retention> = None;
            for (time, step) in steps.into_iter().enumerate() {
                let now = Timestamp(time as u64);
                let before = state;
                match step {
                    Step::Want(retention) => {
                        if retention != wanted {
                            agreed = None;
                        }
                        wanted = retention;
                        state.want(retention, now);
                    }
                    Step::Confirm => {
                        agreed = state.unconfirmed().map(|waiting| waiting.to).or(agreed);
                        state.confirm(now);
                    }
                    Step::Finish => state.finish(now),
                }
                let (was, is) = (before.in_force(), state.in_force());
                prop_assert!(!is.removes_more_than(was) || agreed == Some(is), "{before:?} became {state:?}");
                prop_assert!(before.change.is_none() || state.change == before.change || state.applied == was);
                let last = state.waiting.map_or(state.in_force(), |waiting| waiting.to);
                prop_assert_eq!(last, wanted);
            }
            for time in 100..104 {
                state.confirm(Timestamp(time));
                state.finish(Timestamp(time));
            }
            prop_assert_eq!(state, RetentionState::new(wanted));
        }
    }
}
