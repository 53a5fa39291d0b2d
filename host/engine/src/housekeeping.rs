//! Housekeeping of the store: checkpoints and the look at free space, which its writer does between batches,
//! and messages that are old or get another retention.
//!
//! Old messages are worked at in steps, beside the writer where the store can. Between two steps there is a
//! pause for at least as long as the last one took.

use std::time::Duration;

use portway_model::{InterfaceId, Timestamp};
use portway_store::{Expired, Expiry, Maintenance, MoveRetention, Moved};

use crate::age::AgeClock;
use crate::event::Effect;
use crate::retention::Retentions;
use crate::time::Moment;

/// Between looks at the store while it is written to or full.
const MAINTAIN_BUSY: Duration = Duration::from_secs(1);
/// Between looks at the store while nothing happens.
const MAINTAIN_IDLE: Duration = Duration::from_secs(10);
/// How long a look may hold up the next batch.
const FREE_WAIT: Duration = Duration::from_millis(20);
/// Messages removed or moved in one step.
const STEP_MESSAGES: u32 = 256;
/// Between two steps, at least.
const STEP_PAUSE: Duration = Duration::from_millis(10);
/// And at most: a step that took longer was held up.
const STEP_PAUSE_MAX: Duration = Duration::from_secs(10);
/// A pass over all interfaces is followed by a pause so many times as long as it worked.
const PASS_REST: u32 = 20;
/// And at most.
const PASS_REST_MAX: Duration = Duration::from_secs(3_600);
/// Before a step that failed is taken again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Before a step is taken again in whose way others were.
const OTHERS_AFTER: Duration = Duration::from_secs(1);

/// See the file.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    maintain_at: Duration,
    maintained_at: Duration,
    /// Pause between passes of expiry; zero: there are none.
    expire_every: Duration,
    /// The next step of a pass.
    expire_at: Duration,
    /// How long this pass has worked.
    pass_took: Duration,
    /// Old messages are left alone until then.
    rest_until: Duration,
    step: Option<Step>,
    /// The last step was one of a change: an old message's turn comes first.
    was_move: bool,
    pub age: AgeClock,
    pub last: Maintenance,
    /// Messages removed because they were old.
    pub expired: u64,
}

/// The step in hand.
#[derive(Clone, Copy, Debug)]
struct Step {
    began: Duration,
    /// Whose change it is of.
    interface: Option<InterfaceId>,
}

impl Housekeeping {
    pub fn new(expire_every: Duration, aged_to: Option<Timestamp>, at: &Moment) -> Self {
        let monotonic = at.monotonic;
        Housekeeping {
            // At once: whether there is room has to be known before the first message.
            maintain_at: monotonic,
            maintained_at: monotonic,
            expire_every,
            expire_at: monotonic.saturating_add(expire_every),
            pass_took: Duration::ZERO,
            rest_until: monotonic,
            step: None,
            was_move: false,
            age: AgeClock::new(aged_to, at),
            last: Maintenance::default(),
            expired: 0,
        }
    }

    /// What the writer has to do before the next batch.
    pub fn next_look(&self, at: &Moment) -> Option<Effect> {
        (self.maintain_at <= at.monotonic).then_some(Effect::Maintain { free_wait: FREE_WAIT })
    }

    /// The next step with old messages, if it is time and none is in hand.
    pub fn next_step(&mut self, retentions: &mut Retentions, at: &Moment) -> Option<Effect> {
        if self.step.is_some() || self.rest_until > at.monotonic {
            return None;
        }
        let expires = !self.expire_every.is_zero() && self.expire_at <= at.monotonic;
        let interface = if self.was_move && expires { None } else { retentions.next_step(at.monotonic) };
        if interface.is_none() && !expires {
            return None;
        }
        self.was_move = interface.is_some();
        self.step = Some(Step { began: at.monotonic, interface });
        let (age_now, limit) = (self.age.now(at), STEP_MESSAGES);
        Some(match interface {
            Some(interface) => {
                Effect::MoveRetention(MoveRetention { interface, age_now, now: at.wall, limit })
            }
            None => Effect::Expire(Expiry { now: age_now, aged_to: self.age.aged_to(), limit }),
        })
    }

    /// A step is in hand.
    pub fn is_stepping(&self) -> bool {
        self.step.is_some()
    }

    /// Something was written: the next look comes sooner.
    pub fn wrote(&mut self) {
        self.maintain_at = self.maintain_at.min(self.maintained_at + MAINTAIN_BUSY);
    }

    pub fn maintained(&mut self, found: Option<Maintenance>, at: &Moment) {
        self.maintained_at = at.monotonic;
        self.maintain_at = at.monotonic + MAINTAIN_IDLE;
        if let Some(found) = found {
            self.last = found;
        }
        if self.last.full || self.last.goes_on || found.is_none() {
            self.maintain_at = at.monotonic + MAINTAIN_BUSY;
        }
    }

    /// What a step of expiry did; none: the store could not.
    pub fn expired(&mut self, expired: Option<Expired>, at: &Moment) {
        let (_, took) = self.end_step(at);
        self.pass_took += took;
        let expired = expired.unwrap_or_default();
        self.expired += expired.messages;
        if expired.messages > 0 {
            self.wrote();
        }
        self.expire_at = at.monotonic;
        if !expired.goes_on {
            let rest = self.pass_took.saturating_mul(PASS_REST).min(PASS_REST_MAX).max(self.expire_every);
            self.expire_at = at.monotonic.saturating_add(rest);
            self.pass_took = Duration::ZERO;
        }
    }

    /// What a step of a change did; none: the store could not.
    pub fn moved(&mut self, moved: Option<&Moved>, retentions: &mut Retentions, at: &Moment) {
        if let (Some(interface), _) = self.end_step(at) {
            let pause = if moved.is_some() { OTHERS_AFTER } else { AGAIN_AFTER };
            retentions.stepped(interface, moved, at.monotonic + pause);
            self.wrote();
        }
    }

    /// Whose step it was, and how long it took.
    fn end_step(&mut self, at: &Moment) -> (Option<InterfaceId>, Duration) {
        let Some(step) = self.step.take() else { return (None, Duration::ZERO) };
        let took = at.monotonic.saturating_sub(step.began);
        self.rest_until = at.monotonic + took.clamp(STEP_PAUSE, STEP_PAUSE_MAX);
        (step.interface, took)
    }

    pub fn wake_at(&self, retentions: &Retentions) -> Duration {
        let expire_at = (!self.expire_every.is_zero()).then_some(self.expire_at);
        let step_at = [expire_at, retentions.step_at()].into_iter().flatten().min();
        step_at.map_or(self.maintain_at, |step_at| self.maintain_at.min(step_at.max(self.rest_until)))
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{Quarantined, Retention, RetentionChange, RetentionState, Tier};

    use crate::time::{Now, SteadyClock};

    use super::*;

    fn at(ran: Duration) -> Moment {
        let now = Now { wall: Timestamp(1_800_000_000_000) + ran, monotonic: ran };
        SteadyClock::new(now).moment(now)
    }

    fn changing() -> RetentionState {
        let to = Retention { tier: Tier::OneWeek, quarantined: Quarantined::Keep };
        RetentionState {
            change: Some(RetentionChange { to, since: Timestamp(0) }),
            ..RetentionState::default()
        }
    }

    #[test]
    fn old_messages_are_left_alone_for_half_of_the_time_and_both_kinds_of_work_have_their_turn() {
        let step = Duration::from_millis(30);
        let mut retentions = Retentions::new(vec![(InterfaceId(1), changing())]);
        let mut keeping = Housekeeping::new(step, None, &at(Duration::ZERO));
        let (mut now, mut busy, mut kinds) = (Duration::ZERO, Duration::ZERO, String::new());
        while now < Duration::from_secs(1) {
            if keeping.next_look(&at(now)).is_some() {
                keeping.maintained(Some(Maintenance::default()), &at(now));
            }
            match keeping.next_step(&mut retentions, &at(now)) {
                Some(Effect::Expire(_)) => {
                    kinds.push('e');
                    (now, busy) = (now + step, busy + step);
                    keeping.expired(Some(Expired { messages: 1, goes_on: true }), &at(now));
                }
                Some(Effect::MoveRetention(_)) => {
                    kinds.push('m');
                    (now, busy) = (now + step, busy + step);
                    let moved = Moved { moved: 1, removed: 0, state: changing(), goes_on: true };
                    keeping.moved(Some(&moved), &mut retentions, &at(now));
                }
                None => now = keeping.wake_at(&retentions),
                other => panic!("{other:?}"),
            }
        }
        assert!(busy * 2 <= now + step, "{busy:?} of {now:?}");
        assert!(kinds.contains("emem") && !kinds.contains("mm"), "{kinds}");
    }

    #[test]
    fn a_pass_that_took_long_is_followed_by_a_long_pause() {
        let every = Duration::from_secs(60);
        let mut retentions = Retentions::default();
        let mut keeping = Housekeeping::new(every, None, &at(Duration::ZERO));
        assert!(matches!(keeping.next_step(&mut retentions, &at(every)), Some(Effect::Expire(_))));
        let took = Duration::from_secs(5);
        assert!(keeping.next_step(&mut retentions, &at(every + took)).is_none(), "one is in hand");
        keeping.expired(Some(Expired::default()), &at(every + took));
        let next = at(every + took + Duration::from_secs(99));
        assert!(keeping.next_step(&mut retentions, &next).is_none());
        let next = at(every + took + Duration::from_secs(100));
        assert!(matches!(keeping.next_step(&mut retentions, &next), Some(Effect::Expire(_))));
    }

    #[test]
    fn a_step_that_only_looked_is_followed_by_the_next_and_one_in_whose_way_others_were_waits_a_little() {
        let mut retentions = Retentions::new(vec![(InterfaceId(1), changing())]);
        let mut keeping = Housekeeping::new(Duration::ZERO, None, &at(Duration::ZERO));
        let mut now = Duration::ZERO;
        let mut pause_after = |moved: Option<Moved>| {
            assert!(matches!(keeping.next_step(&mut retentions, &at(now)), Some(Effect::MoveRetention(_))));
            keeping.maintained(Some(Maintenance::default()), &at(now));
            keeping.moved(moved.as_ref(), &mut retentions, &at(now));
            keeping.maintain_at = Duration::MAX;
            let began = std::mem::replace(&mut now, keeping.wake_at(&retentions));
            now - began
        };
        let only_looked = Moved { goes_on: true, ..Moved::nothing(changing()) };
        assert_eq!(pause_after(Some(only_looked)), STEP_PAUSE);
        assert_eq!(pause_after(Some(Moved::nothing(changing()))), OTHERS_AFTER);
        assert_eq!(pause_after(None), AGAIN_AFTER);
    }
}
