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
mod held_move;
mod http;
mod memory;
mod place;
mod prefill;
mod process;
mod queue_page;
mod respond;
mod search;
mod start;
mod transform;
mod web;

use std::time::Duration;

use anyhow::anyhow;
use portway_model::Order;

use crate::output::{Exit, Output};
use figure::Figure;
use held_move::HeldMove;
use place::Place;

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
        #[command(flatten)]
        kept: KeptArgs,
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
        #[command(flatten)]
        kept: KeptArgs,
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
        #[arg(long, default_value_t = 64)]
        connections: usize,
        #[command(flatten)]
        kept: KeptArgs,
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
        #[command(flatten)]
        kept: KeptArgs,
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
        #[command(flatten)]
        kept: KeptArgs,
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
        #[command(flatten)]
        kept: KeptArgs,
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
        #[command(flatten)]
        kept: KeptArgs,
    },
    /// A page of a queue beside the same page of a queue that holds nothing else: with many messages waiting behind
    /// it, and with many delivered ahead; with `--store` also while an old snapshot is held open.
    QueuePage {
        /// Deliveries of a page.
        #[arg(long, default_value_t = 500)]
        page: u32,
        /// Messages that wait or were delivered.
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        #[command(flatten)]
        kept: KeptArgs,
    },
    /// Acknowledgements while old messages that still wait are held beyond their time, beside the same without; with
    /// `--store` only, since a file has no partitions.
    HeldMove {
        /// Deliveries that move.
        #[arg(long, default_value_t = 300_000)]
        deliveries: u64,
        /// Messages a second that arrive meanwhile.
        #[arg(long, default_value_t = 200.0)]
        rate: f64,
        /// How long they arrive without a move.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
        #[command(flatten)]
        kept: KeptArgs,
    },
    /// Time of a search by key and by control id among many messages, and what the index costs.
    Search {
        /// Messages in the store.
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        /// Searches of each kind.
        #[arg(long, default_value_t = 1_000)]
        searches: u64,
        #[command(flatten)]
        kept: KeptArgs,
    },
}

/// Where a case keeps its messages.
#[derive(Debug, clap::Args)]
struct KeptArgs {
    /// A PostgreSQL server, in place of a file.
    /// Databases of its own (`portway_bench_…`) are made there and removed at the end; the one that is named stays
    /// as it is
    #[arg(long, value_name = "URL")]
    store: Option<String>,
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
    let place = Place::new(args.case.server());
    let measured = tokio::select! {
        measured = measure(args.case, &place) => measured,
        () = super::interrupted() => Err(anyhow!("stopped")),
    };
    let cleaned = place.clean().await;
    for figure in measured? {
        output.data(&figure, Figure::text)?;
    }
    cleaned?;
    Ok(Exit::Done)
}

impl Case {
    /// The server that was named.
    fn server(&self) -> Option<String> {
        match self {
            Case::Transform { .. } | Case::Respond { .. } => None,
            Case::Acks { kept, .. }
            | Case::Backlog { kept, .. }
            | Case::Fanout { kept, .. }
            | Case::File { kept, .. }
            | Case::Http { kept, .. }
            | Case::Start { kept, .. }
            | Case::Memory { kept, .. }
            | Case::QueuePage { kept, .. }
            | Case::HeldMove { kept, .. }
            | Case::Search { kept, .. } => kept.store.clone(),
        }
    }
}

async fn measure(case: Case, place: &Place) -> anyhow::Result<Vec<Figure>> {
    let seconds = Duration::from_secs;
    let mut figures = match case {
        Case::Transform { seconds: time, batch } => return transform::measure(seconds(time), batch).await,
        Case::Respond { connections, seconds: time, isolation } => {
            return respond::measure(connections, seconds(time), &isolation).await;
        }
        Case::Acks { connections, seconds: time, .. } => {
            acks::measure(place, connections, seconds(time)).await?
        }
        Case::Backlog { messages, order, .. } => backlog::measure(place, messages, order).await?,
        Case::Fanout { destinations, messages, connections, .. } => {
            fanout::measure(place, destinations, messages, connections).await?
        }
        Case::File { rows, durability, destinations, .. } => {
            file::measure(place, rows, durability == "relaxed", destinations).await?
        }
        Case::Http { connections, seconds: time, body, .. } => {
            http::measure(place, connections, seconds(time), body).await?
        }
        Case::Start { interfaces, waiting, .. } => start::measure(place, interfaces, waiting).await?,
        Case::QueuePage { page, messages, .. } => queue_page::measure(place, page, messages).await?,
        Case::HeldMove { deliveries, rate, seconds: time, .. } => {
            held_move::measure(place, &HeldMove { deliveries, rate, without: seconds(time) }).await?
        }
        Case::Search { messages, searches, .. } => search::measure(place, messages, searches).await?,
        Case::Memory { many, few, .. } => memory::measure(place, many, few).await?,
    };
    figures.iter_mut().for_each(|figure| figure.store = Some(place.name()));
    Ok(figures)
}
