//! Where an interface receives from: a listener and the plugin that reads its bytes.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::{At, Name, PluginSettings, ProjectPath};

group! {
    /// Where an interface receives from.
    /// An interface that only routes lead to has none.
    SourceSettings at "source" in "interfaces/*.toml" {
        /// The source plugin, such as `mllp`.
        plugin: At<Name>;
        /// Address and port to listen on.
        listen: At<SocketAddr>, marked(Env);
        /// Connections at the same time; one more is refused.
        connections_max: u32 = 100, within(1, 65_536);
        /// A connection on which nothing arrives for so long is closed; `"0s"`: never.
        idle_timeout: Duration = Duration::from_secs(600), within(Duration::ZERO, Duration::from_secs(7 * 86_400));
        /// A message that began has to end within this time.
        frame_timeout: Duration = Duration::from_secs(30), within(Duration::from_millis(100), Duration::from_secs(3_600));
        /// How often the system looks whether a silent peer is still there; `"0s"`: never.
        keepalive: Duration = Duration::from_secs(15), within(Duration::ZERO, Duration::from_secs(3_600));
        /// Who may connect; empty: everyone who can reach the address.
        allow: Vec<IpNet> = Vec::new();
        /// Speak TLS.
        tls: Option<TlsSettings>;
        /// Settings of the plugin; its page says which there are.
        settings: PluginSettings, marked(Env), absent(Defaults);
    }
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
