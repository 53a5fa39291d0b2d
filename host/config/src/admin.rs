//! The local HTTP API that the commands use.

use std::net::{Ipv4Addr, SocketAddr};

use crate::At;

group! {
    /// The local HTTP: `/health`, `/metrics` and the API that the commands use.
    AdminSettings at "admin" in "portway.toml" {
        /// Where it listens: a loopback address, `127.0.0.1:8620` if nothing is said.
        listen: Option<At<SocketAddr>>, marked(Env);
        /// Connections at the same time.
        connections_max: u32 = 64, within(1, 1_024);
    }
}

impl AdminSettings {
    /// Where it listens if nothing is said.
    pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8620);

    pub fn address(&self) -> SocketAddr {
        self.listen.as_ref().map_or(Self::LISTEN, |listen| listen.value)
    }
}
