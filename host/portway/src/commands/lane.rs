//! `portway lane`: the head of a lane that is blocked is skipped, or tried now.

use clap::Subcommand;
use portway_admin::params;
use portway_model::MessageId;

use super::author;
use crate::cli::{ProjectArgs, Slot};
use crate::client::Client;
use crate::output::{Exit, Output};

/// Lets a lane that is blocked go on.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Dismisses the message that a lane waits for; what comes behind it goes on.
    Skip(SkipArgs),
    /// Tries the message that a lane waits for now, in its place and with the attempts it has.
    ///
    /// A quarantined message that holds its lane is sent again.
    Retry(RetryArgs),
}

/// Which lane.
#[derive(Debug, clap::Args)]
struct LaneArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The destination.
    #[arg(value_name = "INTERFACE/DESTINATION")]
    slot: Slot,
    /// The lane; not needed where only one is blocked.
    #[arg(long, value_name = "NUMBER")]
    lane: Option<u16>,
    /// The message that blocks it, instead of the lane.
    #[arg(long, value_name = "ID", conflicts_with = "lane")]
    message: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct SkipArgs {
    #[command(flatten)]
    lane: LaneArgs,
    /// Why, for the record.
    #[arg(long)]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct RetryArgs {
    #[command(flatten)]
    lane: LaneArgs,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    reason: String,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let (lane, verb, reason) = match args.command {
        Command::Skip(SkipArgs { lane, reason }) => (lane, "skip", reason),
        Command::Retry(RetryArgs { lane, reason }) => (lane, "retry", reason),
    };
    let LaneArgs { project, slot, lane, message } = lane;
    let act = params::ActOnLane { lane, message: message.map(MessageId), reason, author: author() };
    let done = Client::of(&project)?.act_on_lane(&slot, verb, &act).await?;
    output.data(&done, |done| {
        let did = if verb == "skip" { "is dismissed" } else { "is tried now" };
        format!("message {} {did} at {}", done.message, done.destinations.join(", "))
    })?;
    Ok(Exit::Done)
}
