//! Where an interface receives from: a listener and the plugin that reads its bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::{
    At, AuthSettings, ByteSize, GrantSettings, HttpPath, Isolation, Method, Name, PluginSettings, PluginUse,
    ProjectPath,
};

group! {
    /// Where an interface receives from.
    /// An interface that only routes lead to has none.
    SourceSettings at "source" in "interfaces/*.toml" {
        /// The source plugin, such as `mllp`, `http` or `file`; or a component of `wasi:http`, which
        /// answers requests itself: nothing is stored, and the interface has no destinations.
        plugin: At<Name>;
        /// Address and port to listen on; a source that looks for messages by itself has none.
        /// HTTP sources with different paths may share one.
        listen: Option<At<SocketAddr>>, marked(Env);
        /// Requests for which path an HTTP source or component takes; `"/orders/*"` is all below `/orders`.
        /// Where several fit, the longest takes it.
        path: Option<At<HttpPath>>;
        /// Which methods it takes; without it an HTTP source takes `POST`, and a component that
        /// answers itself takes all.
        methods: Option<Vec<Method>>;
        /// What requests have to show; without it everyone who can reach it may send.
        auth: Option<AuthSettings>;
        /// Connections at the same time; one more is refused.
        connections_max: u32 = 100, within(1, 65_536);
        /// A connection on which nothing arrives for so long is closed; `"0s"`: never. One of an HTTP
        /// source is closed after `frame_timeout` without a new request.
        idle_timeout: Duration = Duration::from_secs(600), within(Duration::ZERO, Duration::from_secs(7 * 86_400));
        /// A message that began has to end within this time; of an HTTP request its head, and its body.
        frame_timeout: Duration = Duration::from_secs(30), within(Duration::from_millis(100), Duration::from_secs(3_600));
        /// How often the system looks whether a silent peer is still there; `"0s"`: never.
        keepalive: Duration = Duration::from_secs(15), within(Duration::ZERO, Duration::from_secs(3_600));
        /// Who may connect; empty: everyone who can reach the address.
        allow: Vec<IpNet> = Vec::new();
        /// Speak TLS.
        tls: Option<TlsSettings>;
        /// Bytes of the body that a component which answers itself may answer with; a longer one
        /// is a fault of the component.
        response_bytes_max: ByteSize = ByteSize::mb(8), within(ByteSize::kb(1), ByteSize::mb(1_024));
        /// Settings of the plugin; its page says which there are. A component that answers itself
        /// has them as variables of its environment.
        settings: PluginSettings, marked(Env), absent(Defaults);
        /// What the plugin may reach, by the names of the slots in its manifest.
        grants: BTreeMap<Name, At<GrantSettings>> = BTreeMap::new();
        /// `shared`: calls share instances, one after the other; `call`: every call has a fresh one.
        /// Without it a source is shared, and a component that answers itself gets a fresh instance
        /// for every request.
        isolation: Option<Isolation>;
        /// Fuel for each message or request, instead of the engine's.
        fuel_per_message: Option<u64>, within(1_000_000, 1_000_000_000_000);
        /// Memory of an instance, instead of the engine's.
        memory_bytes_max: Option<ByteSize>, within(ByteSize::mb(1), ByteSize::mb(4_096));
    }
}

impl SourceSettings {
    /// The plugin's part of it.
    pub fn plugin_use(&self) -> PluginUse {
        PluginUse {
            plugin: self.plugin.clone(),
            settings: self.settings.clone(),
            grants: self.grants.clone(),
            isolation: self.isolation.unwrap_or_default(),
            fuel_per_message: self.fuel_per_message,
            memory_bytes_max: self.memory_bytes_max,
        }
    }

    /// Two sources can share a listener that they want to be the same.
    pub(crate) fn listens_alike(&self, other: &SourceSettings) -> bool {
        self.connections_max == other.connections_max
            && self.idle_timeout == other.idle_timeout
            && self.frame_timeout == other.frame_timeout
            && self.keepalive == other.keepalive
            && self.allow == other.allow
            && tls_files(self) == tls_files(other)
    }
}

fn tls_files(source: &SourceSettings) -> Option<[Option<&ProjectPath>; 3]> {
    let tls = source.tls.as_ref()?;
    let clients = tls.clients.as_ref().map(|clients| &clients.value);
    Some([Some(&tls.certificate.value), Some(&tls.key.value), clients])
}

group! {
    /// The certificate a listener shows, and those it wants to see.
    TlsSettings at "source.tls" in "interfaces/*.toml" {
        /// PEM file with the certificate and its chain.
        certificate: At<ProjectPath>;
        /// PEM file with the private key.
        key: At<ProjectPath>;
        /// PEM file with the authorities of clients: only who shows a certificate of theirs gets in.
        clients: Option<At<ProjectPath>>;
    }
}
