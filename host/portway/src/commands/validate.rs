//! `portway validate`: everything that is wrong with a project, at once.

use portway_config::{Draft, Environment, Problems, Project};
use serde::Serialize;

use super::show;
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};

/// Says what is wrong with a project, without running it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
}

/// The verdict.
#[derive(Serialize)]
struct Verdict {
    project: String,
    interfaces: usize,
    destinations: usize,
    problems: Problems,
}

pub async fn run(
    args: Args,
    output: &mut Output,
    judge: impl AsyncFnOnce(&mut Draft),
) -> anyhow::Result<Exit> {
    let mut draft = portway_config::read(&args.project.project, &Environment::of_process());
    judge(&mut draft).await;
    let verdict = verdict(&args, &draft);
    output.data(&verdict, show_verdict)?;
    Ok(if verdict.problems.is_empty() { Exit::Done } else { Exit::Problems })
}

fn verdict(args: &Args, draft: &Draft) -> Verdict {
    let interfaces = draft.project().map(|project| project.interfaces.as_slice()).unwrap_or_default();
    let dir = draft.project().map_or(args.project.project.as_path(), |project: &Project| &project.dir);
    Verdict {
        project: dir.display().to_string(),
        interfaces: interfaces.len(),
        destinations: interfaces.iter().map(|interface| interface.destinations.len()).sum(),
        problems: draft.problems(),
    }
}

fn show_verdict(verdict: &Verdict) -> String {
    if verdict.problems.is_empty() {
        let interfaces = show::counted(verdict.interfaces as u64, "interface");
        let destinations = show::counted(verdict.destinations as u64, "destination");
        return format!("{}: {interfaces}, {destinations}, no problems", verdict.project);
    }
    let count = show::counted(verdict.problems.len() as u64, "problem");
    format!("{}\n\n{}: {count}", verdict.problems, verdict.project)
}
