//! The line between an engine and its database, which can be cut.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;

/// Forwards connections to a port until it is cut; as long as this process lives.
pub(super) struct Line {
    pub(super) port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    /// Both ends of every connection, by its number.
    open: HashMap<u64, [TcpStream; 2]>,
    next: u64,
}

impl Line {
    pub(super) fn to(server: u16) -> Result<Line> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is away is an engine's to notice: its connection ends.
                let _ = connect(client, server, &shared);
            }
        });
        Ok(Line { port, state })
    }

    /// Ends what is open, and refuses what comes.
    pub(super) fn cut(&self) {
        let mut state = lock(&self.state);
        state.is_cut = true;
        for end in state.open.values().flatten() {
            // It may have ended by itself.
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn mend(&self) {
        lock(&self.state).is_cut = false;
    }
}

fn connect(client: TcpStream, server: u16, state: &Arc<Mutex<State>>) -> io::Result<()> {
    if lock(state).is_cut {
        return Ok(());
    }
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
    }
    let number = {
        let mut state = lock(state);
        // It was cut while this connected.
        if state.is_cut {
            return Ok(());
        }
        state.next += 1;
        let number = state.next;
        state.open.insert(number, [client.try_clone()?, server.try_clone()?]);
        number
    };
    let (back, forth) = ((server.try_clone()?, client.try_clone()?), (client, server));
    for (from, to) in [forth, back] {
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            carry(from, to);
            lock(&state).open.remove(&number);
        });
    }
    Ok(())
}

/// One direction until it ends, which ends the other.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing is left half done by whoever panicked.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_line_carries_until_it_is_cut_and_again_when_it_is_mended() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let line = Line::to(server.local_addr().unwrap().port()).unwrap();
        let ask = || TcpStream::connect((Ipv4Addr::LOCALHOST, line.port)).unwrap();
        let mut client = ask();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"forth").unwrap();
        let mut said = [0; 5];
        served.read_exact(&mut said).unwrap();
        served.write_all(b"back!").unwrap();
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"back!");
        line.cut();
        assert!(matches!(client.read(&mut said), Ok(0) | Err(_)));
        assert!(matches!(served.read(&mut said), Ok(0) | Err(_)));
        assert!(matches!(ask().read(&mut said), Ok(0) | Err(_)), "nobody gets through");
        line.mend();
        let mut client = ask();
        client.write_all(b"again").unwrap();
        server.accept().unwrap().0.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"again");
    }
}
