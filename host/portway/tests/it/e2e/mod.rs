//! The real program on real projects, driven as its users drive it: over sockets, signals and
//! the command line.

mod changed;
mod dev;
mod developing;
mod disk;
mod disk_of_database;
mod files;
mod guides;
mod hostile;
mod hostile_source;
mod once;
mod operating;
mod outputs;
mod peer;
mod postgres;
mod process;
pub mod project;
mod refused;
mod respond;
mod retention;
mod routes;
mod rubbish;
mod secrets;
mod senders;
mod service;
mod state;
mod stopping;
mod tcp;
mod traces;
mod validating;
mod web;

use std::time::{Duration, Instant};

use peer::{Peer, message};
use process::Engine;
use project::Project;

/// How long anything may take on a busy machine before a test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until there is an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
