//! The world of one seed: time, a store, the cores of two engines on it and everyone around them, one event
//! at a time.

mod clients;
mod engines;
mod operator;
mod pollers;
mod retention;
mod storage;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use futures::FutureExt;
use portway_engine::{Effect, Event, Now, Read, ReadId, Run, RunId};
use portway_model::{DestinationId, GroupId, Timestamp};
use portway_store::memory::MemoryStore;
use portway_store::{
    Claimed, ConfirmRetention, Expiry, MoveRetention, Registered, Store, StoreError, Topology, WriteBatch,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::clients::Client;
use self::engines::Engine;
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
    /// The engine whose turn it is, and the other.
    here: Engine,
    there: Engine,
    /// It is the second one's.
    is_second: bool,
    registered: Registered,
    /// The machine of the store is away.
    is_away: bool,
    monotonic: Duration,
    /// The store was told how far messages have aged.
    has_aged: bool,
    /// A wall clock was wrong by years, in this seed.
    was_wrong: bool,
    tasks: BinaryHeap<Reverse<(Duration, u64)>>,
    /// Each with whether it is of the second engine.
    waiting: BTreeMap<u64, (bool, Task)>,
    next_task: u64,
    auditor: Auditor,
    receiver: Receiver,
    routes: BTreeMap<DestinationId, Route>,
    clients: Vec<Client>,
    contents: u64,
    tickets: u64,
    left: u32,
    phase: Phase,
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
    LoseLock,
    TellNews,
    Reconnect,
    Mend,
    EndServer,
    ServerIsBack,
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
        let settings = scenario.settings(&registered);
        let routes = routes(&scenario, &registered);
        let (here, there) = (Engine::new(store.clone(), &mut rng), Engine::new(store.another(), &mut rng));
        let mut world = World {
            seed,
            left: scenario.submissions,
            auditor: Auditor::new(settings),
            here,
            there,
            is_second: false,
            is_away: false,
            monotonic: Duration::from_secs(1),
            has_aged: false,
            was_wrong: false,
            tasks: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            next_task: 0,
            receiver: Receiver::default(),
            clients: Vec::new(),
            contents: 0,
            tickets: 0,
            phase: Phase::Faulty,
            stats: Stats::default(),
            trace: (trace == Trace::On).then(Vec::new),
            effects: Vec::new(),
            rng,
            scenario,
            registered,
            routes,
        };
        world.note(|world| format!("{:?}", world.scenario));
        world.start_clients();
        for number in world.numbers() {
            world.turn_to(*number);
            world.auditor.clock_is_ahead(Duration::from_millis(world.here.wall - START));
            world.later(Duration::ZERO, Task::Start);
        }
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
        let alarm = self.next_alarm();
        match (task, alarm) {
            (None, None) => return Err(format!("nothing happens any more: {}", self.picture())),
            (Some(task), alarm) if alarm.is_none_or(|(alarm, _)| task <= alarm) => {
                self.monotonic = self.monotonic.max(task);
                if let Some((number, task)) = self.pop_task() {
                    self.turn_to(number);
                    let was_due = std::mem::replace(&mut self.here.is_due, true);
                    if was_due && task.tells_what_may_be_sent() {
                        // What follows from what came before it follows first.
                        self.turn()?;
                    }
                    // Its process may have ended with that.
                    if self.here.core.is_none() && task.is_of_process() {
                        return Ok(());
                    }
                    self.play(task)?;
                    self.answer()?;
                }
            }
            (_, Some((alarm, number))) => {
                self.monotonic = self.monotonic.max(alarm);
                self.turn_to(number);
                self.here.is_due = true;
            }
            (Some(_), None) => {}
        }
        // Sometimes several events come before the engine's turn.
        let more_now = self.next_task_time().is_some_and(|at| at <= self.monotonic);
        if !(more_now && self.rng.random_bool(0.5)) {
            self.with_each(
                |world| if std::mem::take(&mut world.here.is_due) { world.turn() } else { Ok(()) },
            )?;
        }
        self.follow_phase()
    }

    /// When an engine has something to do by itself, and which.
    fn next_alarm(&self) -> Option<(Duration, bool)> {
        let alarm = |engine: &Engine, number| Some((engine.core.as_ref()?.wake_at()?, number));
        let of_both = [alarm(&self.here, self.is_second), alarm(&self.there, !self.is_second)];
        of_both.into_iter().flatten().min()
    }

    /// What goes out before the engine's turn, as in its shell.
    fn answer(&mut self) -> Step {
        let Some(core) = &mut self.here.core else { return Ok(()) };
        core.answers(&mut self.effects);
        self.run_effects()
    }

    fn turn(&mut self) -> Step {
        let now = self.now();
        let Some(core) = &mut self.here.core else { return Ok(()) };
        core.turn(now, &mut self.effects);
        let status = core.status();
        self.auditor.memory(&status, self.here.gate.bytes())?;
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
                self.here.in_hand = Some(batch.clone());
                // Its numbers are drawn early: the other may commit higher ones before.
                self.here.store.draw(&batch);
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
                if let Some(destination) = self.here.renewing.remove(&ticket) {
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
                self.hear_write(&event)?;
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
            Task::Close => self.close(),
            Task::Arrive(id, run, reception) => {
                self.auditor.arrived(id, &run, &reception.arrived)?;
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
            Task::Settle => self.settle()?,
            Task::Room(is_free) => self.here.store.set_full(!is_free),
            Task::Register(topology) => self.register(&topology)?,
            Task::Claim(groups) => self.claim(&groups)?,
            Task::LoseLock => self.lose_lock(),
            Task::TellNews => self.tell_news(),
            Task::Reconnect => self.reconnect(),
            Task::Mend => self.here.store.mend(),
            Task::EndServer => self.end_server()?,
            Task::ServerIsBack => self.is_away = false,
        }
        Ok(())
    }

    fn tell(&mut self, event: Event) {
        self.note(|world| format!("{:?} {}", world.monotonic, short(&event)));
        let now = self.now();
        if let Some(core) = &mut self.here.core {
            core.handle(event, now);
        }
    }

    fn now(&self) -> Now {
        let millis = u64::try_from(self.monotonic.as_millis()).unwrap_or(u64::MAX);
        Now { wall: Timestamp(self.here.wall + self.here.wrong_by + millis), monotonic: self.monotonic }
    }

    fn later(&mut self, after: Duration, task: Task) {
        self.next_task += 1;
        self.tasks.push(Reverse((self.monotonic + after, self.next_task)));
        self.waiting.insert(self.next_task, (self.is_second, task));
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

    fn pop_task(&mut self) -> Option<(bool, Task)> {
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
        let picture = |engine: &Engine| match &engine.core {
            Some(core) => format!("{:?}", core.status()),
            None => "there is no engine".into(),
        };
        format!("{} AND {}", picture(&self.here), picture(&self.there))
    }
}

impl Task {
    /// The auditor takes it in before the engine does.
    fn tells_what_may_be_sent(&self) -> bool {
        matches!(self, Task::Report(..) | Task::TellNews | Task::Reconnect)
    }

    /// It does not happen any more once faults have ceased.
    fn is_trouble(&self) -> bool {
        matches!(self, Task::Die(_) | Task::Operate | Task::Room(_) | Task::LoseLock | Task::EndServer)
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
            | Task::LoseLock
            | Task::TellNews
            | Task::Reconnect
            | Task::Mend
            | Task::EndServer
            | Task::ServerIsBack
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
