//! `portway backup`: a consistent copy of the store while the engine runs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use super::show;
use crate::cli::ProjectArgs;
use crate::client::Client;
use crate::output::{Exit, Output};

/// Copies the store of a running engine into a new file.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// The copy; it must not exist yet.
    file: PathBuf,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let client = Client::of(&args.project)?;
    // The engine has a working folder of its own.
    let file = std::path::absolute(&args.file).context("cannot tell the current folder")?;
    let file = file.to_str().context("the path is not UTF-8")?;
    let backup = client.backup(file).await?;
    output.data(&backup, |backup| {
        let took = show::duration(Duration::from_millis(backup.took_ms));
        format!("{}: {} in {took}", backup.file, show::bytes(backup.bytes))
    })?;
    Ok(Exit::Done)
}
