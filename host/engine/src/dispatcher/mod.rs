//! The dispatcher: which deliveries run when.
//!
//! Destinations that are ready take turns; each takes a run from one of its lanes. What a result
//! means is handed to the completer; what is stored comes back here.

mod apart;
pub(crate) mod budget;
mod change;
mod destination;
mod feed;
mod finish;
mod held;
mod lane;
mod lane_set;
mod leave;
mod pick;
mod rate;
mod reader;
mod record;
mod report;
mod standing;
mod status;
mod stream;
mod tenure;
mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use portway_model::{AttemptNo, DestinationId, Envelope, Failure, Lane, MessageId, Round, code};
use portway_store::{
    ActionKind, DestinationAction, DestinationActionKind, NewMessage, Settled, StoreError, StoredMessage,
    Tenure,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use self::budget::{Budget, Carried};
pub(crate) use self::change::Changed;
use self::destination::Destination;
use self::feed::Page;
pub(crate) use self::leave::Left;
use self::pick::{Pick, RunState, Start, Step};
use self::reader::{For, Reader};
use self::record::Records;
use self::report::Meaning;
use self::stream::Hint;
use self::timers::{Timer, Timers};
use crate::completer::{Completer, Finished};
use crate::event::{Effect, Read, ReadAnswer, ReadId, RunId};
use crate::fact::Fact;
use crate::layout::{Layout, Place};
use crate::ports::RunReport;
use crate::time::Moment;

/// Ends of the process at which a recorded delivery was in hand, after which it is quarantined: once with its run,
/// then by itself. Once by itself says too little: who kills a process often meets whatever is tried then.
const SUSPECTED_MAX: u32 = 3;

/// See the file.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    destinations: Vec<Destination>,
    desk: Desk,
    runs: BTreeMap<RunId, RunState>,
    runs_begun: u64,
    /// Destinations that can start a run, each once, in the order of their turns.
    ready: VecDeque<Place>,
    /// As `ready`, for those that are asked whether they are back: they get half of the runs at most,
    /// so that those that hang leave room for those that work.
    probing: VecDeque<Place>,
    probes: usize,
    /// Destinations that wait for bytes.
    for_bytes: Vec<Place>,
    /// Destinations that end, each once.
    leaving: Vec<Place>,
    /// The read of what the store has for all of them; none: nobody asked, or the answer is too old.
    starting: Option<ReadId>,
    is_known: bool,
}

/// What all destinations share.
#[derive(Debug)]
pub(crate) struct Desk {
    pub budget: Budget,
    pub timers: Timers,
    pub reader: Reader,
    pub rng: ChaCha8Rng,
    /// The last message a commit told of.
    pub stored_to: MessageId,
    /// Lanes whose page was cut because a commit was in hand; the lane apart stands for a
    /// destination's held lanes.
    pub parked: Vec<(Place, Lane)>,
    /// Worth a line in the log.
    pub facts: Vec<Fact>,
    pub records: Records,
    /// None: it owns nothing, and delivers nothing. After an owner that did not stop in order what may
    /// have been in hand runs by itself.
    pub tenure: Option<Tenure>,
}

/// What the dispatcher is given with each call.
pub(crate) struct Ctx<'a> {
    pub layout: &'a Layout,
    pub completer: &'a mut Completer,
    pub at: Moment,
    /// A commit that may store messages is in hand.
    pub is_writing: bool,
    /// It carries operators' actions.
    pub is_acting: bool,
}

/// Whether runs may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    Allowed,
    Stopped,
}

impl Dispatcher {
    pub fn new(layout: &Layout, seed: u64, tenure: Option<Tenure>) -> Self {
        let settings = layout.destinations().cloned().enumerate();
        let mut dispatcher = Dispatcher {
            destinations: settings
                .map(|(place, settings)| {
                    let pause = layout.pause(settings.id).cloned();
                    Destination::new(place, settings, pause)
                })
                .collect(),
            desk: Desk {
                budget: Budget::new(&layout.limits),
                timers: Timers::default(),
                reader: Reader::default(),
                rng: ChaCha8Rng::seed_from_u64(seed),
                stored_to: MessageId::ZERO,
                parked: Vec::new(),
                facts: Vec::new(),
                records: Records::default(),
                tenure: None,
            },
            runs: BTreeMap::new(),
            runs_begun: 0,
            ready: VecDeque::new(),
            probing: VecDeque::new(),
            probes: 0,
            for_bytes: Vec::new(),
            leaving: Vec::new(),
            starting: None,
            is_known: false,
        };
        if let Some(tenure) = tenure {
            dispatcher.start(tenure);
        }
        dispatcher
    }

    /// No run is in hand.
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    /// Nothing is in hand, and what waits, waits for a time or for an operator.
    pub fn is_quiet(&self) -> bool {
        let is_reading = !self.desk.reader.is_idle();
        self.is_idle() && !is_reading && self.destinations.iter().all(Destination::is_quiet)
    }

    /// What waited in the store at the start is known.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// A commit stored a message: its deliveries are hints.
    pub fn stored(&mut self, id: MessageId, message: NewMessage, ctx: &mut Ctx<'_>) {
        self.desk.stored_to = self.desk.stored_to.max(id);
        if self.desk.tenure.is_none() {
            // Whoever owns it reads it.
            return;
        }
        let NewMessage { draft, deliveries, received_at, .. } = message;
        if draft.doubt.is_some() {
            for delivery in deliveries {
                self.with(ctx.layout.place(delivery.destination), ctx, |destination, _, _| {
                    destination.doubt(delivery.lane, id);
                });
            }
            return;
        }
        let body_bytes = draft.body.len() as u64;
        let envelope = Envelope {
            id,
            received_at,
            attempt: AttemptNo(1),
            key: draft.key,
            attributes: Arc::new(draft.attributes),
            body: draft.body,
        };
        let carried = if deliveries.is_empty() { None } else { self.desk.budget.carry(envelope) };
        for delivery in deliveries {
            let carried: Option<Arc<Carried>> = carried.clone();
            let hint = Hint {
                message: id,
                round: Round(0),
                attempts: AttemptNo(0),
                body_bytes,
                due_at: None,
                recorded: 0,
                is_void: false,
                carried,
            };
            self.with(ctx.layout.place(delivery.destination), ctx, |destination, desk, ctx| {
                destination.hint(delivery.lane, hint, desk, ctx);
            });
        }
    }

    /// Ends a run that was not handed over: its first message is quarantined, the others are not tried.
    fn quarantine_first(&mut self, id: RunId, failure: Failure, ctx: &mut Ctx<'_>) {
        if let Some(run) = self.runs.remove(&id) {
            self.abandon(run, Meaning::Done(Settled::Quarantined(failure)), ctx);
        }
    }

    /// A run that is not handed over yet ends if its destination does not take it any more, or if
    /// nothing of it is left. Says whether it did.
    fn abandon_unwanted(&mut self, id: RunId, ctx: &mut Ctx<'_>) -> bool {
        let Some(run) = self.runs.get(&id) else { return true };
        let destination = self.destinations.get(run.place);
        let first = run.hints.first().map(|hint| hint.message);
        let is_wanted = first.is_some_and(|first| destination.is_some_and(|to| to.takes(run.lane, first)));
        if !is_wanted && let Some(run) = self.runs.remove(&id) {
            self.abandon(run, Meaning::Untried, ctx);
        }
        !is_wanted
    }

    /// Nothing of it was tried but its first, of which this became.
    fn abandon(&mut self, run: RunState, first: Meaning, ctx: &mut Ctx<'_>) {
        let meanings = std::iter::once(first).chain(std::iter::repeat_with(|| Meaning::Untried));
        self.end(run, meanings, ctx);
    }

    /// Its destination's rate is used up: nothing of it is sent.
    fn drop_run(&mut self, run: RunState, ctx: &mut Ctx<'_>) {
        let rate = ctx.layout.destination(run.place).and_then(|settings| settings.rate);
        let reason = rate.map(|limit| format!("beyond the rate of {}", limit.rate)).unwrap_or_default();
        self.end(run, std::iter::repeat_with(move || Meaning::Dropped(reason.clone())), ctx);
    }

    /// Ends a run that was not handed over.
    fn end(&mut self, mut run: RunState, meanings: impl Iterator<Item = Meaning>, ctx: &mut Ctx<'_>) {
        self.give_back(&mut run);
        self.with(Some(run.place), ctx, |destination, desk, ctx| {
            destination.abandon(run, meanings, desk, ctx)
        });
        self.touch_for_bytes(ctx);
    }

    fn give_back(&mut self, run: &mut RunState) {
        if std::mem::take(&mut run.is_probe) {
            self.probes = self.probes.saturating_sub(1);
        }
        self.desk.budget.release(std::mem::take(&mut run.loan));
    }

    fn touch_for_bytes(&mut self, ctx: &mut Ctx<'_>) {
        for place in std::mem::take(&mut self.for_bytes) {
            self.touch(place, ctx);
        }
    }

    /// A run came back.
    pub fn reported(&mut self, id: RunId, report: RunReport, ctx: &mut Ctx<'_>) {
        let Some(mut run) = self.runs.remove(&id) else { return };
        self.give_back(&mut run);
        self.with(Some(run.place), ctx, |destination, desk, ctx| destination.finish(run, report, desk, ctx));
        self.touch_for_bytes(ctx);
    }

    /// What became of a result.
    pub fn written(&mut self, finished: &Finished, applied: bool, ctx: &mut Ctx<'_>) {
        self.with(Some(finished.place), ctx, |destination, desk, ctx| {
            if applied {
                destination.applied(finished, desk, ctx);
            } else {
                destination.stale(finished, desk, ctx);
            }
        });
    }

    /// The store refused a result, and it is stored as quarantined instead.
    pub fn turned_quarantined(&mut self, finished: &Finished, ctx: &mut Ctx<'_>) {
        self.with(Some(finished.place), ctx, |destination, _, _| {
            destination.quarantined(finished.lane, finished.result.message);
        });
    }

    /// An operator's action changed a delivery.
    pub fn acted(&mut self, changed: Changed, kind: ActionKind, ctx: &mut Ctx<'_>) {
        let Some(place) = ctx.layout.place(changed.destination) else { return };
        self.desk.records.forget(changed.destination, changed.message);
        let runs = self.runs.values_mut().filter(|run| run.place == place);
        let lost: Vec<Hint> = runs.flat_map(|run| run.remove(changed.message, changed.before)).collect();
        self.with(Some(place), ctx, |destination, desk, ctx| {
            destination.lost(&lost);
            destination.acted(changed, kind, desk, ctx);
        });
    }

    /// An operator's action on a whole destination is stored.
    pub fn acted_on_destination(&mut self, action: DestinationAction, ctx: &mut Ctx<'_>) {
        self.with(ctx.layout.place(action.destination), ctx, |destination, desk, ctx| match &action.kind {
            DestinationActionKind::Pause => destination.pause(action, desk, ctx),
            DestinationActionKind::Resume => destination.resume(desk, ctx),
            // Plugins read it from the store.
            DestinationActionKind::RemoveState(_) => {}
        });
    }

    /// These destinations have room for results again.
    pub fn flushed(&mut self, places: Vec<Place>, ctx: &mut Ctx<'_>) {
        for place in places {
            self.touch(place, ctx);
        }
    }

    /// The commit that was in hand is known: pages that were cut for it are read on.
    pub fn unpark(&mut self, ctx: &mut Ctx<'_>) {
        for (place, lane) in std::mem::take(&mut self.desk.parked) {
            self.with(Some(place), ctx, |destination, desk, ctx| destination.unpark(lane, desk, ctx));
        }
    }

    /// A read came back.
    pub fn read(
        &mut self,
        id: ReadId,
        answer: Result<ReadAnswer, StoreError>,
        ctx: &mut Ctx<'_>,
        out: &mut Vec<Effect>,
    ) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) => {
                self.desk.reader.failed(id, ctx.at.monotonic);
                return;
            }
        };
        let Some((reader, read)) = self.desk.reader.answered(id) else { return };
        match (reader, read, answer) {
            (For::Start, _, ReadAnswer::Work(destinations)) if self.starting == Some(id) => {
                self.on_work(&destinations, ctx);
            }
            (For::LaneHeads(place), _, ReadAnswer::LaneHeads(heads)) => {
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_lane_heads(heads, desk, ctx)
                });
            }
            (For::HeldHeads(place), _, ReadAnswer::HeldHeads(heads)) => {
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_held_heads(id, heads, desk, ctx)
                });
            }
            (For::Suspects(place), _, ReadAnswer::Suspects(suspects)) => {
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_suspects(suspects, desk, ctx)
                });
            }
            (For::Lane(place, lane), Read::Lane { limit, .. }, ReadAnswer::Lane(rows)) => {
                let page = Page { id, rows, limit };
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_page(lane, page, desk, ctx)
                });
            }
            (For::Fresh(place), Read::Lane { limit, .. }, ReadAnswer::Lane(rows)) => {
                let page = Page { id, rows, limit };
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_page(Lane::APART, page, desk, ctx);
                });
            }
            (For::Due(place), Read::Due { until, limit, .. }, ReadAnswer::Due(rows)) => {
                let page = Page { id, rows, limit };
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_due(page, until, desk, ctx)
                });
            }
            (For::NextDue(place), _, ReadAnswer::NextDue(due_at)) => {
                self.with(Some(place), ctx, |destination, desk, ctx| {
                    destination.on_next_due(due_at, desk, ctx)
                });
            }
            (For::Bodies(run), _, ReadAnswer::Messages(messages)) => self.on_bodies(run, messages, ctx, out),
            // The shell answers what was asked.
            _ => {}
        }
    }

    fn on_work(&mut self, destinations: &[DestinationId], ctx: &mut Ctx<'_>) {
        self.is_known = true;
        self.starting = None;
        let mut has_work = vec![false; self.destinations.len()];
        for destination in destinations {
            match ctx.layout.place(*destination).and_then(|place| has_work.get_mut(place)) {
                Some(has_work) => *has_work = true,
                None => self.desk.facts.push(Fact::Orphaned { destination: *destination }),
            }
        }
        for (place, has_work) in has_work.into_iter().enumerate() {
            self.with(Some(place), ctx, |destination, desk, ctx| destination.load(has_work, desk, ctx));
        }
    }

    fn on_bodies(
        &mut self,
        id: RunId,
        messages: Vec<StoredMessage>,
        ctx: &mut Ctx<'_>,
        out: &mut Vec<Effect>,
    ) {
        if self.abandon_unwanted(id, ctx) {
            return;
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        let mut missing = run.cut_missing(&messages);
        if run.hints.is_empty() {
            run.hints = std::mem::take(&mut missing);
            let failure = Failure::new(code::MESSAGE_GONE, "its body is not in the store any more");
            self.quarantine_first(id, failure, ctx);
            return;
        }
        let (place, lane, origin) = (run.place, run.lane, run.origin);
        out.push(run.deliver(messages, ctx));
        if !missing.is_empty() {
            self.with(Some(place), ctx, |destination, desk, _| {
                destination.give_up(lane, origin, missing, desk)
            });
        }
    }

    /// Does what is to be done by now: timers, runs, reads.
    pub fn turn(&mut self, starts: Starts, ctx: &mut Ctx<'_>, out: &mut Vec<Effect>) {
        while let Some(timer) = self.desk.timers.pop_due(ctx.at.monotonic) {
            match timer {
                Timer::Lane(place, lane) => {
                    self.with(Some(place), ctx, |destination, desk, ctx| {
                        destination.wake_lane(lane, desk, ctx)
                    });
                }
                Timer::Due(place) => self.with(Some(place), ctx, Destination::wake_due),
                Timer::Rate(place) => self.with(Some(place), ctx, |destination, _, ctx| {
                    if let Some(rate) = &mut destination.rate {
                        rate.disarm(ctx.at.monotonic);
                    }
                }),
                Timer::Destination(place) => self.with(Some(place), ctx, Destination::wake),
            }
        }
        out.extend(self.desk.facts.drain(..).map(Effect::Note));
        if starts == Starts::Allowed {
            self.start_runs(ctx, out);
        }
        while let Some((id, read)) = self.desk.reader.next(ctx.at.monotonic) {
            out.push(Effect::Read { id, read });
        }
    }

    pub fn wake_at(&self) -> Option<Duration> {
        self.desk.timers.next().into_iter().chain(self.desk.reader.wake_at()).min()
    }

    /// Whether a run could be started.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.probing.is_empty()
    }

    pub fn start_runs(&mut self, ctx: &mut Ctx<'_>, out: &mut Vec<Effect>) {
        let limits = &ctx.layout.limits;
        let runs_max = limits.runs_max.max(1);
        // Routed messages wait in memory until they are written: not more of them than a batch has room for.
        while self.runs.len() < runs_max && ctx.completer.routed_bytes() <= limits.batch_bytes_max {
            let probe_may_start = self.probes < (runs_max / 2).max(1);
            let probe = if probe_may_start { self.probing.pop_front() } else { None };
            let Some(place) = probe.or_else(|| self.ready.pop_front()) else { return };
            self.start_run(place, ctx, out);
        }
    }

    fn start_run(&mut self, place: Place, ctx: &mut Ctx<'_>, out: &mut Vec<Effect>) {
        let Some(destination) = self.destinations.get_mut(place) else { return };
        destination.queued = false;
        if destination.start(ctx) != Start::Now {
            return;
        }
        let is_probe = destination.standing.is_probing();
        let id = RunId(self.runs_begun);
        match destination.pick(id, &mut self.desk, ctx) {
            Pick::Run(mut run) => {
                self.runs_begun += 1;
                if run.is_over_rate {
                    self.drop_run(run, ctx);
                    return;
                }
                run.is_probe = is_probe;
                self.probes += usize::from(is_probe);
                let step = run.first_step(&self.desk.records, ctx);
                self.runs.insert(id, run);
                self.take_step(id, step, ctx, out);
                self.touch(place, ctx);
            }
            Pick::NoBytes if self.for_bytes.contains(&place) => {}
            Pick::NoBytes => self.for_bytes.push(place),
            Pick::Nothing => self.touch(place, ctx),
        }
    }

    fn take_step(&mut self, id: RunId, step: Step, ctx: &mut Ctx<'_>, out: &mut Vec<Effect>) {
        match step {
            Step::Record(suspects) => {
                let guarantee = self.runs.get(&id).map(|run| run.guarantee).unwrap_or_default();
                suspects.into_iter().for_each(|suspect| ctx.completer.suspect(id, suspect, guarantee));
            }
            Step::Read(reader, read) => {
                self.desk.reader.ask(reader, read);
            }
            Step::Deliver(effect) => out.push(effect),
        }
    }

    /// Does something with a destination, then lets it read on and lines it up.
    fn with(
        &mut self,
        place: Option<Place>,
        ctx: &mut Ctx<'_>,
        change: impl FnOnce(&mut Destination, &mut Desk, &mut Ctx<'_>),
    ) {
        let Some(place) = place else { return };
        if let Some(destination) = self.destinations.get_mut(place) {
            change(destination, &mut self.desk, ctx);
            self.touch(place, ctx);
        }
    }

    fn touch(&mut self, place: Place, ctx: &mut Ctx<'_>) {
        let Some(destination) = self.destinations.get_mut(place) else { return };
        destination.feed(&mut self.desk, ctx);
        if destination.queued {
            return;
        }
        match destination.start(ctx) {
            Start::No => {}
            Start::AfterFlush => ctx.completer.starves(place),
            Start::AtTime(until) => {
                if destination.rate.as_mut().is_some_and(|rate| rate.arms(until)) {
                    self.desk.timers.set(until, Timer::Rate(place));
                }
            }
            Start::Now => {
                destination.queued = true;
                let is_probing = destination.standing.is_probing();
                if is_probing { self.probing.push_back(place) } else { self.ready.push_back(place) }
            }
        }
    }
}
