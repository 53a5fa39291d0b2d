//! Sockets that whoever started the process had opened already, as systemd does for a socket unit.
//!
//! They stay open while the process is restarted, so that no peer is refused in between. A listener
//! takes the one that listens where it would; nothing else is told by their names.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

use listenfd::ListenFd;
use portway_config::Environment;

/// Those that no listener has taken.
#[derive(Debug, Default)]
pub struct PassedSockets {
    left: Mutex<Vec<Passed>>,
}

#[derive(Debug)]
struct Passed {
    address: SocketAddr,
    /// The name of its unit, or what that unit calls it.
    name: String,
    socket: TcpListener,
}

impl PassedSockets {
    pub fn none() -> PassedSockets {
        PassedSockets::default()
    }

    /// What was passed to this process: `LISTEN_FDS` of them, meant for `LISTEN_PID`, with names in
    /// `LISTEN_FDNAMES`. Asked once, before anything is opened.
    pub fn of_process(environment: &Environment) -> PassedSockets {
        let names: Vec<_> = environment.get("LISTEN_FDNAMES").unwrap_or_default().split(':').collect();
        let mut passed = ListenFd::from_env();
        let mut left = Vec::new();
        for index in 0..passed.len() {
            let name = names.get(index).copied().unwrap_or("unknown").to_owned();
            match passed.take_tcp_listener(index).and_then(|taken| taken.map(usable).transpose()) {
                Ok(Some((socket, address))) => left.push(Passed { address, name, socket }),
                Ok(None) => {}
                Err(error) => tracing::warn!(name, %error, "a passed socket is no TCP listener"),
            }
        }
        PassedSockets { left: Mutex::new(left) }
    }

    /// The socket that listens exactly there. Port 0 is none: it asks for a port of its own.
    pub fn take(&self, address: SocketAddr) -> Option<TcpListener> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let at = left.iter().position(|passed| passed.address == address)?;
        let Passed { name, socket, .. } = left.swap_remove(at);
        tracing::info!(%address, name, "listening on a passed socket");
        Some(socket)
    }

    /// Lets go of those that nobody wanted, and says so.
    pub fn close_the_rest(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        for Passed { address, name, .. } in left.drain(..) {
            tracing::warn!(%address, name, "a passed socket is closed: no listener of the project has its address");
        }
    }
}

fn usable(socket: TcpListener) -> std::io::Result<(TcpListener, SocketAddr)> {
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_takes_the_socket_of_its_address_once() {
        let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let passed = Passed { address, name: "lab".into(), socket };
        let sockets = PassedSockets { left: Mutex::new(vec![passed]) };
        assert!(sockets.take(([127, 0, 0, 1], 1).into()).is_none());
        assert_eq!(sockets.take(address).unwrap().local_addr().unwrap(), address);
        assert!(sockets.take(address).is_none());
        sockets.close_the_rest();
    }
}
