//! `portway retention`: how long messages are kept, and agreeing to a shorter time.

use clap::Subcommand;
use portway_admin::{params, views};

use super::{author, show};
use crate::cli::ProjectArgs;
use crate::client::Client;
use crate::output::{Exit, Output};

/// Shows how long messages are kept: what is applied, changes and waits, and what stays beyond its window.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Agrees to a retention that removes messages; until then the longer one counts.
    Confirm(ConfirmArgs),
}

#[derive(Debug, clap::Args)]
struct ConfirmArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// Whose messages.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    reason: String,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    match args.command {
        None => {
            let client = Client::of(&args.project)?;
            output.data(&client.list_retention().await?, show_all)?;
        }
        Some(Command::Confirm(ConfirmArgs { project, interface, reason })) => {
            let client = Client::of(&project)?;
            let word = params::Word { reason, author: author() };
            output.data(&client.confirm_retention(&interface, &word).await?, show_confirmed)?;
        }
    }
    Ok(Exit::Done)
}

fn show_all(all: &views::Retentions) -> String {
    let rows: Vec<_> = all.interfaces.iter().map(row).collect();
    let mut text = show::table(["INTERFACE", "KEPT", "CHANGE", "WAITS", "OLDEST", "KEPT BEYOND"], &rows);
    for one in all.interfaces.iter().filter(|one| is_unconfirmed(one)) {
        text.push_str(&format!("\n\nconfirm it: portway retention confirm {}", one.interface));
    }
    if let Some(clock) = all.clock {
        let (off, direction) = (seconds(clock.off_s), if clock.ahead { "ahead of" } else { "behind" });
        let believed = seconds(clock.believed_in_s);
        text.push_str(&format!(
            "\n\nthe clock is {off} {direction} the age of messages; it is believed in {believed}, if it goes on so"
        ));
    }
    text
}

fn is_unconfirmed(one: &views::Retention) -> bool {
    one.waiting.as_ref().is_some_and(|waiting| waiting.needs_confirmation)
}

fn row(one: &views::Retention) -> [String; 6] {
    let change = one.change.as_ref().map(|change| {
        let left = change.left.map(|left| format!(", {} left", counted(left))).unwrap_or_default();
        format!("to {} since {}{left}", words(&change.to), show::age(change.since))
    });
    let waits = one.waiting.as_ref().map(|waiting| {
        let removes = waiting.removes.map(|removes| format!(", removes {}", counted(removes)));
        let why = if waiting.needs_confirmation { "" } else { " for the change" };
        format!(
            "{}{why} since {}{}",
            words(&waiting.to),
            show::age(waiting.since),
            removes.unwrap_or_default()
        )
    });
    let kept = one.kept.filter(|kept| kept.pending + kept.quarantined > 0).map(|kept| {
        format!("{} pending, {} quarantined", show::number(kept.pending), show::number(kept.quarantined))
    });
    let name = match one.configured {
        Some(_) => one.interface.clone(),
        None => format!("{} (not in the project)", one.interface),
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        name,
        words(&one.applied),
        or_none(change),
        or_none(waits),
        or_none(one.oldest.map(show::age)),
        or_none(kept),
    ]
}

fn words(window: &views::Window) -> String {
    match window.quarantined.as_str() {
        "purge" => format!("{} with quarantined", window.retention),
        _ => window.retention.clone(),
    }
}

fn counted(counted: views::Counted) -> String {
    let more = if counted.at_least { "at least " } else { "" };
    format!("{more}{}", show::counted(counted.count, "message"))
}

fn seconds(seconds: u64) -> String {
    show::duration(std::time::Duration::from_secs(seconds))
}

fn show_confirmed(done: &views::RetentionConfirmed) -> String {
    let (interface, to) = (&done.interface, words(&done.to));
    match done.in_force {
        true => format!("{interface} keeps its messages for {to} now; older ones go"),
        false => format!("{interface} keeps its messages for {to} when the change that runs is over"),
    }
}
