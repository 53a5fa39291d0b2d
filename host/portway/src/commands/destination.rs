//! `portway destination`: pause, resume, and what was done.

use clap::Subcommand;
use portway_admin::{params, views};

use super::{author, show};
use crate::cli::{ProjectArgs, Slot};
use crate::client::Client;
use crate::output::{Exit, Output};

/// Pauses destinations and lets them go on.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sends nothing new to a destination until it is resumed, also after a restart.
    ///
    /// Messages are still received and stored, and what is on its way is finished.
    Pause(PauseArgs),
    /// Lets a destination go on that was paused or stopped, or is away.
    Resume(ResumeArgs),
    /// Lists who paused and resumed a destination, newest first.
    Actions(ActionsArgs),
}

#[derive(Debug, clap::Args)]
struct PauseArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The destination.
    #[arg(value_name = "INTERFACE/DESTINATION")]
    slot: Slot,
    /// Why, for the record.
    #[arg(long)]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct ResumeArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The destination.
    #[arg(value_name = "INTERFACE/DESTINATION")]
    slot: Slot,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct ActionsArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The destination.
    #[arg(value_name = "INTERFACE/DESTINATION")]
    slot: Slot,
}

/// What is done to a destination.
#[derive(Clone, Copy, Debug)]
pub enum Verb {
    Pause,
    Resume,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Verb::Pause => "pause",
            Verb::Resume => "resume",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Verb::Pause => "is paused",
            Verb::Resume => "goes on",
        }
    }
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    match args.command {
        Command::Pause(PauseArgs { project, slot, reason }) => {
            act(&project, &slot, Verb::Pause, reason, output).await
        }
        Command::Resume(ResumeArgs { project, slot, reason }) => {
            act(&project, &slot, Verb::Resume, reason, output).await
        }
        Command::Actions(ActionsArgs { project, slot }) => {
            let client = Client::of(&project)?;
            output.data(&client.list_destination_actions(&slot).await?, |actions| show_actions(actions))?;
            Ok(Exit::Done)
        }
    }
}

/// Does it and says so.
pub async fn act(
    project: &ProjectArgs,
    slot: &Slot,
    verb: Verb,
    reason: String,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let client = Client::of(project)?;
    let word = params::Word { reason, author: author() };
    let done = client.act_on_destination(slot, verb.as_str(), &word).await?;
    output.data(&done, |done| format!("{} of {} {}", done.destination, done.interface, verb.done()))?;
    Ok(Exit::Done)
}

fn show_actions(actions: &[views::DestinationActionRecord]) -> String {
    let row = |action: &views::DestinationActionRecord| {
        [action.at.to_string(), action.action.clone(), action.author.clone(), action.reason.clone()]
    };
    show::table(["AT", "ACTION", "BY", "REASON"], &actions.iter().map(row).collect::<Vec<_>>())
}
