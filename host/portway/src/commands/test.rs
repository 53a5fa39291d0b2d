//! `portway test`: the test cases of a project, through its real plugins.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;

use super::{open, show};
use crate::cases::{self, Case, CaseReport, CaseResult, Mode, junit};
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::wiring::rehearsal::Stage;

/// Runs the test cases of a project.
///
/// A case is a folder `tests/INTERFACE/CASE/` with an input and, under `expected/`, what has to
/// come out. The input goes through the interface's source and every destination's transforms;
/// senders are not called, and nothing is stored. The guide on test cases says what a case can
/// hold. Ends with 1 when a case is not as expected, or when there is none to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// Only the cases of these interfaces
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Only the cases of this name
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Write what came out as what is expected; read the difference before you commit it
    #[arg(long)]
    update: bool,
    /// Write the results as JUnit XML into this file, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// What came of all.
#[derive(Serialize)]
struct TestReport {
    passed: usize,
    differing: usize,
    broken: usize,
    updated: usize,
    cases: Vec<CaseReport>,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let (project, catalog) = match open::open(&args.project, output)? {
        Ok(opened) => opened,
        Err(exit) => return Ok(exit),
    };
    let mut chosen = cases::list(&project)?;
    chosen.retain(|case| is_chosen(case, &args));
    if chosen.is_empty() {
        output.note("error: there is no such test case");
        output.note("  hint: a case is a folder such as `tests/INTERFACE/CASE/` with a file `input.…`");
        return Ok(Exit::Failed);
    }
    let mode = if args.update { Mode::Update } else { Mode::Compare };
    let stage = Stage::new(&project)?;
    let mut rehearsal = stage.rehearse(&project, &catalog);
    let mut reports = Vec::with_capacity(chosen.len());
    for case in &chosen {
        output.live(format!("{}/{}", case.interface, case.name));
        reports.push(cases::run(case, &project, &mut rehearsal, mode).await);
    }
    output.live_end();
    if let Some(path) = &args.junit {
        let xml = junit::to_xml(&reports);
        std::fs::write(path, xml).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let report = TestReport::of(reports);
    output.data(&report, show_report)?;
    Ok(if report.differing + report.broken == 0 { Exit::Done } else { Exit::Failed })
}

fn is_chosen(case: &Case, args: &Args) -> bool {
    let of_interface = args.interfaces.is_empty() || args.interfaces.contains(&case.interface);
    of_interface && args.case.as_ref().is_none_or(|name| *name == case.name)
}

impl TestReport {
    fn of(cases: Vec<CaseReport>) -> TestReport {
        let count = |result| cases.iter().filter(|case| case.result == result).count();
        TestReport {
            passed: count(CaseResult::Passed),
            differing: count(CaseResult::Differs),
            broken: count(CaseResult::Broken),
            updated: count(CaseResult::Updated),
            cases,
        }
    }
}

fn show_report(report: &TestReport) -> String {
    let mut text = String::new();
    for case in &report.cases {
        let word = match case.result {
            CaseResult::Passed => "passed ",
            CaseResult::Differs => "differs",
            CaseResult::Updated => "updated",
            CaseResult::Broken => "broken ",
        };
        let _ = writeln!(text, "{word}  {}/{}", case.interface, case.case);
        if let Some(error) = &case.error {
            let _ = writeln!(text, "  {}", error.replace('\n', "\n  "));
        }
        for difference in &case.differences {
            let _ = writeln!(text, "  expected/{}", difference.file);
            for line in difference.diff.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    let _ = write!(text, "\n{}", show::counted(report.cases.len() as u64, "case"));
    let counts = [
        (report.passed, "passed"),
        (report.updated, "updated"),
        (report.differing, "not as expected"),
        (report.broken, "broken"),
    ];
    for (at, (count, what)) in counts.iter().filter(|(count, _)| *count > 0).enumerate() {
        let _ = write!(text, "{}{count} {what}", if at == 0 { ": " } else { ", " });
    }
    text
}
