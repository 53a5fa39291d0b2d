//! The sources that run: which listener belongs to which interfaces, and how one comes, changes or
//! goes while the others go on.
//!
//! HTTP sources that name one address share its listener; one of them changes without its
//! connections being closed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portway_config::LimitSettings;
use portway_engine::EngineHandle;
use portway_net::listen::{ListenSettings, Listener};
use portway_sources::adapters::{EngineIntake, EnginePollIntake, PluginCodec, PluginEndpoint, PluginPoller};
use portway_sources::http::{HttpDriver, KeptRefusals, Route, RouteTable, Serves};
use portway_sources::poll::{PollDriver, PollLimits};
use portway_sources::{Budget, Counters, Driver, SourceLimits};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::clock::SystemClock;
use super::observer::PluginObserver;
use super::running::StartError;
use super::sources::{Opened, OpenedSource, SourceHandle, SourceParts, WebServes, WebSource};
use super::threads::Threads;
use super::traces::Traces;

type WebRoute = Route<EngineIntake, PluginEndpoint>;

/// See the file.
pub struct SourceSet {
    budget: Budget,
    /// Those with a driver of their own, by interface.
    alone: BTreeMap<String, Alone>,
    web: Vec<Web>,
}

struct Alone {
    parts: SourceParts,
    /// Where it was asked to listen.
    asked: Option<SocketAddr>,
    driver: Running,
}

/// One listener of HTTP sources, and of components that answer requests themselves.
struct Web {
    listen: ListenSettings,
    listens: SocketAddr,
    /// By interface.
    routes: BTreeMap<String, (WebRoute, SourceParts)>,
    table: RouteTable<EngineIntake, PluginEndpoint>,
    stop: watch::Sender<bool>,
    /// Where it runs. A component that comes to it later runs there as well.
    threads: Handle,
    /// None: it does not run yet.
    task: Option<JoinHandle<()>>,
    /// It runs when it has all of its first routes: before, it would refuse what it is about to take.
    driver: Option<WebDriver>,
}

/// A driver on its threads.
struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// A driver of HTTP sources, and when it is to stop.
type WebDriver = (HttpDriver<EngineIntake, PluginEndpoint>, watch::Receiver<bool>);

/// Sockets that are bound before anything of before is stopped, by interface.
#[derive(Default)]
pub struct Listeners(BTreeMap<String, Listener>);

/// What drivers share.
pub struct Surroundings<'a> {
    pub limits: LimitSettings,
    pub engine: &'a EngineHandle,
    pub threads: &'a Threads,
    pub clock: Arc<SystemClock>,
    /// None: nobody wants to know.
    pub traces: Option<Arc<Traces>>,
}

impl SourceSet {
    pub fn new(limits: &LimitSettings) -> SourceSet {
        let budget = Budget::new(limits.intake_bytes_max.as_usize());
        SourceSet { budget, alone: BTreeMap::new(), web: Vec::new() }
    }

    /// What is seen of an interface's source; none: only routes lead to it.
    pub fn parts(&self, interface: &str) -> Option<SourceParts> {
        let of_web = || self.web.iter().find_map(|web| web.routes.get(interface));
        let alone = self.alone.get(interface).map(|alone| &alone.parts);
        alone.or_else(|| of_web().map(|(_, parts)| parts)).cloned()
    }

    /// Binds the addresses that are new. Those that are ours already are bound when their sources
    /// have stopped.
    pub fn listen(&self, coming: &[Opened], threads: &Threads) -> Result<Listeners, StartError> {
        let mut listeners = Listeners::default();
        let mut web: BTreeSet<SocketAddr> = BTreeSet::new();
        let places = Places::of(coming, threads);
        for opened in coming {
            let Some(listen) = opened.listen() else { continue };
            let is_web = matches!(opened.what, OpenedSource::Web(..));
            let is_shared = is_web && listen.address.port() != 0 && !web.insert(listen.address);
            if !is_shared && !self.has_asked_for(listen.address) {
                listeners.0.insert(opened.interface.clone(), places.bind(opened, listen)?);
            }
        }
        Ok(listeners)
    }

    fn has_asked_for(&self, address: SocketAddr) -> bool {
        let alone = self.alone.values().filter_map(|alone| alone.asked);
        let mut asked = alone.chain(self.web.iter().map(|web| web.listen.address));
        address.port() != 0 && asked.any(|asked| asked == address)
    }

    /// Stops the sources of these interfaces, in order; `coming` take the places of some. An HTTP
    /// source that stays on its listener goes on until it is replaced.
    pub async fn make_room(&mut self, going: &BTreeSet<String>, coming: &[Opened]) {
        let alone: Vec<Alone> =
            self.alone.extract_if(.., |name, _| going.contains(name)).map(|(_, one)| one).collect();
        let mut drivers: Vec<Running> = alone.into_iter().map(|one| one.driver).collect();
        for web in std::mem::take(&mut self.web) {
            match web.without(going, coming) {
                Ok(web) => self.web.push(web),
                Err(driver) => drivers.extend(driver),
            }
        }
        stop(drivers).await;
    }

    /// Runs sources; those that cannot listen after all are told.
    pub fn start(
        &mut self,
        coming: Vec<Opened>,
        mut listeners: Listeners,
        around: &Surroundings<'_>,
    ) -> Vec<StartError> {
        let mut failed = Vec::new();
        let places = Places::of(&coming, around.threads);
        for opened in coming {
            let bound = listeners.0.remove(&opened.interface);
            failed.extend(self.start_one(opened, bound, &places, around).err());
        }
        self.web.iter_mut().for_each(Web::run);
        failed
    }

    fn start_one(
        &mut self,
        opened: Opened,
        bound: Option<Listener>,
        places: &Places<'_>,
        around: &Surroundings<'_>,
    ) -> Result<(), StartError> {
        let threads = places.threads(&opened).clone();
        let Opened { interface, id, observer, what } = opened;
        let listener = |listen: &ListenSettings| match bound {
            Some(listener) => Ok(listener),
            None => bind(&interface, listen, (around.threads, &threads)),
        };
        let traces = around.traces.as_ref();
        let witness = traces.map(|traces| traces.witness(&interface, observer.plugin()));
        match what {
            OpenedSource::Stream(codec, listen) => {
                let listener = listener(&listen)?;
                let intake = EngineIntake::new(around.engine.clone(), id, witness);
                let stream = (listener, codec, intake);
                let (handle, driver) = run_stream(stream, self.budget.clone(), around);
                let parts = SourceParts { handle, observer };
                self.alone.insert(interface, Alone { parts, asked: Some(listen.address), driver });
            }
            OpenedSource::Poll(poller, destinations) => {
                let intake = EnginePollIntake::new(around.engine.clone(), id, destinations, witness);
                let (handle, driver) = run_poll(poller, intake, around);
                let parts = SourceParts { handle, observer };
                self.alone.insert(interface, Alone { parts, asked: None, driver });
            }
            OpenedSource::Web(source, listen) => {
                let intake = EngineIntake::new(around.engine.clone(), id, witness);
                let route = route(*source, intake, around);
                let shares = |web: &&mut Web| listen.address.port() != 0 && web.listen == listen;
                if let Some(web) = self.web.iter_mut().find(shares) {
                    web.add(interface, route, observer);
                } else {
                    let mut web =
                        new_web((listener(&listen)?, listen, threads.clone()), self.budget.clone(), around);
                    web.add(interface, route, observer);
                    self.web.push(web);
                }
            }
        }
        Ok(())
    }

    /// Stops all, in order: everything they were promised is answered.
    pub async fn stop(self) {
        let alone = self.alone.into_values().map(|one| one.driver);
        stop(alone.chain(self.web.into_iter().filter_map(Web::into_running))).await;
    }
}

/// All at the same time.
async fn stop(drivers: impl IntoIterator<Item = Running>) {
    let told = drivers.into_iter().inspect(|driver| {
        let _ = driver.stop.send(true);
    });
    for driver in told.collect::<Vec<_>>() {
        if let Err(error) = driver.task.await {
            tracing::error!(%error, "the task of a source failed");
        }
    }
}

impl Web {
    /// Without routes that go; the driver, if none is left.
    fn without(mut self, going: &BTreeSet<String>, coming: &[Opened]) -> Result<Web, Option<Running>> {
        let stays =
            |opened: &Opened| matches!(&opened.what, OpenedSource::Web(_, listen) if *listen == self.listen);
        let staying: BTreeSet<&String> =
            coming.iter().filter(|one| stays(one)).map(|one| &one.interface).collect();
        let before = self.routes.len();
        self.routes.retain(|name, _| !going.contains(name) || staying.contains(name));
        if self.routes.is_empty() {
            return Err(self.into_running());
        }
        if self.routes.len() < before {
            self.set_routes();
        }
        Ok(self)
    }

    fn into_running(self) -> Option<Running> {
        self.task.map(|task| Running { stop: self.stop, task })
    }

    fn run(&mut self) {
        if let Some((driver, stopped)) = self.driver.take() {
            self.task = Some(self.threads.spawn(driver.run(asked(stopped))));
        }
    }

    fn add(&mut self, interface: String, route: WebRoute, observer: Arc<PluginObserver>) {
        let handle = self.table.handle(&route);
        let parts = SourceParts { handle: SourceHandle::Web(handle, self.listens), observer };
        self.routes.insert(interface, (route, parts));
        self.set_routes();
    }

    fn set_routes(&self) {
        self.table.set(self.routes.values().map(|(route, _)| route.clone()).collect());
    }
}

/// Which threads listeners belong to.
struct Places<'a> {
    threads: &'a Threads,
    /// Where a component answers requests itself: what it computes must not keep the peers of other
    /// sources waiting.
    responding: BTreeSet<SocketAddr>,
}

impl<'a> Places<'a> {
    fn of(coming: &[Opened], threads: &'a Threads) -> Places<'a> {
        let responding = coming.iter().filter(|opened| opened.responds()).filter_map(Opened::listen);
        let addresses = responding.map(|listen| listen.address).filter(|address| address.port() != 0);
        Places { threads, responding: addresses.collect() }
    }

    fn threads(&self, opened: &Opened) -> &'a Handle {
        let is_web = matches!(opened.what, OpenedSource::Web(..));
        let is_shared = || opened.listen().is_some_and(|listen| self.responding.contains(&listen.address));
        if is_web && (opened.responds() || is_shared()) {
            self.threads.responders()
        } else {
            self.threads.sources()
        }
    }

    fn bind(&self, opened: &Opened, listen: &ListenSettings) -> Result<Listener, StartError> {
        bind(&opened.interface, listen, (self.threads, self.threads(opened)))
    }
}

fn bind(
    interface: &str,
    listen: &ListenSettings,
    (threads, on): (&Threads, &Handle),
) -> Result<Listener, StartError> {
    let listening = threads.listen(listen.clone(), on);
    listening.map_err(|source| StartError::Listen { interface: interface.to_owned(), source })
}

/// Ready when the word to stop was given, or nobody can give it any more.
async fn asked(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn run_stream(
    (listener, codec, intake): (Listener, PluginCodec, EngineIntake),
    budget: Budget,
    around: &Surroundings<'_>,
) -> (SourceHandle, Running) {
    let limits = SourceLimits {
        message_bytes_max: around.limits.message_bytes_max.as_usize(),
        stop_timeout: around.limits.stop_timeout,
        ..SourceLimits::default()
    };
    let address = listener.local_addr();
    let shared = (budget, Counters::new(), around.clock.clone() as Arc<_>);
    let (driver, handle) = Driver::new(listener, codec, intake, limits, shared);
    let (stop, stopped) = watch::channel(false);
    let task = around.threads.sources().spawn(driver.run(asked(stopped)));
    (SourceHandle::Stream(handle, address), Running { stop, task })
}

fn run_poll(
    poller: PluginPoller,
    intake: EnginePollIntake,
    around: &Surroundings<'_>,
) -> (SourceHandle, Running) {
    let limits = poll_limits(&around.limits, around.engine);
    let (driver, handle) = PollDriver::new(poller, intake, limits, (Counters::new(), around.clock.clone()));
    let (stop, stopped) = watch::channel(false);
    let task = around.threads.polls().spawn(driver.run(asked(stopped)));
    (SourceHandle::Poll(handle), Running { stop, task })
}

fn poll_limits(limits: &LimitSettings, engine: &EngineHandle) -> PollLimits {
    /// What a guest may hand over at once leaves room for more than the messages.
    const BYTES_MAX: usize = 4 << 20;
    let max = engine.unit_max();
    let bytes_max = max.bytes.min(BYTES_MAX).min(limits.copy_bytes_max.as_usize() / 2);
    PollLimits {
        items_max: u32::try_from(max.messages).unwrap_or(u32::MAX >> 1),
        bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX >> 1),
        message_bytes_max: limits.message_bytes_max.as_usize(),
        wait_max: (limits.call_timeout / 2).min(Duration::from_secs(10)),
    }
}

fn route(source: WebSource, intake: EngineIntake, around: &Surroundings<'_>) -> WebRoute {
    let WebSource { serves, path, methods, auth } = source;
    let serves = match serves {
        WebServes::Source(endpoint) => Serves::Source { endpoint, intake },
        WebServes::Component(component) => Serves::Component(component),
    };
    Route {
        path,
        methods,
        auth,
        serves,
        counters: Counters::new(),
        body_bytes_max: around.limits.message_bytes_max.as_usize(),
        refusals: KeptRefusals::default(),
        traced: around.traces.as_ref().is_some_and(|traces| traces.incoming),
    }
}

/// A listener without a route.
fn new_web(
    (listener, listen, threads): (Listener, ListenSettings, Handle),
    budget: Budget,
    around: &Surroundings<'_>,
) -> Web {
    let listens = listener.local_addr();
    let shared = (budget, around.clock.clone() as Arc<_>);
    let (driver, _) = HttpDriver::new(listener, Vec::new(), around.limits.stop_timeout, shared);
    let table = driver.table();
    let (stop, stopped) = watch::channel(false);
    let driver = Some((driver, stopped));
    Web { listen, listens, routes: BTreeMap::new(), table, stop, threads, task: None, driver }
}
