//! Sources of a project: plugins opened, listeners bound, drivers started, what is seen of them.
//!
//! Everything that can fail is done by [`bind`], before the engine runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portway_config::{
    AuthSettings, InterfaceSettings, LimitSettings, Project, Role, SignatureScheme, SourceSettings,
};
use portway_engine::EngineHandle;
use portway_model::{DestinationId, InterfaceId};
use portway_net::listen::{ListenSettings, Listener, TlsFiles};
use portway_runtime::{Opening, Plugin, PluginKind, Scheme as RequestScheme};
use portway_sources::adapters::{
    EngineIntake, EnginePollIntake, PluginCodec, PluginEndpoint, PluginPoller, PluginResponder,
};
use portway_sources::http::{
    Auth, HttpDriver, HttpHandle, KeptRefusals, Methods, Route, RoutePath, Scheme, Serves, Signature,
};
use portway_sources::poll::{PollDriver, PollHandle, PollLimits, PollStatus};
use portway_sources::{Budget, Counters, Driver, DriverHandle, Refusal, SourceLimits, SourceStatus};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::assemble::{AssembleError, Plugins};
use super::clock::SystemClock;
use super::names::Names;
use super::observer::PluginObserver;
use super::openings::{self, Owner};
use super::running::StartError;
use super::threads::Threads;

/// Sources that are ready to run.
pub struct Bound {
    streams: Vec<BoundStream>,
    polls: Vec<BoundPoll>,
    /// By the address that was asked for; each of port 0 apart.
    web: Vec<BoundWeb>,
}

/// What names one interface's source.
struct Own {
    /// Its place in the project.
    interface: usize,
    id: InterfaceId,
    observer: Arc<PluginObserver>,
}

struct BoundStream {
    own: Own,
    listener: Listener,
    codec: PluginCodec,
}

struct BoundPoll {
    own: Own,
    poller: PluginPoller,
    destinations: Vec<DestinationId>,
}

/// One listener of HTTP sources.
struct BoundWeb {
    listener: Listener,
    sources: Vec<WebSource>,
    /// One of them answers requests itself.
    responds: bool,
}

struct WebSource {
    own: Own,
    serves: WebServes,
    path: RoutePath,
    methods: Methods,
    auth: Option<Auth>,
}

enum WebServes {
    Source(PluginEndpoint),
    Component(Arc<PluginResponder>),
}

/// What is seen of an interface's source.
pub struct SourceParts {
    pub handle: SourceHandle,
    pub observer: Arc<PluginObserver>,
}

/// What is seen of a driver.
pub enum SourceHandle {
    Stream(DriverHandle, SocketAddr),
    Web(HttpHandle, SocketAddr),
    Poll(PollHandle),
}

/// What drivers share.
pub struct Surroundings<'a> {
    pub project: &'a Project,
    pub engine: &'a EngineHandle,
    pub threads: &'a Threads,
    pub clock: Arc<SystemClock>,
    /// True: stop.
    pub stop: watch::Receiver<bool>,
}

/// Opens the sources' plugins and binds their listeners.
pub async fn bind(
    project: &Project,
    plugins: &mut Plugins<'_>,
    names: &Names,
    threads: &Threads,
) -> Result<Bound, StartError> {
    let mut bound = Bound { streams: Vec::new(), polls: Vec::new(), web: Vec::new() };
    let mut web_by_address: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    let responding = responding(project, plugins).await?;
    for (index, interface) in project.interfaces.iter().enumerate() {
        let Some(settings) = &interface.source else { continue };
        let (name, plugin_use) = (interface.name.as_str(), settings.plugin_use());
        let plugin = plugins.load(Role::Source, settings.plugin.value.as_str()).await?;
        let observer = plugins.observer(name, "", plugin.name());
        let own = Own {
            interface: index,
            id: names.interface(name).unwrap_or_default(),
            observer: observer.clone(),
        };
        let owner = Owner { interface: name, destination: "" };
        let opening = openings::of_use(&owner, &plugin_use, plugin.manifest(), &project.limits, observer);
        match plugin.kind() {
            PluginKind::PollSource => {
                let poller = PluginPoller::new(plugin.poll_source(opening).map_err(AssembleError::from)?);
                let destinations = destinations(interface, names);
                bound.polls.push(BoundPoll { own, poller, destinations });
            }
            kind @ (PluginKind::HttpSource | PluginKind::Respond) => {
                let source = web_source(own, serves(&plugin, opening, settings)?, settings);
                let address = settings.listen.as_ref().map(|listen| listen.value);
                let shared = address.and_then(|address| web_by_address.get(&address).copied());
                if let Some(web) = shared.and_then(|at| bound.web.get_mut(at)) {
                    web.sources.push(source);
                    continue;
                }
                let responds =
                    kind == PluginKind::Respond || address.is_some_and(|one| responding.contains(&one));
                let on = if responds { threads.responders() } else { threads.sources() };
                let listener = listen(name, settings, threads, on)?;
                if let Some(address) = address.filter(|address| address.port() != 0) {
                    web_by_address.insert(address, bound.web.len());
                }
                bound.web.push(BoundWeb { listener, sources: vec![source], responds });
            }
            // Other kinds refuse to be opened as a source.
            PluginKind::StreamSource
            | PluginKind::Transform
            | PluginKind::Sender
            | PluginKind::HttpSender => {
                let codec = PluginCodec::new(plugin.stream_source(opening).map_err(AssembleError::from)?);
                let listener = listen(name, settings, threads, threads.sources())?;
                bound.streams.push(BoundStream { own, listener, codec });
            }
        }
    }
    Ok(bound)
}

fn destinations(interface: &InterfaceSettings, names: &Names) -> Vec<DestinationId> {
    let of = |name| names.destination(interface.name.as_str(), name);
    interface.destinations.iter().filter_map(|one| of(one.name.value.as_str())).collect()
}

/// Where components listen that answer requests themselves.
async fn responding(
    project: &Project,
    plugins: &mut Plugins<'_>,
) -> Result<BTreeSet<SocketAddr>, AssembleError> {
    let mut addresses = BTreeSet::new();
    for settings in project.interfaces.iter().filter_map(|interface| interface.source.as_ref()) {
        let plugin = plugins.load(Role::Source, settings.plugin.value.as_str()).await?;
        if plugin.kind() == PluginKind::Respond {
            let address = settings.listen.as_ref().map(|listen| listen.value);
            addresses.extend(address.filter(|address| address.port() != 0));
        }
    }
    Ok(addresses)
}

/// What takes the requests; a component gets a fresh instance for each, unless the project says
/// otherwise.
fn serves(
    plugin: &Plugin,
    mut opening: Opening,
    settings: &SourceSettings,
) -> Result<WebServes, AssembleError> {
    if plugin.kind() == PluginKind::HttpSource {
        return Ok(WebServes::Source(PluginEndpoint::new(plugin.http_source(opening)?)));
    }
    if settings.isolation.is_none() {
        opening.isolation = portway_runtime::Isolation::Call;
    }
    let scheme = if settings.tls.is_some() { RequestScheme::Https } else { RequestScheme::Http };
    let responder = plugin.responder(opening, settings.response_bytes_max.as_usize())?;
    Ok(WebServes::Component(Arc::new(PluginResponder::new(responder, scheme))))
}

fn listen(
    interface: &str,
    settings: &SourceSettings,
    threads: &Threads,
    on: &Handle,
) -> Result<Listener, StartError> {
    let Some(address) = settings.listen.as_ref().map(|listen| listen.value) else {
        return Err(StartError::NoListener { interface: interface.to_owned() });
    };
    let settings = ListenSettings {
        address,
        connections_max: settings.connections_max,
        idle_timeout: settings.idle_timeout,
        frame_timeout: settings.frame_timeout,
        keepalive: (!settings.keepalive.is_zero()).then_some(settings.keepalive),
        allow: settings.allow.clone(),
        tls: settings.tls.as_ref().map(|tls| TlsFiles {
            certificate: tls.certificate.value.as_path().to_owned(),
            key: tls.key.value.as_path().to_owned(),
            clients: tls.clients.as_ref().map(|clients| clients.value.as_path().to_owned()),
        }),
    };
    let listening = threads.listen(settings, on);
    listening.map_err(|source| StartError::Listen { interface: interface.to_owned(), source })
}

fn web_source(own: Own, serves: WebServes, settings: &SourceSettings) -> WebSource {
    let path = match &settings.path {
        None => RoutePath::Below("/".into()),
        Some(path) => match path.value.below() {
            Some(below) => RoutePath::Below(below.to_owned()),
            None => RoutePath::Exact(path.value.as_str().to_owned()),
        },
    };
    let methods = match (&settings.methods, &serves) {
        (Some(methods), _) => {
            Methods::These(methods.iter().map(|method| method.as_str().to_owned()).collect())
        }
        (None, WebServes::Source(_)) => Methods::These(vec!["POST".to_owned()]),
        (None, WebServes::Component(_)) => Methods::Any,
    };
    WebSource { own, serves, path, methods, auth: settings.auth.as_ref().map(auth) }
}

fn auth(settings: &AuthSettings) -> Auth {
    let both = |one: &portway_config::Secret, former: &Option<portway_config::Secret>| {
        let all = std::iter::once(one).chain(former);
        all.map(|secret| secret.reveal().to_owned()).collect::<Vec<_>>()
    };
    match settings {
        AuthSettings::Bearer(bearer) => Auth::Bearer(both(&bearer.token, &bearer.former)),
        AuthSettings::Basic(basic) => {
            Auth::Basic { user: basic.user.reveal().to_owned(), password: basic.password.reveal().to_owned() }
        }
        AuthSettings::Header(header) => {
            Auth::Header { name: header.name.to_lowercase(), values: both(&header.value, &header.former) }
        }
        AuthSettings::Signature(signature) => {
            let scheme = match signature.scheme {
                SignatureScheme::StandardWebhooks => {
                    Scheme::StandardWebhooks { tolerance: signature.tolerance }
                }
                SignatureScheme::Body => Scheme::Body {
                    header: signature.header.to_lowercase(),
                    prefix: signature.prefix.clone().unwrap_or_default(),
                },
            };
            let secrets = both(&signature.secret, &signature.former);
            let keys = secrets.iter().map(|secret| scheme.key_of(secret)).collect();
            Auth::Signature(Signature { keys, scheme })
        }
    }
}

impl Bound {
    /// Runs all drivers; what is seen of each, by the place of its interface.
    pub fn run(self, around: &Surroundings<'_>, drivers: &mut JoinSet<()>) -> Vec<(usize, SourceParts)> {
        let budget = Budget::new(around.project.limits.intake_bytes_max.as_usize());
        let mut parts = Vec::new();
        for stream in self.streams {
            parts.push(run_stream(stream, around, budget.clone(), drivers));
        }
        for poll in self.polls {
            parts.push(run_poll(poll, around, drivers));
        }
        for web in self.web {
            parts.extend(run_web(web, around, budget.clone(), drivers));
        }
        parts
    }
}

/// Ready when the word to stop was given, or nobody can give it any more.
async fn asked(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn run_stream(
    stream: BoundStream,
    around: &Surroundings<'_>,
    budget: Budget,
    drivers: &mut JoinSet<()>,
) -> (usize, SourceParts) {
    let limits = SourceLimits {
        message_bytes_max: around.project.limits.message_bytes_max.as_usize(),
        stop_timeout: around.project.limits.stop_timeout,
        ..SourceLimits::default()
    };
    let BoundStream { own, listener, codec } = stream;
    let address = listener.local_addr();
    let intake = EngineIntake::new(around.engine.clone(), own.id);
    let shared = (budget, Counters::new(), around.clock.clone() as Arc<_>);
    let (driver, handle) = Driver::new(listener, codec, intake, limits, shared);
    drivers.spawn_on(driver.run(asked(around.stop.clone())), around.threads.sources());
    own.seen(SourceHandle::Stream(handle, address))
}

fn run_poll(poll: BoundPoll, around: &Surroundings<'_>, drivers: &mut JoinSet<()>) -> (usize, SourceParts) {
    let BoundPoll { own, poller, destinations } = poll;
    let intake = EnginePollIntake::new(around.engine.clone(), own.id, destinations);
    let limits = poll_limits(&around.project.limits, around.engine);
    let (driver, handle) = PollDriver::new(poller, intake, limits, (Counters::new(), around.clock.clone()));
    drivers.spawn_on(driver.run(asked(around.stop.clone())), around.threads.polls());
    own.seen(SourceHandle::Poll(handle))
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

fn run_web(
    web: BoundWeb,
    around: &Surroundings<'_>,
    budget: Budget,
    drivers: &mut JoinSet<()>,
) -> Vec<(usize, SourceParts)> {
    let limits = &around.project.limits;
    let (mut routes, mut owns) = (Vec::new(), Vec::new());
    for source in web.sources {
        let WebSource { own, serves, path, methods, auth } = source;
        let serves = match serves {
            WebServes::Source(endpoint) => {
                Serves::Source { endpoint, intake: EngineIntake::new(around.engine.clone(), own.id) }
            }
            WebServes::Component(component) => Serves::Component(component),
        };
        routes.push(Route {
            path,
            methods,
            auth,
            serves,
            counters: Counters::new(),
            body_bytes_max: limits.message_bytes_max.as_usize(),
            refusals: KeptRefusals::default(),
        });
        owns.push(own);
    }
    let address = web.listener.local_addr();
    let shared = (budget, around.clock.clone() as Arc<_>);
    let (driver, handles) = HttpDriver::new(web.listener, routes, limits.stop_timeout, shared);
    let threads = if web.responds { around.threads.responders() } else { around.threads.sources() };
    drivers.spawn_on(driver.run(asked(around.stop.clone())), threads);
    owns.into_iter().zip(handles).map(|(own, handle)| own.seen(SourceHandle::Web(handle, address))).collect()
}

impl Own {
    fn seen(self, handle: SourceHandle) -> (usize, SourceParts) {
        (self.interface, SourceParts { handle, observer: self.observer })
    }
}

impl SourceHandle {
    pub fn status(&self) -> SourceStatus {
        match self {
            SourceHandle::Stream(handle, _) => handle.status(),
            SourceHandle::Web(handle, _) => handle.status(),
            SourceHandle::Poll(handle) => handle.status().counts,
        }
    }

    /// The newest refusals, newest first.
    pub fn refusals(&self) -> Vec<Refusal> {
        match self {
            SourceHandle::Stream(handle, _) => handle.refusals(),
            SourceHandle::Web(handle, _) => handle.refusals(),
            SourceHandle::Poll(_) => Vec::new(),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            SourceHandle::Stream(_, address) | SourceHandle::Web(_, address) => Some(*address),
            SourceHandle::Poll(_) => None,
        }
    }

    /// What it does, where it looks for messages by itself.
    pub fn poll(&self) -> Option<PollStatus> {
        match self {
            SourceHandle::Poll(handle) => Some(handle.status()),
            SourceHandle::Stream(..) | SourceHandle::Web(..) => None,
        }
    }
}
