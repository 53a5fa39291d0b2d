//! `portway drain`: nothing new is taken, what was accepted is delivered.

use std::fmt::Write;
use std::time::Duration;

use portway_admin::{params, views};
use serde::Serialize;

use super::{author, show};
use crate::cli::ProjectArgs;
use crate::client::{Client, ClientError};
use crate::output::{Exit, Output};

/// Takes no more messages and delivers what was accepted.
///
/// Sources are told that nothing is stored, with the code `draining`, until `--cancel` or the next
/// start. What waits for a retry, for a person or for a paused destination stays in the store.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// Wait until everything that can be delivered is, and say what is left.
    #[arg(long)]
    wait: bool,
    /// Stop the engine when everything that can be delivered is.
    #[arg(long)]
    stop: bool,
    /// Take messages again.
    #[arg(long, conflicts_with_all = ["wait", "stop"])]
    cancel: bool,
}

/// How often a waiting command looks.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// How far a drain is.
#[derive(Debug, Default, Serialize)]
struct Drained {
    /// None: the engine takes messages.
    drain: Option<views::Drain>,
    left: Vec<Left>,
}

/// What is left at a destination.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Left {
    interface: String,
    destination: String,
    waiting: u64,
    quarantined: u64,
    /// What it waits for.
    why: Vec<String>,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let client = Client::of(&args.project)?;
    if args.cancel {
        client.cancel_drain().await?;
        output.data(&Drained::default(), show_drained)?;
        return Ok(Exit::Done);
    }
    // With both, what is left is said while the engine still answers.
    let stops_at_once = args.stop && !args.wait;
    client.drain(&params::Drain { stop: stops_at_once, author: author() }).await?;
    if stops_at_once {
        output.note("the engine drains, and stops then");
        return Ok(Exit::Done);
    }
    let mut status = client.status().await?;
    while args.wait && !status.drain.as_ref().is_some_and(|drain| drain.done) {
        if status.drain.is_none() {
            anyhow::bail!("somebody took the drain back");
        }
        tokio::time::sleep(LOOKS_EVERY).await;
        status = client.status().await?;
    }
    if args.stop {
        client.drain(&params::Drain { stop: true, author: author() }).await?;
        until_gone(&client).await?;
    }
    output.data(&drained(&status), show_drained)?;
    Ok(Exit::Done)
}

async fn until_gone(client: &Client) -> Result<(), ClientError> {
    loop {
        match client.status().await {
            // It closes connections as it ends.
            Err(ClientError::NotRunning { .. } | ClientError::Broken(_)) => return Ok(()),
            // The machines end before the API does.
            Ok(_) | Err(ClientError::Refused(_)) => tokio::time::sleep(LOOKS_EVERY).await,
            Err(error) => return Err(error),
        }
    }
}

fn drained(status: &views::Status) -> Drained {
    let destinations = status
        .interfaces
        .iter()
        .flat_map(|interface| interface.destinations.iter().map(move |destination| (interface, destination)));
    let waiting = destinations.filter(|(_, found)| found.waiting > 0 || found.quarantined > 0);
    let left = waiting.map(|(interface, destination)| Left {
        interface: interface.name.clone(),
        destination: destination.name.clone(),
        waiting: destination.waiting,
        quarantined: destination.quarantined,
        why: why(destination),
    });
    Drained { drain: status.drain.clone(), left: left.collect() }
}

fn why(destination: &views::Destination) -> Vec<String> {
    let mut why = Vec::new();
    let reason = destination.why.as_ref().map(|why| why.text.as_str()).unwrap_or_default();
    let state = match destination.state {
        views::DestinationState::Running => None,
        views::DestinationState::Waiting => Some(format!("it is away: {reason}")),
        views::DestinationState::Stopped => Some(format!("it is stopped: {reason}")),
        views::DestinationState::Paused => Some(format!("it is paused by {reason}")),
    };
    if destination.waiting > 0 {
        let held = destination.blocked.iter().filter(|lane| lane.due_at.is_none()).count() as u64;
        let retrying = destination.lanes_blocked.saturating_sub(held);
        let is_told = state.is_some() || destination.lanes_blocked > 0;
        why.extend(state);
        if held > 0 {
            why.push(format!("{} held by a quarantined message", show::counted(held, "lane")));
        }
        if retrying > 0 {
            why.push(format!("{} waiting for a retry", show::counted(retrying, "lane")));
        }
        if !is_told {
            why.push("waiting for a retry, or still on its way".to_owned());
        }
    }
    if destination.quarantined > 0 {
        why.push(format!("{} quarantined", show::number(destination.quarantined)));
    }
    why
}

fn show_drained(drained: &Drained) -> String {
    let mut text = match &drained.drain {
        Some(drain) if drain.done => "drained".to_owned(),
        Some(_) => "draining: `portway drain --wait` waits for its end".to_owned(),
        None => "the engine takes messages again".to_owned(),
    };
    for left in &drained.left {
        let Left { interface, destination, waiting, .. } = left;
        let waiting = show::number(*waiting);
        let _ = write!(text, "\n  {interface}/{destination}: {waiting} left: {}", left.why.join(", "));
    }
    text
}
