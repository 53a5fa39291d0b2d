//! `portway resume`: the short form of `portway destination resume`.

use crate::cli::{ProjectArgs, Slot};
use crate::commands::destination::{self, Verb};
use crate::output::{Exit, Output};

/// Lets a destination go on that was stopped or paused.
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
    let slot = Slot { interface: args.interface, destination: args.destination };
    destination::act(&args.project, &slot, Verb::Resume, String::new(), output).await
}
