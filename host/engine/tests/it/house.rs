//! A house with a store, an engine and a receiver, for tests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use portway_engine::{
    Clock, Deliver, DestinationSettings, Engine, EngineError, EngineHandle, EngineParts, EngineSettings,
    Fate, InterfaceSettings, LayoutChange, Limits, Routed, Run, RunReport, Stop, Unit, Verdict,
};
use portway_model::{
    Answer, Attributes, DestinationId, Draft, Failure, GroupId, Guarantee, InterfaceId, Key, Later,
    MessageId, OnQuarantine, Order, RateLimit, Retention, RetryPolicy, Timestamp,
};
use portway_store::memory::MemoryStore;
use portway_store::{
    Claimed, DestinationAction, DestinationActionKind, Durability, Registered, Registration, Store, Tenure,
    Topology,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub struct House {
    pub store: MemoryStore,
    pub engine: EngineHandle,
    pub receiver: Arc<Receiver>,
    pub registered: Registered,
    /// As it began; none: it waits for its groups.
    pub tenure: Option<Tenure>,
    pub plan: Plan,
    task: JoinHandle<Result<(), EngineError>>,
}

/// What a house is built of: one interface `in` with destinations, and one `target` without.
pub struct Plan {
    pub orders: Vec<Order>,
    pub on_quarantine: OnQuarantine,
    pub attempts_max: u32,
    pub retry: RetryPolicy,
    pub limits: Limits,
    pub rate: Option<RateLimit>,
    pub guarantee: Guarantee,
    /// Of `in`.
    pub retention: Retention,
    pub clock: TestClock,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            orders: vec![Order::Key],
            on_quarantine: OnQuarantine::Continue,
            attempts_max: 0,
            retry: RetryPolicy::default(),
            limits: Limits::default(),
            rate: None,
            guarantee: Guarantee::AtLeastOnce,
            retention: Retention::default(),
            clock: TestClock::default(),
        }
    }
}

impl Plan {
    /// What the store registers.
    pub fn topology(&self) -> Topology {
        let destinations = (0..self.orders.len()).map(|n| format!("to-{n}")).collect();
        let interfaces = vec![
            Registration { name: "in".into(), destinations, retention: self.retention },
            Registration {
                name: "target".into(),
                destinations: vec!["end".into()],
                ..Registration::default()
            },
        ];
        Topology { interfaces, now: self.clock.now() }
    }
}

/// Does what the first word of a body says: `fail` once, `refuse`, `panic` once, `away` once, `route`.
#[derive(Default)]
pub struct Receiver {
    /// Bodies that arrived, by destination.
    arrived: Mutex<BTreeMap<DestinationId, Vec<String>>>,
    /// Bodies that were handed over together, of all destinations.
    pub runs: Mutex<Vec<Vec<String>>>,
    done_once: Mutex<Vec<String>>,
    pub target: Mutex<Option<InterfaceId>>,
    is_mended: Mutex<bool>,
}

/// Of paused time; its wall time is moved as a test says.
#[derive(Clone, Debug)]
pub struct TestClock {
    began: Instant,
    /// Wall time when it began, in milliseconds.
    wall: Arc<AtomicU64>,
}

impl Default for TestClock {
    fn default() -> Self {
        TestClock { began: Instant::now(), wall: Arc::new(AtomicU64::new(1_800_000_000_000)) }
    }
}

impl TestClock {
    /// Sets the wall clock ahead.
    pub fn step(&self, ahead: Duration) {
        self.wall.fetch_add(ahead.as_millis() as u64, Ordering::Relaxed);
    }

    /// Sets the wall clock back.
    pub fn step_back(&self, by: Duration) {
        self.wall.fetch_sub(by.as_millis() as u64, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::Relaxed)) + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Receiver {
    pub fn arrived(&self, destination: DestinationId) -> Vec<String> {
        self.arrived.lock().unwrap().get(&destination).cloned().unwrap_or_default()
    }

    /// What was `wrong` is not any more.
    pub fn mend(&self) {
        *self.is_mended.lock().unwrap() = true;
    }

    fn first_time(&self, what: &str) -> bool {
        let mut done = self.done_once.lock().unwrap();
        let is_first = !done.iter().any(|known| known == what);
        done.push(what.to_owned());
        is_first
    }

    fn take(&self, run: &Run, body: &str, id: MessageId) -> Result<Verdict, Stop> {
        let later = || Later { failure: Failure::new("later", "not now"), after_ms: None };
        let word = body.split(' ').next().unwrap_or_default();
        let is_first = self.first_time(&format!("{}/{id}", run.destination));
        match word {
            "fail" if is_first => return Ok(Verdict::Retry(later())),
            "refuse" => return Ok(Verdict::Quarantine(Failure::new("refused", "never"))),
            "panic" if is_first => panic!("a fault inside the process"),
            "away" if is_first => return Err(Stop::Unavailable(later())),
            "wrong" if !*self.is_mended.lock().unwrap() => {
                return Err(Stop::Misconfigured(Failure::new("password", "it is wrong")));
            }
            "route" => {
                let target = self.target.lock().unwrap().unwrap();
                let (key, attributes, body) = (None, Attributes::default(), "routed".into());
                return Ok(Verdict::Route(vec![Routed { target, key, attributes, body }]));
            }
            _ => {}
        }
        self.arrived.lock().unwrap().entry(run.destination).or_default().push(body.to_owned());
        Ok(Verdict::Sent(Answer::default()))
    }
}

#[async_trait]
impl Deliver for Receiver {
    async fn deliver(&self, run: Run) -> RunReport {
        let bodies = run.messages.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned());
        self.runs.lock().unwrap().push(bodies.collect());
        // Of paused time: how long the peer takes.
        let is_slow = run.messages.iter().any(|message| message.body.starts_with(b"slow"));
        tokio::time::sleep(Duration::from_millis(if is_slow { 60_000 } else { 1 })).await;
        let mut report = RunReport {
            verdicts: Vec::new(),
            stop: None,
            go_singly: false,
            state: Vec::new(),
            outputs: Vec::new(),
        };
        for message in &run.messages {
            let body = String::from_utf8(message.body.to_vec()).unwrap();
            match self.take(&run, &body, message.id) {
                Ok(verdict) => {
                    let ends = matches!(verdict, Verdict::Retry(_))
                        || (matches!(verdict, Verdict::Quarantine(_)) && run.hold_on_quarantine);
                    report.verdicts.push(verdict);
                    if ends && run.ordered {
                        break;
                    }
                }
                Err(stop) => {
                    report.stop = Some(stop);
                    break;
                }
            }
        }
        report.verdicts.resize(run.messages.len(), Verdict::Untried);
        report
    }
}

impl House {
    pub async fn build(plan: Plan) -> House {
        House::on(MemoryStore::default(), plan).await
    }

    /// Builds it on a store that may have been used before.
    pub async fn on(store: MemoryStore, plan: Plan) -> House {
        House::build_with(store, plan, Begins::AsOwner).await
    }

    /// A second house on the same store, which waits until the first lets go of its groups.
    pub async fn beside(&self, plan: Plan) -> House {
        House::build_with(self.store.another(), plan, Begins::AsStandby).await
    }

    async fn build_with(store: MemoryStore, plan: Plan, begins: Begins) -> House {
        let topology = plan.topology();
        let registered = store.register(&topology).await.unwrap();
        let receiver = Arc::new(Receiver::default());
        *receiver.target.lock().unwrap() = Some(registered.interfaces[1].0);
        let parts = EngineParts {
            store: Arc::new(store.clone()),
            deliver: receiver.clone(),
            clock: Arc::new(plan.clock.clone()),
        };
        let tenure = match begins {
            Begins::AsOwner => Some(claim(&store, &registered).await),
            Begins::AsStandby => None,
        };
        let (engine, task) = Engine::start(parts, settings(&registered, &plan), tenure.clone());
        House { store, engine, receiver, registered, tenure, plan, task: tokio::spawn(task.run()) }
    }

    /// The same interfaces once more, where these destinations of `in` begin anew.
    pub fn renew(&self, numbers: &[usize]) -> LayoutChange {
        LayoutChange {
            interfaces: settings(&self.registered, &self.plan).interfaces,
            renewed: numbers.iter().map(|number| self.destination(*number)).collect(),
            ..LayoutChange::default()
        }
    }

    /// The same without a destination of `in`.
    pub fn without(&self, number: usize) -> LayoutChange {
        let mut change = self.renew(&[]);
        change.interfaces[0].destinations.remove(number);
        change
    }

    /// Makes a change, with the pauses that the store knows.
    pub async fn change(&self, change: LayoutChange) {
        let pauses = self.engine.register(Topology::default()).await.unwrap().pauses;
        let settling = self.engine.change_layout(LayoutChange { pauses, ..change }).await.unwrap();
        settling.settled().await.unwrap();
    }

    pub fn interface(&self) -> InterfaceId {
        self.registered.interfaces[0].0
    }

    pub fn destination(&self, number: usize) -> DestinationId {
        self.registered.interfaces[0].1[number]
    }

    /// The destination of the interface that routes lead to.
    pub fn end(&self) -> DestinationId {
        self.registered.interfaces[1].1[0]
    }

    /// Submits one message and expects that it is stored.
    pub async fn store(&self, body: &str, key: &str) -> MessageId {
        let fates =
            self.engine.submit(self.interface(), Timestamp(0), vec![draft(body, key)], Unit::Each).await;
        match fates.as_slice() {
            [Fate::Stored { id, .. }] => *id,
            other => panic!("{other:?}"),
        }
    }

    /// Asks until there is an answer. Time is paused: a sleep ends at once when everybody waits, and
    /// what was due by then has happened.
    pub async fn wait_for<T>(&self, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        for _ in 0..100_000 {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.engine.status().await)
    }

    /// Waits until so many messages arrived at a destination; what they are.
    pub async fn arrived(&self, destination: DestinationId, count: usize) -> Vec<String> {
        self.wait_for(async || {
            Some(self.receiver.arrived(destination)).filter(|arrived| arrived.len() >= count)
        })
        .await
    }

    /// Waits until a delivery is in a state.
    pub async fn until(&self, id: MessageId, number: usize, state: portway_model::DeliveryState) {
        let destination = self.destination(number);
        self.wait_for(async || {
            let deliveries = self.store.list_deliveries(id).await.unwrap();
            let mut found = deliveries.iter().filter(|view| view.destination == destination);
            found.any(|view| view.state == state).then_some(())
        })
        .await;
    }

    /// Waits until a run of a destination is in hand: a slow one, which stays there for a while.
    pub async fn until_in_hand(&self, number: usize) {
        let runs = async || self.engine.status().await.unwrap().destinations[number].runs;
        self.wait_for(async || (runs().await > 0).then_some(())).await;
    }

    /// Waits until a failed attempt of a message is stored.
    pub async fn attempted(&self, id: MessageId) {
        let attempts = async || self.store.list_attempts(id).await.unwrap();
        self.wait_for(async || (!attempts().await.is_empty()).then_some(())).await;
    }

    /// Pauses a destination, or lets it go on.
    pub async fn order(&self, number: usize, kind: DestinationActionKind) {
        let destination = self.destination(number);
        let (author, reason) = ("a test".into(), "to see".into());
        let action = DestinationAction { destination, kind, author, reason };
        self.engine.act_on_destination(action).await.unwrap();
    }

    /// Stops in order; the result of the engine.
    pub async fn stop(self) -> Result<(), EngineError> {
        self.engine.shutdown().await;
        self.task.await.unwrap()
    }

    /// Ends as if the process had died.
    pub async fn kill(self) -> MemoryStore {
        self.task.abort();
        let _ = self.task.await;
        self.store.crash();
        self.store
    }
}

/// Whether an engine owns its groups from the first.
enum Begins {
    AsOwner,
    AsStandby,
}

/// Owns every interface.
pub async fn claim(store: &MemoryStore, registered: &Registered) -> Tenure {
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    match store.claim(&groups, Timestamp(0)).await.unwrap() {
        Claimed::Owned(tenure) => tenure,
        Claimed::Refused(owners) => panic!("{owners:?}"),
    }
}

pub fn draft(body: &str, key: &str) -> Draft {
    Draft {
        body: body.to_owned().into(),
        key: Key::new(key),
        dedupe: None,
        occurred_at: None,
        attributes: Attributes::default(),
        doubt: None,
    }
}

pub fn settings(registered: &Registered, plan: &Plan) -> EngineSettings {
    let destination = |id: DestinationId, order| DestinationSettings {
        id,
        name: format!("destination-{id}"),
        order,
        concurrency: 4,
        retry: RetryPolicy { attempts_max: plan.attempts_max, ..plan.retry },
        on_quarantine: plan.on_quarantine,
        run_max: 16,
        guarantee: plan.guarantee,
        send_max: Duration::from_secs(30),
        rate: plan.rate,
    };
    let interface = |id: InterfaceId, destinations| InterfaceSettings {
        id,
        group: GroupId(id.0),
        name: format!("interface-{id}"),
        durability: Durability::Strict,
        dedupe_window: Some(Duration::from_secs(3_600)),
        search: vec!["key".to_owned()],
        destinations,
    };
    let (source, to) = &registered.interfaces[0];
    let (target, end) = &registered.interfaces[1];
    let destinations = to.iter().zip(&plan.orders).map(|(id, order)| destination(*id, *order)).collect();
    let ends = end.iter().map(|id| destination(*id, Order::Strict)).collect();
    EngineSettings {
        interfaces: vec![interface(*source, destinations), interface(*target, ends)],
        limits: plan.limits,
        pauses: registered.pauses.clone(),
        retentions: registered.retentions.clone(),
        aged_to: registered.aged_to,
    }
}
