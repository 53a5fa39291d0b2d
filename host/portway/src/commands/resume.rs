//! `portway resume`: starts a stopped destination again.

use crate::cli::ProjectArgs;
use crate::client::Client;
use crate::output::{Exit, Output};

/// Starts a stopped destination again.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// The interface.
    interface: String,
    /// Its destination.
    destination: String,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let client = Client::of(&args.project)?;
    let resumed = client.resume(&args.interface, &args.destination).await?;
    output.data(&resumed, |resumed| format!("{} of {} goes on", resumed.destination, resumed.interface))?;
    Ok(Exit::Done)
}
