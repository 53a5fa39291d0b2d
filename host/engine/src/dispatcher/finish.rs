//! How a run ends: what its report makes of each delivery, of the lane and of the destination;
//! and what follows when a result is written.

use std::time::Duration;

use portway_model::{Failure, Lane, Later, MessageId, code};
use portway_store::{Attempted, DeliveryResult, Settled};
use rand::RngExt;

use super::destination::Destination;
use super::lane::Blocked;
use super::pick::RunState;
use super::report::{self, Kept, Meaning, Reader, ReportedKept, Rules};
use super::standing::{Heard, Patience};
use super::stream::Hint;
use super::timers::Timer;
use super::{Ctx, Desk};
use crate::completer::{Finished, Origin};
use crate::event::RunId;
use crate::fact::Fact;
use crate::ports::{RunReport, Stop, Verdict};

/// What of a run is not done.
#[derive(Default)]
struct Left {
    /// Goes back where it came from.
    hints: Vec<Hint>,
    /// The head of an ordered lane waits for its retry, and why.
    waits: Option<Failure>,
    /// So many were tried and came to something.
    settled: u32,
    /// So many left their queue.
    passed: u32,
}

impl Destination {
    /// Takes in a report. The run is over.
    pub fn finish(&mut self, run: RunState, report: RunReport, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let RunState { id, lane: no, origin, hints, singly, suspected, began, .. } = run;
        let count = u32::try_from(hints.len()).unwrap_or(u32::MAX);
        self.runs = self.runs.saturating_sub(1);
        self.in_hand = self.in_hand.saturating_sub(count);
        let rules = Rules {
            ordered: no.is_ordered(),
            hold_on_quarantine: self.holds(),
            guarantee: self.settings.guarantee,
        };
        let reading = report::read(report.verdicts, hints.len(), rules);
        self.counts.lies += u64::from(reading.lie.is_some());
        let attempted =
            Attempted { started_at: began.wall, took: ctx.at.monotonic.saturating_sub(began.monotonic) };
        let mut left = Left::default();
        if let Some(rate) = &mut self.rate {
            let is_unsent = |verdict: &&Verdict| matches!(verdict, Verdict::Untried | Verdict::Filtered(_));
            rate.give_back(reading.verdicts.iter().filter(is_unsent).count());
        }
        let mut kept = ReportedKept { state: report.state, outputs: report.outputs };
        for (index, (hint, verdict)) in hints.into_iter().zip(reading.verdicts).enumerate() {
            let meaning = self.meaning(&hint, no, verdict, desk, ctx);
            let kept = kept.take(index);
            let entry = Entry { no, origin, hint, attempted, kept };
            self.settle(entry, meaning, &mut left, ctx);
        }
        self.count_down(no, origin, suspected, &left);
        let is_progress = left.settled > 0;
        let goes_singly = report.go_singly && !singly;
        if report.go_singly {
            self.go_singly(no, count);
        }
        self.put_back(id, no, origin, left, desk, ctx);
        let stop = report.stop.or_else(|| {
            let why =
                reading.lie.or((!is_progress && !goes_singly).then_some("nothing of the run was tried"))?;
            let failure = Failure::new(code::BAD_REPORT, why);
            Some(Stop::Unavailable(Later { failure, after_ms: None }))
        });
        let patience = Patience { policy: &self.settings.retry, chance: desk.rng.random(), at: ctx.at };
        let change = self.standing.heard(Heard { run: id, stop, progress: is_progress }, patience);
        self.changed(change, desk, ctx);
        self.review_after(no, desk, ctx);
    }

    /// A run ends before it was handed over: nothing of it was sent, and these become of it.
    pub fn abandon(
        &mut self,
        run: RunState,
        meanings: impl Iterator<Item = Meaning>,
        desk: &mut Desk,
        ctx: &mut Ctx<'_>,
    ) {
        let RunState { id, lane: no, origin, hints, suspected, began, is_over_rate, .. } = run;
        if let Some(rate) = self.rate.as_mut().filter(|_| !is_over_rate) {
            rate.give_back(hints.len());
        }
        self.runs = self.runs.saturating_sub(1);
        self.in_hand = self.in_hand.saturating_sub(u32::try_from(hints.len()).unwrap_or(u32::MAX));
        let attempted = Attempted { started_at: began.wall, took: Duration::ZERO };
        let mut left = Left::default();
        for (hint, meaning) in hints.into_iter().zip(meanings) {
            let entry = Entry { no, origin, hint, attempted, kept: Kept::default() };
            self.settle(entry, meaning, &mut left, ctx);
        }
        self.count_down(no, origin, suspected, &left);
        self.put_back(id, no, origin, left, desk, ctx);
        self.standing.forget(id);
        self.review_after(no, desk, ctx);
    }

    fn meaning(
        &mut self,
        hint: &Hint,
        no: Lane,
        verdict: Verdict,
        desk: &mut Desk,
        ctx: &Ctx<'_>,
    ) -> Meaning {
        match &verdict {
            Verdict::Runaway(why) => self.standing.ran_away(hint.message, why),
            Verdict::Untried => {}
            Verdict::Sent(_)
            | Verdict::Route(_)
            | Verdict::Filtered(_)
            | Verdict::Quarantine(_)
            | Verdict::Retry(_) => self.standing.worked(),
        }
        let now = if no.is_ordered() { ctx.at.steady } else { self.apart.now(&ctx.at) };
        let reader = Reader {
            layout: ctx.layout,
            policy: &self.settings.retry,
            now,
            chance: desk.rng.random(),
            runaways: self.standing.runaways(),
        };
        reader.meaning(hint, verdict)
    }

    /// Hands the result over and keeps what is not done.
    fn settle(&mut self, entry: Entry, meaning: Meaning, left: &mut Left, ctx: &mut Ctx<'_>) {
        let Entry { no, origin, mut hint, attempted, mut kept } = entry;
        if hint.is_void {
            if !no.is_ordered() && origin == Origin::Due {
                self.apart.leave(hint.message, hint.round);
            }
            left.settled += u32::from(!matches!(meaning, Meaning::Untried));
            return;
        }
        let meaning = match meaning {
            // It was recorded as about to be tried, and was not: that must be forgotten. Not if it was in
            // hand at an end before: then the record stays, and it is not recorded again.
            Meaning::Untried if hint.recorded == 1 => {
                let due_at = if no.is_ordered() { ctx.at.steady } else { self.apart.now(&ctx.at) };
                let failure = Failure::new(code::NOT_TRIED, "the destination did not take it yet");
                kept = Kept::default();
                Meaning::Later { due_at, attempts: hint.attempts, failure }
            }
            Meaning::Untried => {
                left.hints.push(hint);
                return;
            }
            meaning @ (Meaning::Done(_) | Meaning::Later { .. } | Meaning::Dropped(_)) => {
                left.settled += 1;
                let stays = no.is_ordered() && matches!(meaning, Meaning::Later { .. });
                left.passed += u32::from(!stays);
                meaning
            }
        };
        if let Meaning::Later { due_at, attempts, failure } = &meaning
            && no.is_ordered()
        {
            left.waits = Some(failure.clone());
            let later = Hint {
                attempts: *attempts,
                recorded: 0,
                due_at: Some(*due_at),
                carried: hint.carried.take(),
                ..hint.clone()
            };
            left.hints.push(later);
        }
        if let Meaning::Done(Settled::Quarantined(_)) = &meaning {
            self.quarantined(no, hint.message);
        }
        let is_drop = matches!(meaning, Meaning::Dropped(_));
        self.counts.dropped += u64::from(is_drop);
        if let Some(result) =
            report::result((self.settings.id, self.epoch), &hint, (meaning, kept), attempted)
        {
            self.accept(no, (origin, is_drop), result, ctx);
        }
    }

    fn accept(
        &mut self,
        lane: Lane,
        (origin, is_drop): (Origin, bool),
        result: DeliveryResult,
        ctx: &mut Ctx<'_>,
    ) {
        let has_state = !result.state.is_empty();
        let output_bytes = result.output.as_ref().map_or(0, |output| output.bytes());
        match self.lanes.get_mut(&lane) {
            Some(state) => {
                state.unwritten += 1;
                state.dropping += u32::from(is_drop);
                state.keeping += u32::from(has_state);
            }
            None => self.apart.accepted(),
        }
        let place = self.place;
        let finished =
            Finished { place, lane, origin, result, is_drop, has_state, output_bytes, refusals: 0 };
        ctx.completer.accept(finished, ctx.at.monotonic);
    }

    /// A delivery was quarantined: its lane may have to wait for an operator.
    pub(super) fn quarantined(&mut self, no: Lane, message: MessageId) {
        if self.holds() && no.is_ordered() {
            self.outdate_held();
            self.held.unwritten.push((no, message));
            self.lane(no).hold(message);
        }
    }

    fn count_down(&mut self, no: Lane, origin: Origin, suspected: bool, left: &Left) {
        let singly = if let Some(lane) = self.lanes.get_mut(&no) {
            if suspected {
                lane.careful = lane.careful.saturating_sub(left.passed);
            }
            &mut lane.singly
        } else {
            if suspected {
                let careful = self.apart.careful(origin);
                *careful = careful.saturating_sub(left.passed);
            }
            &mut self.apart.singly
        };
        *singly = singly.saturating_sub(left.settled);
    }

    fn go_singly(&mut self, no: Lane, count: u32) {
        let singly = match self.lanes.get_mut(&no) {
            Some(lane) => &mut lane.singly,
            None => &mut self.apart.singly,
        };
        *singly = (*singly).max(count);
    }

    fn put_back(&mut self, id: RunId, no: Lane, origin: Origin, left: Left, desk: &mut Desk, ctx: &Ctx<'_>) {
        if !no.is_ordered() {
            self.count_apart(desk, |apart| apart.put_back(origin, left.hints));
            return;
        }
        let longest = self.settings.retry.longest_wait;
        let mut until = None;
        self.count_lane(no, desk, |lane| {
            if lane.run == Some(id) {
                lane.run = None;
            }
            lane.stream.put_back(left.hints);
            let head = lane.stream.front().and_then(|head| Some((head, head.due_at?)));
            if let (Some(failure), Some((head, due_at))) = (left.waits, head) {
                until = Some(ctx.at.deadline(due_at, longest));
                let blocked = Blocked {
                    message: head.message,
                    attempts: head.attempts,
                    until: ctx.at.deadline(due_at, longest),
                    reason: failure.to_string(),
                };
                lane.blocked = Some(Box::new(blocked));
            }
        });
        if let Some(until) = until {
            desk.timers.set(until, Timer::Lane(self.place, no));
        }
    }

    /// Puts back what a run cannot take along after all.
    pub fn give_up(&mut self, no: Lane, origin: Origin, hints: Vec<Hint>, desk: &mut Desk) {
        self.in_hand = self.in_hand.saturating_sub(u32::try_from(hints.len()).unwrap_or(u32::MAX));
        if no.is_ordered() {
            self.count_lane(no, desk, |lane| lane.stream.put_back(hints));
        } else {
            self.count_apart(desk, |apart| apart.put_back(origin, hints));
        }
    }

    /// A result was written and counts.
    pub fn applied(&mut self, finished: &Finished, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let counts = &mut self.counts;
        match &finished.result.settled {
            Settled::Sent(_) | Settled::Routed(_) => counts.sent += 1,
            Settled::Filtered(_) => counts.filtered += 1,
            Settled::Quarantined(why) => {
                counts.quarantined += 1;
                let (name, message) = (ctx.layout.name(self.place), finished.result.message);
                desk.facts.push(Fact::Quarantined { name, message, why: why.clone() });
            }
            Settled::Retry { .. } => counts.retried += u64::from(finished.result.attempted.is_some()),
        }
        self.written(finished, desk, ctx);
        if let Settled::Retry { due_at, .. } = finished.result.settled
            && !finished.lane.is_ordered()
        {
            self.arm(due_at, desk, ctx);
        }
    }

    /// A result was written and does not count: an operator was faster.
    pub fn stale(&mut self, finished: &Finished, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.counts.stale += 1;
        let (no, message, round) = (finished.lane, finished.result.message, finished.result.round);
        // The delivery is not what the lane may wait for any more: the store knows what is.
        self.count_lane(no, desk, |lane| {
            lane.stream.remove(message, round.next());
            lane.unblock(message);
            lane.stream.expect_more();
        });
        let was_quarantined = matches!(finished.result.settled, Settled::Quarantined(_));
        self.written(finished, desk, ctx);
        if was_quarantined && self.holds() && no.is_ordered() {
            self.read_held(desk);
        }
    }

    fn written(&mut self, finished: &Finished, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let (no, message) = (finished.lane, finished.result.message);
        if matches!(finished.result.settled, Settled::Quarantined(_)) && self.holds() && no.is_ordered() {
            self.outdate_held();
            self.held.unwritten.retain(|held| *held != (no, message));
        }
        if !no.is_ordered() {
            self.apart.wrote(message, finished.result.round, finished.origin);
            if self.apart.is_rewinding() {
                self.review(no, desk, ctx);
            }
            return;
        }
        let Some(lane) = self.lanes.get_mut(&no) else { return };
        lane.unwritten = lane.unwritten.saturating_sub(1);
        lane.dropping = lane.dropping.saturating_sub(u32::from(finished.is_drop));
        lane.keeping = lane.keeping.saturating_sub(u32::from(finished.has_state));
        if lane.unwritten == 0 || finished.is_drop || finished.has_state {
            self.review_after(no, desk, ctx);
        }
    }

    /// What is apart may wait until nothing is in hand, of any lane.
    fn review_after(&mut self, no: Lane, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.review(no, desk, ctx);
        if no.is_ordered() && self.apart.is_rewinding() {
            self.review(Lane::APART, desk, ctx);
        }
    }
}

/// A delivery of a run that is over.
struct Entry {
    no: Lane,
    origin: Origin,
    hint: Hint,
    attempted: Attempted,
    kept: Kept,
}
