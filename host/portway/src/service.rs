//! What a service manager is told: that the engine is ready, that it stops, that it lives.
//!
//! systemd's protocol: lines of text in a datagram to the socket that `NOTIFY_SOCKET` names. Without
//! one nothing is told.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use portway_config::Environment;

/// Tells the service manager, if there is one.
#[derive(Debug)]
pub struct ServiceNotifier {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceNotifier {
    /// As the process was started. What cannot be used is logged and left out.
    pub fn of_process(environment: &Environment) -> ServiceNotifier {
        let to = environment.get("NOTIFY_SOCKET").filter(|name| !name.is_empty()).and_then(|name| {
            let opened = address(name).and_then(|address| Ok((UnixDatagram::unbound()?, address)));
            opened.inspect_err(|error| tracing::warn!(name, %error, "cannot reach the service manager")).ok()
        });
        let (every, process) = (environment.get("WATCHDOG_USEC"), environment.get("WATCHDOG_PID"));
        ServiceNotifier { to, watchdog: watchdog(every, process, std::process::id()) }
    }

    /// Everything listens, and what waited is being delivered.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// Nothing new is taken any more.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping");
    }

    /// The engine answers.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// How often it is to be told that the engine lives: twice in the time after which the manager
    /// gives it up. None: it does not ask.
    pub fn alive_every(&self) -> Option<Duration> {
        self.to.as_ref().and(self.watchdog).map(|longest| longest / 2)
    }

    fn tell(&self, text: &str) {
        let Some((socket, to)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(text.as_bytes(), to) {
            tracing::warn!(%error, "the service manager does not listen");
        }
    }
}

/// A path, or a name of Linux' own that begins with `@`.
fn address(name: &str) -> io::Result<SocketAddr> {
    match name.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(own) => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(own)
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(io::ErrorKind::Unsupported.into()),
        None => SocketAddr::from_pathname(name),
    }
}

/// The time is for one process; a child that inherits the variables is not meant.
fn watchdog(every: Option<&str>, process: Option<&str>, own: u32) -> Option<Duration> {
    let is_meant = process.is_none_or(|process| process.parse() == Ok(own));
    let micros: u64 = every?.parse().ok()?;
    (is_meant && micros > 0).then(|| Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_for_the_process_it_names() {
        assert_eq!(watchdog(Some("3000000"), Some("7"), 7), Some(Duration::from_secs(3)));
        assert_eq!(watchdog(Some("3000000"), None, 7), Some(Duration::from_secs(3)));
        assert_eq!(watchdog(Some("3000000"), Some("8"), 7), None);
        assert_eq!(watchdog(Some("0"), None, 7), None);
        assert_eq!(watchdog(Some("soon"), None, 7), None);
        assert_eq!(watchdog(None, None, 7), None);
    }

    #[test]
    fn a_name_with_an_at_sign_is_no_path() {
        assert_eq!(address("/run/a").unwrap().as_pathname().unwrap().to_str(), Some("/run/a"));
        assert!(address("@a").unwrap().as_pathname().is_none());
        assert!(address(&"x".repeat(200)).is_err());
    }
}
