//! The asynchronous shell around the core: calls the store and `Deliver`, keeps the time,
//! carries answers to those who wait.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use portway_model::{Failure, Guarantee, Later, RetentionState, code};
use portway_store::{ActionOutcome, Registered, Store, Tenure};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

use crate::core::Core;
use crate::event::{ActError, Effect, EngineError, Event, Ticket};
use crate::fate::Fate;
use crate::handle::{EngineHandle, Request};
use crate::inbox::{Inbox, Letter};
use crate::ports::{Clock, Deliver, Run, RunReport, Stop, Verdict};
use crate::settings::EngineSettings;
use crate::time::Now;

/// Requests that wait for the core; beyond it handles wait.
const REQUESTS_MAX: usize = 1_024;
/// Requests and answers taken in before the core's turn.
const TURN_EVENTS_MAX: usize = 1_024;
/// The longest sleep: a clock that stands still is looked at again.
const SLEEP_MAX: Duration = Duration::from_secs(10);

/// What an engine works with.
#[derive(Clone)]
pub struct EngineParts {
    pub store: Arc<dyn Store>,
    pub deliver: Arc<dyn Deliver>,
    pub clock: Arc<dyn Clock>,
}

/// Starts engines.
#[derive(Debug)]
pub struct Engine;

/// An engine that has to be run.
pub struct EngineTask {
    core: Core,
    parts: EngineParts,
    requests: mpsc::Receiver<Request>,
    inbox: Inbox,
    ready: watch::Sender<bool>,
    drained: watch::Sender<bool>,
    calls: JoinSet<Event>,
    submits: HashMap<Ticket, oneshot::Sender<Vec<Fate>>>,
    acts: HashMap<Ticket, oneshot::Sender<Result<ActionOutcome, ActError>>>,
    registrations: HashMap<Ticket, oneshot::Sender<Result<Registered, ActError>>>,
    confirmations: HashMap<Ticket, oneshot::Sender<Result<Option<RetentionState>, ActError>>>,
    settles: HashMap<Ticket, oneshot::Sender<()>>,
    tickets: u64,
}

impl Engine {
    /// Makes an engine on a store in which the settings' interfaces are registered. It does nothing
    /// until [`EngineTask::run`]. Without a tenure it stores messages, and delivers as soon as it can
    /// own its groups.
    pub fn start(
        parts: EngineParts,
        settings: EngineSettings,
        tenure: Option<Tenure>,
    ) -> (EngineHandle, EngineTask) {
        let now = now(&*parts.clock);
        let core = Core::new(settings, tenure, rand::random(), now);
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let (ready, is_ready) = watch::channel(false);
        let (drained, is_drained) = watch::channel(false);
        let inbox = Inbox::new();
        let ports = (Arc::clone(&parts.store), Arc::clone(&parts.clock));
        let handles = (is_ready, is_drained);
        let handle = EngineHandle::new((sender, inbox.clone()), core.gate(), handles, ports, core.unit_max());
        let task = EngineTask {
            core,
            parts,
            requests,
            inbox,
            ready,
            drained,
            calls: JoinSet::new(),
            submits: HashMap::new(),
            acts: HashMap::new(),
            registrations: HashMap::new(),
            confirmations: HashMap::new(),
            settles: HashMap::new(),
            tickets: 0,
        };
        (handle, task)
    }
}

fn now(clock: &dyn Clock) -> Now {
    Now { wall: clock.now(), monotonic: clock.monotonic() }
}

impl EngineTask {
    /// Runs until [`EngineHandle::shutdown`] or until the store fails for good. The store is closed
    /// only after an end in order.
    pub async fn run(mut self) -> Result<(), EngineError> {
        let mut effects = Vec::new();
        let mut sleep = Box::pin(tokio::time::sleep(Duration::ZERO));
        let mut requests = Vec::with_capacity(TURN_EVENTS_MAX);
        let mut has_handles = true;
        let store = Arc::clone(&self.parts.store);
        let mut news = store.news();
        loop {
            let now = self.now();
            self.core.turn(now, &mut effects);
            if let Some(end) = self.run_effects(&mut effects) {
                return end;
            }
            self.set_alarm(sleep.as_mut());
            self.inbox.want(self.core.wanted());
            let mut event = None;
            tokio::select! {
                () = self.inbox.enough() => {}
                count = self.requests.recv_many(&mut requests, TURN_EVENTS_MAX), if has_handles => {
                    // Without handles nobody can ask for a stop: what waits is still delivered.
                    has_handles = count > 0;
                }
                Some(ended) = self.calls.join_next() => event = Some(ended),
                heard = &mut news => {
                    self.core.handle(Event::News(heard), self.now());
                    news = store.news();
                }
                () = sleep.as_mut() => {}
            }
            // First what came first: it came before a write ended, not after.
            for letter in self.inbox.take() {
                self.submit(letter);
            }
            if let Some(event) = event {
                self.take_in(event)?;
                // Perhaps of a write, whose sources are not kept waiting.
                self.core.answers(&mut effects);
                if let Some(end) = self.run_effects(&mut effects) {
                    return end;
                }
            }
            for request in requests.drain(..) {
                self.request(request);
            }
            for _ in 0..TURN_EVENTS_MAX {
                let Some(event) = self.calls.try_join_next() else { break };
                self.take_in(event)?;
            }
        }
    }

    fn now(&self) -> Now {
        now(&*self.parts.clock)
    }

    fn set_alarm(&self, sleep: Pin<&mut Sleep>) {
        let wait = self
            .core
            .wake_at()
            .map_or(SLEEP_MAX, |at| at.saturating_sub(self.parts.clock.monotonic()).min(SLEEP_MAX));
        sleep.reset(Instant::now() + wait);
    }

    fn take_in(&mut self, event: Result<Event, tokio::task::JoinError>) -> Result<(), EngineError> {
        let event =
            event.map_err(|error| EngineError::Contract(format!("a call of the store ended: {error}")))?;
        let now = self.now();
        self.core.handle(event, now);
        Ok(())
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn submit(&mut self, letter: Letter) {
        let ticket = self.ticket();
        self.submits.insert(ticket, letter.reply);
        let now = self.now();
        self.core.handle(Event::Submit { ticket, submission: letter.submission }, now);
    }

    fn request(&mut self, request: Request) {
        let ticket = self.ticket();
        let event = match request {
            Request::Act { action, reply } => {
                self.acts.insert(ticket, reply);
                Event::Act { ticket, action }
            }
            Request::ActOnDestination { action, reply } => {
                self.acts.insert(ticket, reply);
                Event::ActOnDestination { ticket, action }
            }
            Request::Drain { order, reply } => {
                self.acts.insert(ticket, reply);
                Event::Drain { ticket, order }
            }
            Request::Register { topology, reply } => {
                self.registrations.insert(ticket, reply);
                Event::Register { ticket, topology }
            }
            Request::ChangeLayout { change, reply, settled } => {
                self.acts.insert(ticket, reply);
                self.settles.insert(ticket, settled);
                Event::ChangeLayout { ticket, change }
            }
            Request::ConfirmRetention { confirm, reply } => {
                self.confirmations.insert(ticket, reply);
                Event::ConfirmRetention { ticket, confirm }
            }
            Request::Status(reply) => {
                // Who asked may have gone.
                let _ = reply.send(self.core.status());
                return;
            }
            Request::Shutdown => Event::Shutdown,
        };
        let now = self.now();
        self.core.handle(event, now);
    }

    fn run_effects(&mut self, effects: &mut Vec<Effect>) -> Option<Result<(), EngineError>> {
        effects.drain(..).find_map(|effect| self.run_effect(effect))
    }

    fn run_effect(&mut self, effect: Effect) -> Option<Result<(), EngineError>> {
        let store = Arc::clone(&self.parts.store);
        match effect {
            Effect::Write(batch) => self.call(async move { Event::Wrote(store.write(batch).await) }),
            Effect::FindMark(mark) => self.call(async move { Event::Found(store.find_mark(mark).await) }),
            Effect::Register(topology) => {
                self.call(async move { Event::Registered(store.register(&topology).await) });
            }
            Effect::Claim(groups) => {
                let now = self.parts.clock.now();
                self.call(async move { Event::Claimed(store.claim(&groups, now).await) });
            }
            Effect::Maintain { free_wait } => {
                self.call(async move { Event::Maintained(store.maintain(free_wait).await) });
            }
            Effect::Expire(expiry) => self.call(async move { Event::Expired(store.expire(&expiry).await) }),
            Effect::MoveRetention(step) => {
                self.call(async move { Event::Moved(store.move_retention(&step).await) });
            }
            Effect::ConfirmRetention(confirm) => {
                self.call(async move { Event::RetentionConfirmed(store.confirm_retention(&confirm).await) })
            }
            Effect::Read { id, read } => {
                self.call(async move { Event::Read { id, answer: read.run(&*store).await } });
            }
            Effect::Deliver { id, run } => {
                let deliver = Arc::clone(&self.parts.deliver);
                self.call(
                    async move { Event::Delivered { id, report: deliver_safely(&*deliver, run).await } },
                );
            }
            Effect::Close => self.call(async move { Event::Closed(store.close().await) }),
            Effect::Answer { ticket, fates } => {
                if let Some(reply) = self.submits.remove(&ticket) {
                    // Its connection may be closed; what is stored is delivered all the same.
                    let _ = reply.send(fates);
                }
            }
            Effect::Acted { ticket, outcome } => {
                if outcome.is_err() {
                    self.settles.remove(&ticket);
                }
                if let Some(reply) = self.acts.remove(&ticket) {
                    let _ = reply.send(outcome);
                }
            }
            Effect::Registered { ticket, answer } => {
                if let Some(reply) = self.registrations.remove(&ticket) {
                    let _ = reply.send(answer);
                }
            }
            Effect::RetentionConfirmed { ticket, answer } => {
                if let Some(reply) = self.confirmations.remove(&ticket) {
                    let _ = reply.send(answer);
                }
            }
            Effect::Settled { ticket } => {
                if let Some(settled) = self.settles.remove(&ticket) {
                    let _ = settled.send(());
                }
            }
            Effect::Note(fact) => fact.emit(),
            Effect::Ready => {
                self.ready.send_replace(true);
            }
            Effect::Drained => {
                self.drained.send_replace(true);
            }
            Effect::End(result) => return Some(result),
        }
        None
    }

    fn call(&mut self, call: impl Future<Output = Event> + Send + 'static) {
        self.calls.spawn(call);
    }
}

impl Drop for EngineTask {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

/// A panic in a delivery must not take the engine along.
async fn deliver_safely(deliver: &dyn Deliver, run: Run) -> RunReport {
    let (count, guarantee) = (run.messages.len(), run.guarantee);
    AssertUnwindSafe(deliver.deliver(run)).catch_unwind().await.unwrap_or_else(|_| {
        let verdict = match guarantee {
            Guarantee::AtLeastOnce => Verdict::Untried,
            Guarantee::AtMostOnce => Verdict::in_doubt("delivering it failed inside the engine's process"),
        };
        let failure = Failure::new(code::PANIC, "delivering it failed inside the engine's process");
        RunReport {
            verdicts: vec![verdict; count],
            stop: Some(Stop::Unavailable(Later { failure, after_ms: None })),
            go_singly: true,
            state: Vec::new(),
            outputs: Vec::new(),
        }
    })
}
