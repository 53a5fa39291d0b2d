//! The world of one seed: time, the store, the engine's core and everyone around it, one event at
//! a time.

mod clients;
mod operator;
mod others;
mod pollers;
mod retention;
mod storage;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use futures::FutureExt;
use portway_engine::{Core, Effect, Event, Gate, Now, Read, ReadId, Run, RunId, Ticket};
use portway_model::{DestinationId, Epoch, GroupId, Timestamp};
use portway_store::memory::MemoryStore;
use portway_store::{
    Claimed, ConfirmRetention, Expiry, MoveRetention, Registered, Store, StoreError, Tenure, Topology,
    WriteBatch,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::clients::Client;
pub(crate) use self::retention::any_retention;
use crate::auditor::{Auditor, Death};
use crate::receiver::{Receiver, Reception, Route};
use crate::scenario::Scenario;
use crate::{Stats, Trace, Violation};

/// Steps after which a seed must have come to its end.
const STEPS_MAX: u64 = 100_000;
/// Time after the last fault in which everything must have drained.
const DRAIN_MAX: Duration = Duration::from_secs(4 * 3_600);
const START: u64 = 1_800_000_000_000;

/// See the file.
pub struct World {
    seed: u64,
    rng: ChaCha8Rng,
    scenario: Scenario,
    store: MemoryStore,
    /// The same store as another engine has it.
    other: MemoryStore,
    marks_of_other: u64,
    registered: Registered,
    core: Option<Core>,
    gate: Gate,
    monotonic: Duration,
    /// Wall time minus monotonic time, in milliseconds.
    wall: u64,
    /// How far the wall clock is wrong beyond that, in milliseconds.
    wrong_by: u64,
    /// It was, in this seed.
    was_wrong: bool,
    tasks: BinaryHeap<Reverse<(Duration, u64)>>,
    waiting: BTreeMap<u64, Task>,
    next_task: u64,
    auditor: Auditor,
    receiver: Receiver,
    routes: BTreeMap<DestinationId, Route>,
    clients: Vec<Client>,
    contents: u64,
    tickets: u64,
    left: u32,
    /// The engine that runs was told to drain.
    is_draining: bool,
    /// Destinations that are to begin anew.
    renewing: BTreeMap<Ticket, DestinationId>,
    phase: Phase,
    /// What the engine heard of the write in hand.
    in_hand: Option<(WriteBatch, Option<portway_store::WriteOutcome>)>,
    stats: Stats,
    trace: Option<Vec<String>>,
    effects: Vec<Effect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Faulty,
    /// Faults have ceased since.
    Calm(Duration),
    Stopping,
    Over,
}

/// Something that happens at its time.
enum Task {
    Engine(Event),
    Commit(WriteBatch),
    FindMark(u64),
    Read(ReadId, Read),
    Maintain,
    Expire(Expiry),
    MoveRetention(MoveRetention),
    ConfirmRetention(ConfirmRetention),
    MendClock,
    Close,
    Arrive(RunId, Run, Reception),
    Report(RunId, Run, Reception),
    Client(usize),
    Die(Death),
    Start,
    Operate,
    Settle,
    Room(bool),
    Register(Topology),
    Claim(Vec<GroupId>),
    StoreElsewhere(usize),
    LoseLock,
    TellNews,
    TakeOver,
    DeliverElsewhere(Epoch),
    GiveBack,
}

type Step = Result<(), String>;

/// The answer of a call that never waits.
pub(crate) fn now<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = || StoreError::new(portway_store::ErrorKind::Fatal, "the store in memory had to wait");
    call.now_or_never().unwrap_or_else(|| Err(late()))
}

impl World {
    pub fn new(seed: u64, trace: Trace) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let scenario = Scenario::new(&mut rng);
        let store = MemoryStore::default();
        let registered = now(store.register(&scenario.topology())).unwrap_or_default();
        let tenure = storage::claim(&store, &registered).unwrap_or_default();
        let settings = scenario.settings(&registered);
        let routes = routes(&scenario, &registered);
        let mut world = World {
            seed,
            left: scenario.submissions,
            auditor: Auditor::new(settings),
            gate: Gate::new(0, []),
            monotonic: Duration::from_secs(1),
            wall: START,
            wrong_by: 0,
            was_wrong: false,
            core: None,
            tasks: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            next_task: 0,
            receiver: Receiver::default(),
            clients: Vec::new(),
            contents: 0,
            tickets: 0,
            is_draining: false,
            renewing: BTreeMap::new(),
            phase: Phase::Faulty,
            in_hand: None,
            stats: Stats::default(),
            trace: (trace == Trace::On).then(Vec::new),
            effects: Vec::new(),
            rng,
            scenario,
            other: store.another(),
            marks_of_other: 0,
            store,
            registered,
            routes,
        };
        world.note(|world| format!("{:?}", world.scenario));
        world.start_clients();
        world.start_core(Some(tenure));
        world
    }

    /// Plays the seed to its end.
    pub fn run(mut self) -> Result<Stats, Box<Violation>> {
        while self.phase != Phase::Over {
            self.stats.steps += 1;
            if let Err(text) = self.step() {
                let trace = self.trace.take().unwrap_or_default();
                return Err(Box::new(Violation { seed: self.seed, step: self.stats.steps, text, trace }));
            }
        }
        self.stats.acknowledged = self.auditor.acknowledged;
        self.stats.delivered = self.auditor.arrived;
        Ok(self.stats)
    }

    fn step(&mut self) -> Step {
        if self.stats.steps > STEPS_MAX {
            return Err(format!("no end: {}", self.picture()));
        }
        let task = self.next_task_time();
        let alarm = self.core.as_ref().and_then(Core::wake_at);
        match (task, alarm) {
            (None, None) => return Err(format!("nothing happens any more: {}", self.picture())),
            (Some(task), alarm) if alarm.is_none_or(|alarm| task <= alarm) => {
                self.monotonic = self.monotonic.max(task);
                if let Some(task) = self.pop_task() {
                    self.play(task)?;
                    self.answer()?;
                }
            }
            (_, Some(alarm)) => {
                self.monotonic = self.monotonic.max(alarm);
            }
            (Some(_), None) => {}
        }
        // Sometimes several events come before the engine's turn.
        let more_now = self.next_task_time().is_some_and(|at| at <= self.monotonic);
        if !(more_now && self.rng.random_bool(0.5)) {
            self.turn()?;
        }
        self.follow_phase()
    }

    /// What goes out before the engine's turn, as in its shell.
    fn answer(&mut self) -> Step {
        let Some(core) = &mut self.core else { return Ok(()) };
        core.answers(&mut self.effects);
        self.run_effects()
    }

    fn turn(&mut self) -> Step {
        let now = self.now();
        let Some(core) = &mut self.core else { return Ok(()) };
        core.turn(now, &mut self.effects);
        let status = core.status();
        self.auditor.memory(&status, self.gate.bytes())?;
        self.run_effects()?;
        self.auditor.drain(&status)
    }

    fn run_effects(&mut self) -> Step {
        std::mem::take(&mut self.effects).into_iter().try_for_each(|effect| self.run_effect(effect))
    }

    fn run_effect(&mut self, effect: Effect) -> Step {
        self.note(|_| format!("  engine asks: {}", short(&effect)));
        match effect {
            Effect::Write(batch) => {
                self.auditor.batch(&batch)?;
                let after = self.latency();
                self.in_hand = Some((batch.clone(), None));
                self.later(after, Task::Commit(batch));
            }
            Effect::FindMark(mark) => self.later_by_latency(Task::FindMark(mark)),
            Effect::Read { id, read } => self.later_by_latency(Task::Read(id, read)),
            Effect::Maintain { .. } => self.later_by_latency(Task::Maintain),
            Effect::Expire(expiry) => self.later_by_latency(Task::Expire(expiry)),
            Effect::MoveRetention(step) => self.later_by_latency(Task::MoveRetention(step)),
            Effect::ConfirmRetention(confirm) => self.later_by_latency(Task::ConfirmRetention(confirm)),
            Effect::Close => self.later_by_latency(Task::Close),
            Effect::Deliver { id, run } => {
                self.auditor.handed_over(id, &run, self.monotonic)?;
                let route = self.routes.get(&run.destination).copied();
                let reception = self.receiver.receive(&run, route, &self.scenario.rates, &mut self.rng);
                self.later(reception.takes / 2, Task::Arrive(id, run, reception));
            }
            Effect::Answer { ticket, fates } => {
                self.auditor.answered(ticket, &fates)?;
                self.client_answered(ticket, &fates);
            }
            Effect::Acted { .. } => self.stats.actions += 1,
            Effect::Settled { ticket } => {
                if let Some(destination) = self.renewing.remove(&ticket) {
                    self.auditor.renewed(destination);
                }
            }
            Effect::Claim(groups) => self.later_by_latency(Task::Claim(groups)),
            Effect::Register(topology) => self.later_by_latency(Task::Register(topology)),
            Effect::Registered { .. }
            | Effect::RetentionConfirmed { .. }
            | Effect::Ready
            | Effect::Drained
            | Effect::Note(_) => {}
            Effect::End(result) => self.ended(result.map_err(|error| error.to_string()))?,
        }
        Ok(())
    }

    fn play(&mut self, task: Task) -> Step {
        match task {
            Task::Engine(event) => {
                self.hear_write(&event);
                if let Event::Claimed(Ok(Claimed::Owned(tenure))) = &event {
                    self.auditor.owned(tenure);
                }
                self.tell(event);
            }
            Task::Commit(batch) => self.commit(&batch)?,
            Task::FindMark(mark) => self.find_mark(mark),
            Task::Read(id, read) => self.read(id, &read),
            Task::Maintain => self.maintain(),
            Task::Expire(expiry) => self.expire(&expiry)?,
            Task::MoveRetention(step) => self.move_retention(&step)?,
            Task::ConfirmRetention(confirm) => self.confirm_retention(&confirm)?,
            Task::MendClock => self.mend_clock(),
            Task::Close => {
                let closed = now(self.store.close());
                self.tell(Event::Closed(closed));
            }
            Task::Arrive(id, run, reception) => {
                let contents = &reception.arrived;
                self.auditor.arrived(id, &run, contents)?;
                if let Some(killer) = reception.kills {
                    self.auditor.killed(run.destination, killer)?;
                    return self.die(Death::Process);
                }
                let after = reception.takes / 2;
                self.later(after, Task::Report(id, run, reception));
            }
            Task::Report(id, run, reception) => {
                self.auditor.reported(id, &run, &reception.report, self.monotonic)?;
                self.tell(Event::Delivered { id, report: reception.report });
            }
            Task::Client(number) => self.client_sends(number)?,
            Task::Die(death) => self.die(death)?,
            Task::Start => self.restart()?,
            Task::Operate => self.operate(),
            Task::Settle => self.settle(),
            Task::Room(is_free) => self.store.set_full(!is_free),
            Task::Register(topology) => self.register(&topology)?,
            Task::Claim(groups) => self.claim(&groups),
            Task::StoreElsewhere(interface) => self.store_elsewhere(interface)?,
            Task::LoseLock => self.lose_lock(),
            Task::TellNews => self.tell_news(),
            Task::TakeOver => self.take_over(),
            Task::DeliverElsewhere(epoch) => self.deliver_elsewhere(epoch)?,
            Task::GiveBack => self.give_back(),
        }
        Ok(())
    }

    fn tell(&mut self, event: Event) {
        self.note(|world| format!("{:?} {}", world.monotonic, short(&event)));
        let now = self.now();
        if let Some(core) = &mut self.core {
            core.handle(event, now);
        }
    }

    fn start_core(&mut self, tenure: Option<Tenure>) {
        let settings = self.scenario.settings(&self.registered);
        let core = Core::new(settings, tenure, self.rng.next_u64(), self.now());
        self.gate = core.gate();
        self.is_draining = false;
        self.renewing.clear();
        self.core = Some(core);
    }

    /// The process or the machine is gone, and everything in hand with it.
    fn die(&mut self, death: Death) -> Step {
        if self.core.take().is_none() {
            return Ok(());
        }
        self.note(|world| format!("{:?} the end of the process: {death:?}", world.monotonic));
        self.stats.deaths += 1;
        match death {
            Death::Clean => {}
            Death::Process => self.store.crash(),
            Death::Power => {
                self.stats.power_losses += 1;
                let kept = self.rng.random_range(0..=self.store.unflushed());
                self.store.lose_power(kept);
            }
        }
        self.auditor.died(death, &self.store)?;
        self.waiting.retain(|_, task| !task.is_of_process());
        self.in_hand = None;
        self.disconnect_clients();
        let after = Duration::from_millis(self.rng.random_range(1..3_000));
        self.later(after, Task::Start);
        Ok(())
    }

    fn restart(&mut self) -> Step {
        let topology = Topology { now: self.now().wall, ..self.scenario.topology() };
        if let Ok(registered) = now(self.store.register(&topology)) {
            let tenure = storage::claim(&self.store, &registered);
            self.note(|world| format!("{:?} a new process, {tenure:?}", world.monotonic));
            self.auditor.started(&registered.pauses, self.monotonic)?;
            self.auditor.retained(&self.store)?;
            self.registered = registered;
            self.start_core(tenure);
            if self.phase == Phase::Stopping {
                // The end came while it stopped: once more from the beginning of the end.
                self.phase = Phase::Calm(self.monotonic);
                self.later(Duration::from_secs(1), Task::Settle);
            }
        }
        Ok(())
    }

    fn ended(&mut self, result: Result<(), String>) -> Step {
        self.note(|world| format!("{:?} the engine ended: {result:?}", world.monotonic));
        match (self.phase, result) {
            (Phase::Stopping, Ok(())) => {
                self.phase = Phase::Over;
                self.core = None;
                self.auditor.died(Death::Clean, &self.store)?;
                self.auditor.finished(&self.store)
            }
            (Phase::Stopping, Err(text)) => Err(format!("the engine ended by itself: {text}")),
            (_, Ok(())) => self.die(Death::Clean),
            (_, Err(_)) => self.die(Death::Process),
        }
    }

    fn now(&self) -> Now {
        let millis = u64::try_from(self.monotonic.as_millis()).unwrap_or(u64::MAX);
        Now { wall: Timestamp(self.wall + self.wrong_by + millis), monotonic: self.monotonic }
    }

    fn later(&mut self, after: Duration, task: Task) {
        self.next_task += 1;
        self.tasks.push(Reverse((self.monotonic + after, self.next_task)));
        self.waiting.insert(self.next_task, task);
    }

    fn later_by_latency(&mut self, task: Task) {
        let after = self.latency();
        self.later(after, task);
    }

    /// How long half a call of the store takes.
    fn latency(&mut self) -> Duration {
        let is_slow = self.is_faulty() && self.rng.random_bool(self.scenario.rates.slow);
        let micros =
            if is_slow { self.rng.random_range(1_000..800_000) } else { self.rng.random_range(10..2_000) };
        Duration::from_micros(micros)
    }

    fn is_faulty(&self) -> bool {
        self.phase == Phase::Faulty
    }

    fn next_task_time(&mut self) -> Option<Duration> {
        while let Some(Reverse((at, number))) = self.tasks.peek() {
            if self.waiting.contains_key(number) {
                return Some(*at);
            }
            self.tasks.pop();
        }
        None
    }

    fn pop_task(&mut self) -> Option<Task> {
        let Reverse((_, number)) = self.tasks.pop()?;
        self.waiting.remove(&number)
    }

    fn note(&mut self, line: impl FnOnce(&World) -> String) {
        if self.trace.is_some() {
            let line = line(self);
            if let Some(trace) = &mut self.trace {
                trace.push(line);
            }
        }
    }

    fn picture(&self) -> String {
        match &self.core {
            Some(core) => format!("{:?}", core.status()),
            None => "there is no engine".into(),
        }
    }
}

impl Task {
    /// It does not happen any more once faults have ceased.
    fn is_trouble(&self) -> bool {
        matches!(
            self,
            Task::Die(_)
                | Task::Operate
                | Task::Room(_)
                | Task::LoseLock
                | Task::TakeOver
                | Task::StoreElsewhere(_)
        )
    }

    /// It is lost with the process.
    fn is_of_process(&self) -> bool {
        match self {
            Task::Engine(_)
            | Task::Commit(_)
            | Task::FindMark(_)
            | Task::Read(..)
            | Task::Maintain
            | Task::Expire(_)
            | Task::MoveRetention(_)
            | Task::ConfirmRetention(_)
            | Task::Close
            | Task::Register(_)
            | Task::Claim(_)
            | Task::Arrive(..)
            | Task::Report(..) => true,
            Task::Client(_)
            | Task::Die(_)
            | Task::Start
            | Task::Operate
            | Task::Settle
            | Task::Room(_)
            | Task::StoreElsewhere(_)
            | Task::LoseLock
            | Task::TellNews
            | Task::TakeOver
            | Task::DeliverElsewhere(_)
            | Task::GiveBack
            | Task::MendClock => false,
        }
    }
}

fn routes(scenario: &Scenario, registered: &Registered) -> BTreeMap<DestinationId, Route> {
    let mut routes = BTreeMap::new();
    let Some(target) = registered.interfaces.last().map(|(id, _)| *id) else { return routes };
    for (interface, (_, ids)) in scenario.interfaces.iter().zip(&registered.interfaces) {
        for (destination, id) in interface.destinations.iter().zip(ids) {
            if destination.routes {
                routes.insert(*id, Route { target });
            }
        }
    }
    routes
}

/// One line of a value, for the trace.
fn short(value: &impl std::fmt::Debug) -> String {
    let mut text = format!("{value:?}");
    if text.len() > 1_500 {
        let end = (0..=1_500).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
