//! `portway state`: what plugins keep for a destination.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use portway_admin::{params, views};

use super::{author, show};
use crate::cli::{ProjectArgs, Slot};
use crate::client::Client;
use crate::output::{Exit, Format, Output};

/// Shows and removes what plugins keep for a destination.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the keys of what is kept.
    List(ListArgs),
    /// Writes one value, and nothing else.
    Show(ShowArgs),
    /// Removes one value, and records it with the actions on the destination.
    ///
    /// What is on its way goes on with what it has read and may write the value anew: pause the
    /// destination first where that matters.
    Remove(RemoveArgs),
}

/// Of which destination, and of which plugin there.
#[derive(Debug, clap::Args)]
struct WhoseArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The destination.
    #[arg(value_name = "INTERFACE/DESTINATION")]
    slot: Slot,
    /// The use of a plugin: the plugin's name, or the `name` of its grant; not needed where only one
    /// keeps a state.
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    whose: WhoseArgs,
    /// Only keys that begin so.
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Only keys after this one; with `--space`.
    #[arg(long, value_name = "KEY", requires = "space")]
    after: Option<String>,
    /// How many, 1 to 500.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: u32,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    whose: WhoseArgs,
    /// The value's key.
    key: String,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    #[command(flatten)]
    whose: WhoseArgs,
    /// The value's key.
    key: String,
    /// Why, for the record.
    #[arg(long)]
    reason: String,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    match args.command {
        Command::List(args) => list(args, output).await?,
        Command::Show(args) => show_one(args, output).await?,
        Command::Remove(args) => remove(args, output).await?,
    }
    Ok(Exit::Done)
}

async fn list(args: ListArgs, output: &mut Output) -> anyhow::Result<()> {
    let ListArgs { whose: WhoseArgs { project, slot, space }, prefix, after, limit } = args;
    let list = params::ListState { space, prefix, after, limit };
    let page = Client::of(&project)?.list_state(&slot, &list).await?;
    output.data(&page, show_keys)?;
    if let Some(views::StateKey { space, key }) = &page.next {
        output.note(format!("there are more: `--space {space} --after {key}` shows them"));
    }
    Ok(())
}

fn show_keys(page: &views::StatePage) -> String {
    let row = |key: &views::StateKey| [key.space.clone(), key.key.clone()];
    show::table(["SPACE", "KEY"], &page.keys.iter().map(row).collect::<Vec<_>>())
}

async fn show_one(args: ShowArgs, output: &mut Output) -> anyhow::Result<()> {
    let ShowArgs { whose: WhoseArgs { project, slot, space }, key } = args;
    let value = Client::of(&project)?.get_state(&slot, &params::GetState { space, key }).await?;
    match (output.format(), value.encoding.as_str()) {
        (Format::Json, _) => output.data(&value, |value| value.value.clone())?,
        (Format::Text, "base64") => {
            let bytes = STANDARD.decode(&value.value).context("the engine's answer is no base64")?;
            output.bytes(&bytes)?;
        }
        (Format::Text, _) => output.bytes(value.value.as_bytes())?,
    }
    Ok(())
}

async fn remove(args: RemoveArgs, output: &mut Output) -> anyhow::Result<()> {
    let RemoveArgs { whose: WhoseArgs { project, slot, space }, key, reason } = args;
    let remove = params::RemoveState { space, key, reason, author: author() };
    let done = Client::of(&project)?.remove_state(&slot, &remove).await?;
    output.data(&done, |done| {
        format!("`{}` of {} is removed at {} of {}", done.key, done.space, done.destination, done.interface)
    })?;
    Ok(())
}
