//! How a run begins: which lane's turn it is, how many deliveries, and what they may cost.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_model::{AttemptNo, DestinationId, Envelope, Guarantee, Lane, MessageId, Order, Round};
use portway_store::{StoredMessage, Suspect};

use super::budget::{Budget, Loan, RUN_BYTES_MAX};
use super::destination::Destination;
use super::rate::Admission;
use super::reader::For;
use super::record::Records;
use super::stream::Hint;
use super::{Ctx, Desk, SUSPECTED_MAX};
use crate::completer::Origin;
use crate::event::{Effect, Read, RunId};
use crate::layout::Place;
use crate::ports::Run;
use crate::time::Moment;

/// A run in hand.
#[derive(Debug)]
pub(crate) struct RunState {
    pub id: RunId,
    pub place: Place,
    pub destination: DestinationId,
    pub lane: Lane,
    pub origin: Origin,
    pub hints: Vec<Hint>,
    pub singly: bool,
    /// It may have ended the last process: all of it is recorded before it is tried.
    pub suspected: bool,
    pub hold_on_quarantine: bool,
    pub guarantee: Guarantee,
    /// Records of its deliveries that are not stored yet.
    pub unrecorded: usize,
    /// It tells whether its destination is back.
    pub is_probe: bool,
    /// Its destination's rate is used up, and drops what is beyond it.
    pub is_over_rate: bool,
    /// It was handed over: nothing can be taken out of it any more.
    pub is_out: bool,
    pub loan: Loan,
    /// When it was handed to `Deliver`.
    pub began: Moment,
}

/// Whether a run may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Now,
    /// Too many results are not flushed.
    AfterFlush,
    /// Its rate is used up until then.
    AtTime(Duration),
    No,
}

/// Whether a run began.
#[derive(Debug)]
pub(crate) enum Pick {
    Run(RunState),
    /// Its bodies do not fit in memory now.
    NoBytes,
    Nothing,
}

impl Destination {
    /// Whether a run may begin.
    pub fn start(&self, ctx: &Ctx<'_>) -> Start {
        let has_work = self.is_active() && !self.ready.is_empty();
        if !has_work || self.runs >= self.settings.concurrency || !self.standing.admits_run() {
            return Start::No;
        }
        // A run of the last few that fit would cost as much as a whole one.
        let worth = self.run_max(ctx).min(ctx.completer.unflushed_max() as usize / 8).max(1);
        if self.results_room(ctx) < worth {
            return Start::AfterFlush;
        }
        match self.admission(ctx) {
            Some(Admission::Wait(until)) => Start::AtTime(until),
            Some(Admission::Some(_) | Admission::Drop) | None => Start::Now,
        }
    }

    /// What its rate allows now; none: everything.
    fn admission(&self, ctx: &Ctx<'_>) -> Option<Admission> {
        self.rate.as_ref().map(|rate| rate.admits(ctx.at.monotonic))
    }

    /// The most deliveries in the next run.
    fn count_max(&self, ctx: &Ctx<'_>) -> usize {
        let count_max = self.results_room(ctx).min(self.run_max(ctx));
        match self.admission(ctx) {
            Some(Admission::Some(tokens)) => count_max.min(tokens as usize),
            Some(Admission::Wait(_)) => 0,
            // What is dropped needs no tokens.
            Some(Admission::Drop) | None => count_max,
        }
    }

    /// How many more deliveries may be in hand, so that no more than the limit can be unflushed.
    fn results_room(&self, ctx: &Ctx<'_>) -> usize {
        ctx.completer.room(self.place).saturating_sub(self.in_hand) as usize
    }

    /// Deliveries in a run: a share of what may be unflushed, so that a run that hangs leaves room
    /// for others, and one may be sent while the results of another are flushed.
    fn run_max(&self, ctx: &Ctx<'_>) -> usize {
        let shares = match self.settings.order {
            Order::Strict => 2,
            Order::Key | Order::None => self.settings.concurrency.max(2),
        };
        let share = ctx.completer.unflushed_max() / shares;
        self.settings.run_max.min(share).max(1) as usize
    }

    /// Takes the deliveries of the next run out of the lane whose turn it is.
    pub fn pick(&mut self, id: RunId, desk: &mut Desk, ctx: &mut Ctx<'_>) -> Pick {
        for _ in 0..self.ready.len() {
            let Some(no) = self.ready.pop_front() else { break };
            let picked = if no.is_ordered() {
                self.pick_lane(no, id, desk, ctx)
            } else {
                self.pick_apart(id, desk, ctx)
            };
            match picked {
                Pick::NoBytes => {
                    self.ready.push_front(no);
                    return Pick::NoBytes;
                }
                Pick::Run(mut run) => {
                    run.is_over_rate = self.admission(ctx) == Some(Admission::Drop);
                    if let Some(rate) = self.rate.as_mut().filter(|_| !run.is_over_rate) {
                        rate.take(run.hints.len(), ctx.at.monotonic);
                    }
                    self.review(no, desk, ctx);
                    self.runs += 1;
                    self.in_hand += u32::try_from(run.hints.len()).unwrap_or(u32::MAX);
                    self.standing.began(id);
                    return Pick::Run(run);
                }
                Pick::Nothing => self.review(no, desk, ctx),
            }
        }
        Pick::Nothing
    }

    fn pick_lane(&mut self, no: Lane, id: RunId, desk: &mut Desk, ctx: &mut Ctx<'_>) -> Pick {
        let (count_max, is_probing) = (self.count_max(ctx), self.standing.is_probing());
        let Some(lane) = self.lanes.get_mut(&no) else { return Pick::Nothing };
        if !lane.is_ready() {
            lane.listed = false;
            return Pick::Nothing;
        }
        let count_max = careful(count_max, lane.careful, is_probing);
        let count = lane.runnable(ctx.at.steady, count_max, &self.were_in_hand);
        let fit = fit(lane.stream.iter().take(count), &desk.budget);
        if fit.count == 0 {
            lane.listed = false;
            return Pick::Nothing;
        }
        let Some(loan) = desk.budget.borrow(fit.read_bytes, fit.count) else { return Pick::NoBytes };
        lane.listed = false;
        lane.run = Some(id);
        let was_in_hand = lane.stream.front().is_some_and(|head| self.were_in_hand.contains(&head.message));
        let (suspected, singly) = (lane.careful > 0 || was_in_hand, lane.runs_singly(&self.were_in_hand));
        let before = lane.stream.len();
        let hints = lane.stream.take(fit.count);
        desk.budget.count(before, lane.stream.len());
        Pick::Run(self.run(no, Origin::Queue, Taken { id, hints, singly, suspected, loan }, ctx))
    }

    fn pick_apart(&mut self, id: RunId, desk: &mut Desk, ctx: &mut Ctx<'_>) -> Pick {
        if !self.apart.is_ready() {
            self.apart.listed = false;
            return Pick::Nothing;
        }
        let origin = self.apart.next_origin();
        let careful_max = *self.apart.careful(origin);
        let count_max = careful(self.count_max(ctx), careful_max, self.standing.is_probing());
        // What is recorded already is tried by itself, however many others came before it.
        let goes_alone = |hint: &Hint| hint.goes_alone(&self.were_in_hand);
        let first = self.apart.iter(origin).next();
        let suspected =
            careful_max > 0 || first.is_some_and(|hint| self.were_in_hand.contains(&hint.message));
        let singly = self.apart.singly > 0 || first.is_some_and(goes_alone);
        let others =
            self.apart.iter(origin).take(count_max).skip(1).take_while(|hint| !goes_alone(hint)).count();
        let count_max = if singly { 1 } else { count_max.min(1 + others) };
        let fit = fit(self.apart.iter(origin).take(count_max), &desk.budget);
        let Some(loan) = desk.budget.borrow(fit.read_bytes, fit.count) else { return Pick::NoBytes };
        self.apart.listed = false;
        let mut hints = Vec::new();
        self.count_apart(desk, |apart| hints = apart.take(origin, fit.count));
        Pick::Run(self.run(Lane::APART, origin, Taken { id, hints, singly, suspected, loan }, ctx))
    }

    fn run(&self, lane: Lane, origin: Origin, taken: Taken, ctx: &Ctx<'_>) -> RunState {
        RunState {
            id: taken.id,
            place: self.place,
            destination: self.settings.id,
            lane,
            origin,
            hints: taken.hints,
            singly: taken.singly,
            suspected: taken.suspected,
            hold_on_quarantine: self.holds(),
            guarantee: self.settings.guarantee,
            unrecorded: 0,
            is_probe: false,
            is_over_rate: false,
            is_out: false,
            loan: taken.loan,
            began: ctx.at,
        }
    }
}

/// How many of a queue may go together, whose first few may have ended the last process: those with no other,
/// and one of them where it is not known whether the destination takes it.
fn careful(count_max: usize, careful: u32, is_probing: bool) -> usize {
    match careful {
        0 => count_max,
        _ if is_probing => count_max.min(1),
        _ => count_max.min(careful as usize),
    }
}

struct Taken {
    id: RunId,
    hints: Vec<Hint>,
    singly: bool,
    suspected: bool,
    loan: Loan,
}

/// How much of a queue one run takes.
#[derive(Debug, PartialEq, Eq)]
struct Fit {
    count: usize,
    read_bytes: usize,
}

/// At least one delivery, within the bytes of a run and of the budget.
fn fit<'a>(hints: impl Iterator<Item = &'a Hint>, budget: &Budget) -> Fit {
    let read_max = budget.run_bytes();
    let (mut fit, mut total) = (Fit { count: 0, read_bytes: 0 }, 0_usize);
    for hint in hints {
        let bytes = usize::try_from(hint.body_bytes).unwrap_or(usize::MAX);
        let read = if hint.carried.is_some() { 0 } else { bytes };
        let fits =
            total.saturating_add(bytes) <= RUN_BYTES_MAX && fit.read_bytes.saturating_add(read) <= read_max;
        if fit.count > 0 && !fits {
            break;
        }
        total = total.saturating_add(bytes);
        fit = Fit { count: fit.count + 1, read_bytes: fit.read_bytes.saturating_add(read) };
        if !fits {
            break;
        }
    }
    fit
}

/// What a run needs next.
pub(crate) enum Step {
    Record(Vec<Suspect>),
    Read(For, Read),
    Deliver(Effect),
}

impl RunState {
    /// The first step, where it has to be recorded before it is tried: what is suspect, and all that
    /// may not be sent twice. A suspect that this process recorded already did not end it since.
    pub fn first_step(&mut self, records: &Records, ctx: &Ctx<'_>) -> Step {
        let is_once = self.guarantee == Guarantee::AtMostOnce;
        if self.suspected && !is_once {
            for hint in self.hints.iter_mut().filter(|hint| hint.recorded == 0) {
                hint.recorded = records.count(self.destination, hint.message);
            }
        }
        let unrecorded = self.hints.iter().filter(|hint| (self.suspected || is_once) && hint.recorded == 0);
        let suspect = |hint: &Hint| Suspect { destination: self.destination, message: hint.message };
        let suspects: Vec<Suspect> = unrecorded.map(suspect).collect();
        self.unrecorded = suspects.len();
        if suspects.is_empty() { self.next_step(ctx) } else { Step::Record(suspects) }
    }

    /// A delivery is recorded, for the `count`th time; whether all are.
    pub fn recorded(&mut self, message: MessageId, count: u32) -> bool {
        if let Some(hint) = self.hints.iter_mut().find(|hint| hint.message == message) {
            hint.recorded = count;
        }
        self.unrecorded = self.unrecorded.saturating_sub(1);
        self.unrecorded == 0
    }

    /// How often a delivery is recorded before it is given up.
    pub fn recorded_max(&self) -> u32 {
        match self.guarantee {
            Guarantee::AtMostOnce => 2,
            Guarantee::AtLeastOnce => SUSPECTED_MAX + 1,
        }
    }

    /// Reads the bodies, if any is missing; else delivers.
    pub fn next_step(&mut self, ctx: &Ctx<'_>) -> Step {
        let missing = self.hints.iter().filter(|hint| hint.carried.is_none()).map(|hint| hint.message);
        let missing: Vec<_> = missing.collect();
        if missing.is_empty() {
            return Step::Deliver(self.deliver(Vec::new(), ctx));
        }
        Step::Read(For::Bodies(self.id), Read::Messages(missing))
    }

    /// An operator changed a delivery: what it was before a round is taken out, or nothing counts
    /// that comes of it. Gives back what was taken out.
    pub fn remove(&mut self, message: MessageId, before: Round) -> Vec<Hint> {
        if self.is_out {
            let changed = self.hints.iter_mut().filter(|hint| hint.is_of(message, before));
            changed.for_each(|hint| hint.is_void = true);
            return Vec::new();
        }
        self.hints.extract_if(.., |hint| hint.is_of(message, before)).collect()
    }

    /// Cuts the run before the first message that is neither kept nor read; what was cut off.
    pub fn cut_missing(&mut self, read: &[StoredMessage]) -> Vec<Hint> {
        let is_there =
            |hint: &Hint| hint.carried.is_some() || read.iter().any(|message| message.id == hint.message);
        let there = self.hints.iter().take_while(|hint| is_there(hint)).count();
        self.hints.split_off(there)
    }

    /// Hands it over. `read` has what the hints do not carry.
    pub fn deliver(&mut self, read: Vec<StoredMessage>, ctx: &Ctx<'_>) -> Effect {
        (self.began, self.is_out) = (ctx.at, true);
        let mut read = read.into_iter().map(|message| (message.id, message)).collect::<BTreeMap<_, _>>();
        let mut messages = Vec::with_capacity(self.hints.len());
        for hint in &self.hints {
            let envelope = match &hint.carried {
                Some(carried) => Some(carried.envelope.clone()),
                None => read.remove(&hint.message).map(into_envelope),
            };
            messages.extend(envelope.map(|envelope| Envelope { attempt: hint.attempts.next(), ..envelope }));
        }
        let run = Run {
            destination: self.destination,
            ordered: self.lane.is_ordered(),
            singly: self.singly,
            hold_on_quarantine: self.hold_on_quarantine,
            guarantee: self.guarantee,
            messages,
        };
        Effect::Deliver { id: self.id, run }
    }
}

fn into_envelope(message: StoredMessage) -> Envelope {
    Envelope {
        id: message.id,
        received_at: message.received_at,
        attempt: AttemptNo(1),
        key: message.key,
        attributes: message.attributes,
        body: message.body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;

    fn hints(sizes: &[u64]) -> Vec<Hint> {
        let hint = |(n, bytes): (usize, &u64)| Hint {
            message: MessageId(n as u64),
            round: Round(0),
            attempts: AttemptNo(0),
            body_bytes: *bytes,
            due_at: None,
            recorded: 0,
            is_void: false,
            carried: None,
        };
        sizes.iter().enumerate().map(hint).collect()
    }

    fn fit_of(sizes: &[u64], waiting_bytes_max: usize) -> (usize, usize) {
        let budget = Budget::new(&Limits { waiting_bytes_max, ..Limits::default() });
        let fit = fit(hints(sizes).iter(), &budget);
        (fit.count, fit.read_bytes)
    }

    #[test]
    fn a_run_takes_what_fits_and_at_least_one() {
        const MIB: u64 = 1 << 20;
        assert_eq!(fit_of(&[1, 2, 3], 64 << 20), (3, 6));
        assert_eq!(fit_of(&[3 * MIB, MIB, 1], 64 << 20), (2, 4 << 20));
        assert_eq!(fit_of(&[9 * MIB, 1], 64 << 20), (1, 9 << 20));
        assert_eq!(fit_of(&[1, 9 * MIB], 64 << 20), (1, 1));
        assert_eq!(fit_of(&[100, 100], 100), (1, 100));
    }
}
