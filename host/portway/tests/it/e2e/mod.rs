//! The real program on real projects, driven as its users drive it: over sockets, signals and
//! the command line.
//!
//! What is about messages and what becomes of them is tested on both stores, each function that takes a
//! [`project::StoreKind`] by way of `on_both_stores!`. The others store in a file: what is refused before a
//! store is opened, what is about peers, plugins and service managers, `portway dev`, whose store is
//! temporary, and what is about the file itself.

/// A test of each function on each store: `NAME::on_sqlite` and `NAME::on_postgres`.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::e2e::project::StoreKind;

            #[tokio::test(flavor = "multi_thread")]
            async fn on_sqlite() {
                super::$name(StoreKind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                super::$name(StoreKind::Postgres).await;
            }
        }
    )+};
}

mod changed;
mod dev;
mod developing;
mod disk;
mod disk_of_database;
mod failover;
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
