//! Stopping and starting under load: what was acknowledged arrives, each key in order.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use portway::traffic::receive::Desk;
use portway::traffic::{
    Behaviour, GenerateProgress, GenerateReport, GenerateSettings, Protocol, ReceiveSettings, Receiver,
    Stopper, generate,
};
use rustix::process::Signal;
use tokio::task::JoinHandle;

use super::project::{StoreKind, to_file};
use super::{Engine, Project, until};

on_both_stores!(
    a_stop_under_load_loses_nothing_and_keeps_every_key_in_order,
    kills_under_load_lose_nothing_and_keep_every_key_in_order,
    a_second_signal_ends_at_once,
);

/// An address that is the same after a restart, below those the system draws by itself.
pub fn fixed_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let start = 15_000 + (std::process::id() % 150) as u16 * 100;
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// A receiver of this process.
pub struct Sink {
    pub address: SocketAddr,
    pub desk: Arc<Desk>,
    _stopper: Stopper,
    task: JoinHandle<()>,
}

impl Sink {
    pub async fn start(protocol: Protocol) -> Sink {
        let listen = ([127, 0, 0, 1], 0).into();
        let settings = ReceiveSettings { listen, protocol, behaviour: Behaviour::default(), ledger: None };
        let receiver = Receiver::bind(settings).await.unwrap();
        let (address, desk) = (receiver.local_addr().unwrap(), receiver.desk());
        let (stopper, stop) = Stopper::new();
        Sink { address, desk, _stopper: stopper, task: tokio::spawn(receiver.run(stop)) }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A generator that runs until it is told to end.
pub struct Load {
    progress: Arc<GenerateProgress>,
    stopper: Stopper,
    task: JoinHandle<GenerateReport>,
}

impl Load {
    pub fn start(to: SocketAddr) -> Load {
        let settings = GenerateSettings {
            connections: 4,
            keys: 20,
            size: 500,
            rate: Some(500.0),
            ..GenerateSettings::to(to.to_string())
        };
        let progress: Arc<GenerateProgress> = Arc::default();
        let (stopper, stop) = Stopper::new();
        let (counts, generating) = (progress.clone(), progress.clone());
        let task = tokio::spawn(async move { generate(settings, generating, stop).await.unwrap() });
        Load { progress: counts, stopper, task }
    }

    pub fn acknowledged(&self) -> u64 {
        self.progress.acknowledged()
    }

    /// Waits for so many more acknowledgements.
    pub async fn more(&self, count: u64) {
        let wanted = self.progress.acknowledged() + count;
        until("more is acknowledged", async || (self.progress.acknowledged() >= wanted).then_some(())).await;
    }

    pub async fn end(self) -> GenerateReport {
        self.stopper.stop();
        self.task.await.unwrap()
    }
}

fn project(store: StoreKind, to: SocketAddr, sink: SocketAddr) -> Project {
    let project = Project::on(store, "");
    interface(&project, to, sink);
    project
}

/// An interface `lab` that delivers to a receiver and to a file.
pub fn interface(project: &Project, to: SocketAddr, sink: SocketAddr) {
    let retry = "retry = { first_wait = \"50ms\", longest_wait = \"200ms\" }";
    let web = format!(
        "[[destination]]\nname = \"web\"\n{retry}\n[destination.sender]\nplugin = \"http\"\n\
         grants.api = {{ type = \"http\", url = \"http://{sink}\" }}\n"
    );
    let json = "[[destination.transform]]\nplugin = \"oru-to-json\"\n";
    project.mllp("lab", &format!("listen = \"{to}\"\n"), &(web + &to_file("file", retry, json)));
}

/// Everything that was acknowledged is at both destinations, each key in order.
pub async fn check(project: &Project, engine: &mut Engine, sink: &Sink, report: &GenerateReport) {
    assert_eq!((report.rejected, report.foreign), (0, 0), "{report:?}");
    let acknowledged = report.acknowledged;
    engine.drained("lab", "web").await;
    engine.drained("lab", "file").await;
    let tally = sink.desk.tally().report();
    // A message that was stored but not acknowledged any more may have arrived, too.
    let unsure = report.unacknowledged.len() as u64;
    assert!(tally.is_good(), "{tally:?}");
    assert!((acknowledged..=acknowledged + unsure).contains(&tally.distinct), "{report:?} {tally:?}");
    let lines = portway::traffic::Tally::default();
    for identity in project.delivered("file") {
        let seen = portway::traffic::message::Seen { identity, sent_at: None };
        lines.record(Some(&seen), portway::traffic::message::now());
    }
    let lines = lines.report();
    assert!(lines.is_good(), "{lines:?}");
    assert_eq!(lines.distinct, tally.distinct);
}

async fn a_stop_under_load_loses_nothing_and_keeps_every_key_in_order(store: StoreKind) {
    let (to, sink) = (fixed_address(), Sink::start(Protocol::Http).await);
    let project = project(store, to, sink.address);
    let mut engine = project.run().await;
    let load = Load::start(to);
    for _ in 0..3 {
        load.more(300).await;
        engine.stop().await;
        engine = project.run().await;
    }
    // A receiver that is away leaves a backlog behind, which waits over a stop.
    sink.desk.behave(Behaviour { status: Some(503), ..Behaviour::default() });
    load.more(200).await;
    engine.stop().await;
    sink.desk.behave(Behaviour::default());
    engine = project.run().await;
    load.more(100).await;
    let report = load.end().await;
    check(&project, &mut engine, &sink, &report).await;
    engine.stop().await;
}

async fn kills_under_load_lose_nothing_and_keep_every_key_in_order(store: StoreKind) {
    let (to, sink) = (fixed_address(), Sink::start(Protocol::Http).await);
    let project = project(store, to, sink.address);
    let mut engine = project.run().await;
    let load = Load::start(to);
    for _ in 0..4 {
        load.more(200).await;
        engine.kill();
        engine = project.run().await;
    }
    load.more(50).await;
    let report = load.end().await;
    check(&project, &mut engine, &sink, &report).await;
}

async fn a_second_signal_ends_at_once(store: StoreKind) {
    let (to, sink) = (fixed_address(), Sink::start(Protocol::Http).await);
    let project = project(store, to, sink.address);
    let mut engine = project.run().await;
    // A delivery that is in hand keeps the stop waiting.
    sink.desk.behave(Behaviour { hang: true, ..Behaviour::default() });
    let load = Load::start(to);
    load.more(100).await;
    engine
        .until_status("a run is in hand", |status| {
            (super::process::find(status, "lab", "web").runs > 0).then_some(())
        })
        .await;
    engine.signal(Signal::TERM);
    until("it says that it stops", async || {
        engine.log().contains("a second signal ends at once").then_some(())
    })
    .await;
    let asked = Instant::now();
    engine.signal(Signal::TERM);
    let status = engine.ended().await;
    assert_eq!(status.code(), Some(130));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    sink.desk.behave(Behaviour::default());
    let mut engine = project.run().await;
    load.more(50).await;
    let report = load.end().await;
    check(&project, &mut engine, &sink, &report).await;
}
