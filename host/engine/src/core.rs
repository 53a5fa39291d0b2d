//! The machines as one: events in, effects out, time as an input.
//!
//! No async, no clock, no IO, no chance but the seed: the shell and the simulation drive the same
//! code. What a stored batch means is in `apply`, how the layout changes in `relayout`, whether it owns
//! what it delivers in `ownership`, how old messages go in `retention`, what the store is given to do in
//! `write`.

mod apply;
mod ownership;
mod relayout;
mod retention;
mod write;

use std::time::Duration;

use portway_model::{DestinationId, Failure, code};
use portway_store::{Action, ActionKind, ActionOutcome, DestinationAction, ErrorKind, Tenure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::apply::Unspread;
use self::ownership::Ownership;
use self::relayout::Relayout;
use crate::committer::Committer;
use crate::completer::Completer;
use crate::dispatcher::{Ctx, Dispatcher, Starts};
use crate::drain::{AfterDrain, DrainOrder, DrainStatus};
use crate::event::{ActError, Effect, EngineError, Event, Submission, Ticket, Unit};
use crate::fact::Fact;
use crate::fate::Fate;
use crate::gate::Gate;
use crate::gather::Gather;
use crate::handle::UnitMax;
use crate::housekeeping::Housekeeping;
use crate::intake::{Intake, Seat};
use crate::layout::Layout;
use crate::retention::Retentions;
use crate::settings::EngineSettings;
use crate::status::{IntakeStatus, Status};
use crate::time::{Moment, Now, SteadyClock};

/// How long results may fail to be stored before a stopping engine gives up.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// When a refused source may come again.
const BUSY_AFTER: Duration = Duration::from_secs(1);

/// See the file.
#[derive(Debug)]
pub struct Core {
    layout: Layout,
    clock: SteadyClock,
    at: Moment,
    started: Duration,
    intake: Intake,
    completer: Completer,
    committer: Committer,
    dispatcher: Dispatcher,
    housekeeping: Housekeeping,
    retentions: Retentions,
    gather: Gather,
    gate: Gate,
    relayout: Relayout,
    ownership: Ownership,
    phase: Phase,
    /// Why no message is taken.
    closed: Option<Failure>,
    drain: Option<DrainStatus>,
    counts: IntakeCounts,
    is_ready: bool,
    /// The intake was last said to be closed.
    told_closed: bool,
    /// The wall clock was last said to be doubted.
    told_doubt: bool,
    unspread: Option<Unspread>,
    out: Vec<Effect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Stopping { since: Duration },
    Closing,
    Ended,
}

#[derive(Debug, Default)]
struct IntakeCounts {
    stored: u64,
    duplicates: u64,
    refused: [(&'static str, u64); 5],
}

impl Core {
    /// `seed` must differ from that of every engine before on the same store. Without a tenure it owns
    /// nothing yet, and claims its groups.
    pub fn new(settings: EngineSettings, tenure: Option<Tenure>, seed: u64, now: Now) -> Self {
        let retentions = Retentions::new(settings.retentions.clone());
        let aged_to = settings.aged_to;
        let layout = Layout::new(settings);
        let mut clock = SteadyClock::new(now);
        let at = clock.moment(now);
        let mut seeds = ChaCha8Rng::seed_from_u64(seed);
        let interfaces = layout.interfaces().map(|interface| interface.id);
        Core {
            ownership: Ownership::new(tenure.as_ref()),
            gate: Gate::new(layout.limits.intake_bytes_max, interfaces),
            relayout: Relayout::default(),
            intake: Intake::new(layout.interfaces_count()),
            completer: Completer::new(layout.places_count(), layout.limits.unflushed_max),
            committer: Committer::new(seeds.next_u64()),
            dispatcher: Dispatcher::new(&layout, seeds.next_u64(), tenure),
            housekeeping: Housekeeping::new(layout.limits.prune_every, aged_to, &at),
            retentions,
            gather: Gather::default(),
            phase: Phase::Running,
            closed: None,
            drain: None,
            counts: IntakeCounts::default(),
            is_ready: false,
            told_closed: false,
            told_doubt: false,
            unspread: None,
            out: Vec::new(),
            started: at.monotonic,
            layout,
            clock,
            at,
        }
    }

    /// The gate that stands before [`Event::Submit`].
    pub fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// What a submission may hold that is stored as a whole.
    pub fn unit_max(&self) -> UnitMax {
        let limits = &self.layout.limits;
        UnitMax { messages: limits.batch_messages_max, bytes: limits.batch_bytes_max }
    }

    /// Takes in what happened. What follows comes with the next [`Core::turn`]; what does not wait for
    /// it is in [`Core::answers`].
    pub fn handle(&mut self, event: Event, now: Now) {
        self.at = self.clock.moment(now);
        if self.phase == Phase::Ended {
            return;
        }
        self.spread();
        match event {
            Event::Submit { ticket, submission } => self.submit(ticket, submission),
            Event::Act { ticket, action } => self.act(ticket, action),
            Event::ActOnDestination { ticket, action } => self.act_on_destination(ticket, action),
            Event::Drain { ticket, order } => self.order_drain(ticket, order),
            Event::Register { ticket, topology } => self.register(ticket, topology),
            Event::Registered(answer) => self.registered(answer),
            Event::Claimed(answer) => self.claimed(answer),
            Event::News(news) => self.hear(&news),
            Event::ChangeLayout { ticket, change } => self.change_layout(ticket, change),
            Event::ConfirmRetention { ticket, confirm } => self.confirm_retention(ticket, confirm),
            Event::Shutdown => {
                if self.phase == Phase::Running {
                    self.phase = Phase::Stopping { since: self.at.monotonic };
                    self.refuse_relayout(&ActError::Stopped);
                    self.refuse_confirmations(&ActError::Stopped);
                }
            }
            Event::Wrote(answer) => {
                let after = self.committer.wrote(answer, self.at.monotonic);
                self.after_write(after);
            }
            Event::Found(answer) => {
                let after = self.committer.found(answer, self.at.monotonic);
                self.after_write(after);
            }
            Event::Maintained(answer) => self.maintained(answer),
            Event::Expired(answer) => self.expired(answer),
            Event::Moved(answer) => self.moved(answer),
            Event::RetentionConfirmed(answer) => self.retention_confirmed(answer),
            Event::Read { id, answer } => match answer {
                Err(error) if error.kind() == ErrorKind::Fatal => self.end(Err(EngineError::Store(error))),
                answer => {
                    self.with_dispatcher_out(|dispatcher, ctx, out| dispatcher.read(id, answer, ctx, out))
                }
            },
            Event::Delivered { id, report } => {
                self.with_dispatcher(|dispatcher, ctx| dispatcher.reported(id, report, ctx));
            }
            Event::Closed(answer) => self.end(answer.map_err(EngineError::Store)),
        }
    }

    /// What is known already: after a write the answers of those who waited for it, who need not wait
    /// until everybody else knows as well.
    pub fn answers(&mut self, out: &mut Vec<Effect>) {
        out.append(&mut self.out);
    }

    /// Does what is to be done now.
    pub fn turn(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.at = self.clock.moment(now);
        if self.phase != Phase::Ended {
            self.spread();
            self.follow_age();
            self.lose_patience();
            self.follow_relayout();
            self.ask_for_groups();
            let may_start = self.phase == Phase::Running && self.ownership.is_owner();
            let waits = may_start && self.runs_wait_until().is_some();
            let starts = if may_start && !waits { Starts::Allowed } else { Starts::Stopped };
            self.with_dispatcher_out(|dispatcher, ctx, out| dispatcher.turn(starts, ctx, out));
            self.use_writer();
            if waits && self.runs_wait_until().is_none() {
                self.with_dispatcher_out(|dispatcher, ctx, out| dispatcher.start_runs(ctx, out));
            }
            if !self.is_ready && (self.dispatcher.is_known() || !self.ownership.is_owner()) {
                self.is_ready = true;
                self.out.push(Effect::Ready);
            }
            self.tell_intake();
            self.follow_drain();
            self.stop_when_done();
        }
        out.append(&mut self.out);
    }

    /// When there is something to do without an event, by the monotonic clock.
    pub fn wake_at(&self) -> Option<Duration> {
        let stop_until = match self.phase {
            Phase::Stopping { since } => Some(since + STOP_PATIENCE),
            Phase::Running | Phase::Closing => None,
            Phase::Ended => return None,
        };
        let times = [
            self.dispatcher.wake_at(),
            self.committer.pause_until(),
            self.committer.patience_until(),
            self.completer.flush_at(),
            Some(self.housekeeping.wake_at(&self.retentions)),
            self.ownership.wake_at(),
            self.gathers_until(),
            self.runs_wait_until(),
            stop_until,
        ];
        // What is due by now waits for an event, not for time.
        times.into_iter().flatten().filter(|time| *time > self.at.monotonic).min()
    }

    /// How many submissions are worth a turn of their own.
    pub fn wanted(&self) -> usize {
        let is_refusing = self.phase != Phase::Running || self.closed_why().is_some();
        if is_refusing {
            return 1;
        }
        if !self.committer.is_free(self.at.monotonic) {
            return usize::MAX;
        }
        match self.gathers_until() {
            Some(_) if self.intake.submissions() > 0 => {
                let room = self.layout.limits.batch_messages_max.saturating_sub(self.intake.waiting());
                self.gather.missing().min(room)
            }
            _ => 1,
        }
    }

    /// A picture for people.
    pub fn status(&self) -> Status {
        let last = self.housekeeping.last;
        let mut commits = self.committer.status.clone();
        commits.elapsed = self.at.monotonic.saturating_sub(self.started);
        Status {
            ready: self.is_ready,
            ownership: self.ownership.status(),
            intake: IntakeStatus {
                closed: self.closed_why(),
                waiting: self.intake.waiting() as u64,
                stored: self.counts.stored,
                duplicates: self.counts.duplicates,
                refused: self.counts.refused.into_iter().filter(|(_, count)| *count > 0).collect(),
                free_bytes: last.free_bytes,
                log_bytes: last.log_bytes,
                pruned: self.housekeeping.expired + self.retentions.removed,
            },
            retention: self.retention_status(),
            drain: self.drain.clone(),
            commits,
            memory: self.dispatcher.memory_status(),
            destinations: self.dispatcher.destinations_status(&self.at),
        }
    }

    /// Whether the lanes of a destination wait for an operator after a quarantine.
    pub fn holds(&self, destination: DestinationId) -> bool {
        self.layout.place(destination).is_some_and(|place| self.layout.holds(place))
    }

    fn submit(&mut self, ticket: Ticket, submission: Submission) {
        let Some(source) = self.layout.source(submission.interface) else {
            let text = format!("there is no interface {}", submission.interface);
            return self.refuse(ticket, &submission, &Fate::invalid(text));
        };
        if self.phase != Phase::Running {
            self.refuse(ticket, &submission, &Fate::stopped());
        } else if let Some(drain) = &self.drain {
            let fate = Fate::draining(drain.why().text);
            self.refuse(ticket, &submission, &fate);
        } else if let Some(why) = &self.closed {
            let fate = Fate::full(&why.text);
            self.refuse(ticket, &submission, &fate);
        } else if let Some(text) = self.committer.lost_patience(self.at.monotonic) {
            let fate = Fate::busy(text, BUSY_AFTER);
            self.refuse(ticket, &submission, &fate);
        } else {
            self.gather.came(submission.came_at);
            self.intake.push(source, ticket, submission);
        }
    }

    fn refuse(&mut self, ticket: Ticket, submission: &Submission, fate: &Fate) {
        let cursors = usize::from(matches!(submission.unit, Unit::WithCursor(_)));
        self.answer(ticket, vec![fate.clone(); submission.drafts.len() + cursors]);
    }

    fn answer(&mut self, ticket: Ticket, fates: Vec<Fate>) {
        for fate in &fates {
            match fate {
                Fate::Stored { .. } => self.counts.stored += 1,
                Fate::Duplicate { .. } => self.counts.duplicates += 1,
                Fate::Kept => {}
                Fate::NotStored { code, .. } => self.counts.refuse(code),
            }
        }
        self.out.push(Effect::Answer { ticket, fates });
    }

    /// The same fate for everything that waits, in the order in which it came.
    fn refuse_waiting(&mut self, first: Vec<Seat>, fate: &Fate) {
        let redo = self.committer.strip_redo();
        for seat in first.into_iter().chain(redo) {
            if let Some((ticket, fates)) = self.intake.answer(seat, fate.clone()) {
                self.answer(ticket, fates);
            }
        }
        for (ticket, fates) in self.intake.refuse_all(fate) {
            self.answer(ticket, fates);
        }
    }

    fn act(&mut self, ticket: Ticket, mut action: Action) {
        let place = action.destination.map(|id| (id, self.layout.place(id)));
        if self.phase != Phase::Running {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::Stopped) });
        } else if !self.ownership.is_owner() {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::NotOwner) });
        } else if let (Some((id, None)), true) = (place, action.kind != ActionKind::Dismiss) {
            // What waits for a destination that is gone can be dismissed, and nothing else.
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::UnknownDestination(id)) });
        } else {
            // Whether a lane waits for it is the destination's own policy.
            if let ActionKind::Resend { keep_lane } = &mut action.kind {
                *keep_lane = place.and_then(|(_, place)| place).is_some_and(|place| self.layout.holds(place));
            }
            self.completer.act(ticket, action);
        }
    }

    fn act_on_destination(&mut self, ticket: Ticket, action: DestinationAction) {
        let id = action.destination;
        if self.phase != Phase::Running {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::Stopped) });
        } else if !self.ownership.is_owner() {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::NotOwner) });
        } else if self.layout.place(id).is_none() {
            self.out.push(Effect::Acted { ticket, outcome: Err(ActError::UnknownDestination(id)) });
        } else {
            self.completer.act_on_destination(ticket, action);
        }
    }

    fn order_drain(&mut self, ticket: Ticket, order: DrainOrder) {
        let outcome = match (self.phase, order) {
            (Phase::Running, DrainOrder::Begin { author, then }) => {
                let since = self.drain.as_ref().map_or(self.at.wall, |drain| drain.since);
                self.drain = Some(DrainStatus { since, author, then, is_quiet: false });
                Ok(ActionOutcome::Done(Vec::new()))
            }
            (Phase::Running, DrainOrder::Cancel) => {
                self.drain = None;
                Ok(ActionOutcome::Done(Vec::new()))
            }
            (Phase::Stopping { .. } | Phase::Closing | Phase::Ended, _) => Err(ActError::Stopped),
        };
        self.out.push(Effect::Acted { ticket, outcome });
    }

    /// Looks whether anything that was accepted can still be delivered.
    fn follow_drain(&mut self) {
        let is_stored = self.completer.is_empty() && self.committer.is_idle() && self.intake.is_idle();
        // What waits for another engine is its own affair.
        let is_done = !self.ownership.is_owner() && self.dispatcher.is_idle();
        let is_quiet = self.is_ready && is_stored && (is_done || self.dispatcher.is_quiet());
        let Some(drain) = &mut self.drain else { return };
        let is_news = is_quiet && !drain.is_quiet;
        drain.is_quiet = is_quiet;
        if is_news && drain.then == AfterDrain::Stop && self.phase == Phase::Running {
            self.out.push(Effect::Drained);
        }
    }

    /// Nobody waits for a store that fails: what is not in hand is told to come again.
    fn lose_patience(&mut self) {
        if let Some(text) = self.committer.lost_patience(self.at.monotonic) {
            let fate = Fate::busy(text, BUSY_AFTER);
            let why = ActError::Unavailable(text.to_owned());
            self.refuse_waiting(Vec::new(), &fate);
            self.refuse_relayout(&why);
            self.refuse_confirmations(&why);
        }
    }

    fn tell_intake(&mut self) {
        let closed = self.closed_why().filter(|why| why.code != code::STOPPED);
        if closed.is_some() != self.told_closed {
            self.told_closed = closed.is_some();
            let fact = closed.map_or(Fact::IntakeOpened, |why| Fact::IntakeClosed { why });
            self.out.push(Effect::Note(fact));
        }
    }

    fn stop_when_done(&mut self) {
        let Phase::Stopping { since } = self.phase else { return };
        let is_stored = self.completer.is_empty() && self.committer.is_idle() && self.intake.is_idle();
        if is_stored && self.dispatcher.is_idle() && !self.housekeeping.is_stepping() {
            self.phase = Phase::Closing;
            self.out.push(Effect::Close);
            return;
        }
        let cannot_store = self.committer.is_troubled() || self.closed.is_some();
        if cannot_store && since + STOP_PATIENCE <= self.at.monotonic {
            let why = self.closed_why().map_or_else(String::new, |why| why.text);
            self.end(Err(EngineError::Unstored(why)));
        }
    }

    fn closed_why(&self) -> Option<Failure> {
        if self.phase != Phase::Running {
            return Some(Failure::new(code::STOPPED, "the engine stops"));
        }
        if let Some(drain) = &self.drain {
            return Some(drain.why());
        }
        let busy = self.committer.lost_patience(self.at.monotonic).map(|text| Failure::new(code::BUSY, text));
        self.closed.clone().or(busy)
    }

    fn end(&mut self, result: Result<(), EngineError>) {
        self.phase = Phase::Ended;
        self.out.push(Effect::End(result));
    }

    fn with_dispatcher(&mut self, act: impl FnOnce(&mut Dispatcher, &mut Ctx<'_>)) {
        self.with_dispatcher_out(|dispatcher, ctx, _| act(dispatcher, ctx));
    }

    fn with_dispatcher_out(&mut self, act: impl FnOnce(&mut Dispatcher, &mut Ctx<'_>, &mut Vec<Effect>)) {
        let mut ctx = Ctx {
            layout: &self.layout,
            completer: &mut self.completer,
            at: self.at,
            is_writing: self.committer.is_writing(),
            is_acting: self.committer.is_acting(),
        };
        act(&mut self.dispatcher, &mut ctx, &mut self.out);
    }
}

impl IntakeCounts {
    fn refuse(&mut self, code: &'static str) {
        let known = self.refused.iter_mut().find(|(name, _)| *name == code || name.is_empty());
        if let Some((name, count)) = known {
            *name = code;
            *count += 1;
        }
    }
}
