//! `portway validate`: everything that is wrong with a project, at once.

use portway_config::{Draft, Problems, Project};
use serde::Serialize;

use super::show;
use crate::cli::ProjectArgs;
use crate::output::{Exit, Format, Output, says_more};

/// Says what is wrong with a project, without running it.
///
/// Problems keep a project from running; warnings are worth knowing, such as a certificate that
/// soon expires. Plugins are asked about their settings; nothing is received or delivered.
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
    /// With these it runs all the same.
    warnings: Problems,
}

pub async fn run(
    args: Args,
    output: &mut Output,
    judge: impl AsyncFnOnce(&mut Draft),
) -> anyhow::Result<Exit> {
    let mut draft = args.project.read();
    judge(&mut draft).await;
    let verdict = verdict(&args, &draft);
    output.data(&verdict, show_verdict)?;
    note_pages(&verdict.problems, output);
    note_pages(&verdict.warnings, output);
    Ok(if verdict.problems.is_empty() { Exit::Done } else { Exit::Problems })
}

/// Where more is said of the problems; programs have the codes in the data.
pub(super) fn note_pages(problems: &Problems, output: &mut Output) {
    if !problems.is_empty() && output.format() == Format::Text {
        output.note(format!("hint: {}", says_more(&problems.codes())));
    }
}

fn verdict(args: &Args, draft: &Draft) -> Verdict {
    let interfaces = draft.project().map(|project| project.interfaces.as_slice()).unwrap_or_default();
    let dir = draft.project().map_or(args.project.project.as_path(), |project: &Project| &project.dir);
    Verdict {
        project: dir.display().to_string(),
        interfaces: interfaces.len(),
        destinations: interfaces.iter().map(|interface| interface.destinations.len()).sum(),
        problems: draft.problems(),
        warnings: draft.warnings(),
    }
}

fn show_verdict(verdict: &Verdict) -> String {
    let warnings: String = verdict.warnings.iter().map(|warning| format!("warning: {warning}\n\n")).collect();
    let warned = match verdict.warnings.len() {
        0 => String::new(),
        count => format!(", {}", show::counted(count as u64, "warning")),
    };
    if verdict.problems.is_empty() {
        let interfaces = show::counted(verdict.interfaces as u64, "interface");
        let destinations = show::counted(verdict.destinations as u64, "destination");
        return format!("{warnings}{}: {interfaces}, {destinations}, no problems{warned}", verdict.project);
    }
    let count = show::counted(verdict.problems.len() as u64, "problem");
    format!("{warnings}{}\n\n{}: {count}{warned}", verdict.problems, verdict.project)
}
