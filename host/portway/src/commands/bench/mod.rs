//! `portway bench`: what this machine reaches, one JSON object a line.
//!
//! A benchmark is a program, not a test: it claims nothing and always ends well unless it could
//! not measure. Run it alone; a busy second core makes a flush forty times slower.

mod acks;
mod backlog;
mod engine;
mod fanout;
mod figure;
mod file;
mod http;
mod memory;
mod prefill;
mod process;
mod respond;
mod search;
mod start;
mod transform;
mod web;

use std::time::Duration;

use portway_model::Order;

use crate::output::{Exit, Output};
use figure::Figure;

/// Measures a case and prints its figures.
///
/// Every figure comes with the commits behind it, the time of a flush on this disk, the cores
/// and the load of the machine.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    case: Case,
}

#[derive(Debug, clap::Subcommand)]
enum Case {
    /// Durable MLLP acknowledgements, closed loop, one file destination draining.
    Acks {
        /// Connections at the same time, each with one message under way.
        #[arg(long, default_value_t = 16)]
        connections: usize,
        /// How long to send.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// `oru-to-json` on one core, fuel on.
    Transform {
        /// How long to transform.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Messages in a call.
        #[arg(long, default_value_t = 64)]
        batch: usize,
    },
    /// Messages that wait at the start, one file destination in append mode.
    Backlog {
        /// Messages that wait.
        #[arg(long, default_value_t = 100_000)]
        messages: u64,
        /// The destination's order: `strict`, `key` or `none`.
        #[arg(long, default_value = "strict", value_parser = order)]
        order: Order,
    },
    /// One message to many file destinations, no transform.
    Fanout {
        /// Destinations of the interface.
        #[arg(long, default_value_t = 25)]
        destinations: usize,
        /// Messages to send.
        #[arg(long, default_value_t = 8_000)]
        messages: u64,
        /// Connections at the same time.
        #[arg(long, default_value_t = 16)]
        connections: usize,
    },
    /// A file of CSV rows, split and stored.
    File {
        /// Rows of the file.
        #[arg(long, default_value_t = 300_000)]
        rows: u64,
        /// What an acknowledgement promises: `strict` or `relaxed`.
        #[arg(long, default_value = "strict", value_parser = ["strict", "relaxed"])]
        durability: String,
        /// File destinations of the interface.
        #[arg(long, default_value_t = 0)]
        destinations: usize,
    },
    /// Durable answers over HTTP, closed loop, one file destination draining.
    Http {
        /// Connections at the same time, each with one request under way.
        #[arg(long, default_value_t = 64)]
        connections: usize,
        /// How long to send.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Bytes of a body.
        #[arg(long, default_value_t = 1_024)]
        body: usize,
    },
    /// Answers of a component of `wasi:http`, closed loop, nothing stored.
    Respond {
        /// Connections at the same time, each with one request under way.
        #[arg(long, default_value_t = 4)]
        connections: usize,
        /// How long to ask.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Whether each request has a fresh instance (`call`) or they share instances (`shared`).
        #[arg(long, default_value = "call", value_parser = ["call", "shared"])]
        isolation: String,
    },
    /// Time to ready, memory and idle processor time of a project with many interfaces.
    Start {
        /// Interfaces of the project.
        #[arg(long, default_value_t = 1_001)]
        interfaces: usize,
        /// Messages that wait.
        #[arg(long, default_value_t = 0)]
        waiting: u64,
    },
    /// Memory with many messages waiting beside memory with few: as they are, behind a blocked
    /// lane, and waiting for a retry.
    Memory {
        /// Messages that wait in the large case.
        #[arg(long, default_value_t = 1_000_000)]
        many: u64,
        /// Messages that wait in the small case.
        #[arg(long, default_value_t = 100)]
        few: u64,
    },
    /// Time of a search by key and by control id among many messages, and what the index costs.
    Search {
        /// Messages in the store.
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        /// Searches of each kind.
        #[arg(long, default_value_t = 1_000)]
        searches: u64,
    },
}

fn order(text: &str) -> Result<Order, String> {
    match text {
        "strict" => Ok(Order::Strict),
        "key" => Ok(Order::Key),
        "none" => Ok(Order::None),
        _ => Err("one of strict, key, none".to_owned()),
    }
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let figures = match args.case {
        Case::Acks { connections, seconds } => acks::measure(connections, Duration::from_secs(seconds)).await,
        Case::Transform { seconds, batch } => transform::measure(Duration::from_secs(seconds), batch).await,
        Case::Backlog { messages, order } => backlog::measure(messages, order).await,
        Case::Fanout { destinations, messages, connections } => {
            fanout::measure(destinations, messages, connections).await
        }
        Case::File { rows, durability, destinations } => {
            file::measure(rows, durability == "relaxed", destinations).await
        }
        Case::Http { connections, seconds, body } => {
            http::measure(connections, Duration::from_secs(seconds), body).await
        }
        Case::Respond { connections, seconds, isolation } => {
            respond::measure(connections, Duration::from_secs(seconds), &isolation).await
        }
        Case::Start { interfaces, waiting } => start::measure(interfaces, waiting).await,
        Case::Search { messages, searches } => search::measure(messages, searches).await,
        Case::Memory { many, few } => memory::measure(many, few).await,
    };
    for figure in figures? {
        output.data(&figure, Figure::text)?;
    }
    Ok(Exit::Done)
}
