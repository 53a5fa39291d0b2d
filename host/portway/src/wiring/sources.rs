//! Sources of interfaces: plugins opened, ready to run, and what is seen of them.
//!
//! Which of them run, and on which listeners, is in `source_set`.

use std::net::SocketAddr;
use std::sync::Arc;

use portway_config::{AuthSettings, InterfaceSettings, LimitSettings, Role, SignatureScheme, SourceSettings};
use portway_model::{DestinationId, InterfaceId};
use portway_net::listen::{ListenSettings, TlsFiles};
use portway_runtime::{Isolation, Opening, Plugin, PluginKind, Scheme as RequestScheme};
use portway_sources::adapters::{PluginCodec, PluginEndpoint, PluginPoller, PluginResponder};
use portway_sources::http::{Auth, HttpHandle, Methods, RoutePath, Scheme, Signature};
use portway_sources::poll::{PollHandle, PollStatus};
use portway_sources::{DriverHandle, Refusal, SourceStatus};
use zeroize::Zeroizing;

use super::assemble::{AssembleError, Plugins};
use super::names::Names;
use super::observer::PluginObserver;
use super::openings::{self, Owner};
use super::running::StartError;

/// A source whose plugin is opened; it has no socket yet.
pub struct Opened {
    pub interface: String,
    pub id: InterfaceId,
    pub observer: Arc<PluginObserver>,
    pub what: OpenedSource,
}

/// The kinds of sources.
pub enum OpenedSource {
    Stream(PluginCodec, ListenSettings),
    Poll(PluginPoller, Vec<DestinationId>),
    Web(Box<WebSource>, ListenSettings),
}

/// What an HTTP source, or a component that answers requests itself, takes.
pub struct WebSource {
    pub serves: WebServes,
    pub path: RoutePath,
    pub methods: Methods,
    pub auth: Option<Auth>,
}

/// Who answers the requests.
pub enum WebServes {
    Source(PluginEndpoint),
    Component(Arc<PluginResponder>),
}

/// What is seen of an interface's source. Cheap to clone.
#[derive(Clone)]
pub struct SourceParts {
    pub handle: SourceHandle,
    pub observer: Arc<PluginObserver>,
}

/// What is seen of a driver.
#[derive(Clone)]
pub enum SourceHandle {
    Stream(DriverHandle, SocketAddr),
    Web(HttpHandle, SocketAddr),
    Poll(PollHandle),
}

/// Opens the source of an interface; none: only routes lead to it.
pub async fn open(
    interface: &InterfaceSettings,
    limits: &LimitSettings,
    plugins: &mut Plugins<'_>,
    names: &Names,
) -> Result<Option<Opened>, StartError> {
    let Some(settings) = &interface.source else { return Ok(None) };
    let (name, plugin_use) = (interface.name.as_str(), settings.plugin_use());
    let plugin = plugins.load(Role::Source, settings.plugin.value.as_str()).await?;
    let observer = plugins.observer(name, "", plugin.name());
    let owner = Owner { interface: name, destination: "" };
    let mut opening = openings::of_use(&owner, &plugin_use, plugin.manifest(), limits, observer.clone());
    opening.timed = plugins.times_sources;
    let what = match plugin.kind() {
        PluginKind::PollSource => {
            let poller = PluginPoller::new(plugin.poll_source(opening).map_err(AssembleError::from)?);
            OpenedSource::Poll(poller, destinations(interface, names))
        }
        PluginKind::HttpSource | PluginKind::Respond => {
            let source = web_source(serves(&plugin, opening, settings)?, settings);
            OpenedSource::Web(Box::new(source), listen_settings(name, settings)?)
        }
        // Other kinds refuse to be opened as a source.
        PluginKind::StreamSource | PluginKind::Transform | PluginKind::Sender | PluginKind::HttpSender => {
            let codec = PluginCodec::new(plugin.stream_source(opening).map_err(AssembleError::from)?);
            OpenedSource::Stream(codec, listen_settings(name, settings)?)
        }
    };
    let id = names.interface(name).unwrap_or_default();
    Ok(Some(Opened { interface: name.to_owned(), id, observer, what }))
}

fn destinations(interface: &InterfaceSettings, names: &Names) -> Vec<DestinationId> {
    let of = |name| names.destination(interface.name.as_str(), name);
    interface.destinations.iter().filter_map(|one| of(one.name.value.as_str())).collect()
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
        opening.isolation = Isolation::Call;
    }
    let scheme = if settings.tls.is_some() { RequestScheme::Https } else { RequestScheme::Http };
    let responder = plugin.responder(opening, settings.response_bytes_max.as_usize())?;
    Ok(WebServes::Component(Arc::new(PluginResponder::new(responder, scheme))))
}

fn listen_settings(interface: &str, settings: &SourceSettings) -> Result<ListenSettings, StartError> {
    let Some(address) = settings.listen.as_ref().map(|listen| listen.value) else {
        return Err(StartError::NoListener { interface: interface.to_owned() });
    };
    Ok(ListenSettings {
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
    })
}

fn web_source(serves: WebServes, settings: &SourceSettings) -> WebSource {
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
    WebSource { serves, path, methods, auth: settings.auth.as_ref().map(auth) }
}

fn auth(settings: &AuthSettings) -> Auth {
    let both = |one: &portway_config::Secret, former: &Option<portway_config::Secret>| {
        let all = std::iter::once(one).chain(former);
        all.map(|secret| Zeroizing::new(secret.reveal().to_owned())).collect::<Vec<_>>()
    };
    match settings {
        AuthSettings::Bearer(bearer) => Auth::Bearer(both(&bearer.token, &bearer.former)),
        AuthSettings::Basic(basic) => {
            let password = Zeroizing::new(basic.password.reveal().to_owned());
            Auth::Basic { user: basic.user.reveal().to_owned(), password }
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

impl Opened {
    /// It answers requests itself.
    pub fn responds(&self) -> bool {
        matches!(&self.what, OpenedSource::Web(web, _) if matches!(web.serves, WebServes::Component(_)))
    }

    /// Where it is to listen.
    pub fn listen(&self) -> Option<&ListenSettings> {
        match &self.what {
            OpenedSource::Stream(_, listen) | OpenedSource::Web(_, listen) => Some(listen),
            OpenedSource::Poll(..) => None,
        }
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
