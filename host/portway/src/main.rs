//! `portway`: one binary for the engine, and for those who look after it.

use std::process::{ExitCode, Termination};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use portway::cli::{Cli, Command};
use portway::commands;
use portway::output::{Exit, Output};
use portway::wiring::{PluginCatalog, certificate_problems, settings_problems};
use portway_config::Draft;
use portway_model::code;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut output = Output::of_process(cli.format());
    if matches!(cli.command, Command::CompileComponent) {
        // Before anything is started: this process lives under narrow limits.
        return portway_runtime::compile_child_main();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(commands::dispatch(cli.command, &mut output, judge));
            // A thread that hangs in a file system must not keep the process.
            runtime.shutdown_background();
            exit.report()
        }
        Err(error) => {
            output.error(
                &anyhow::Error::new(error).context("cannot start threads"),
                None,
                Some(code::NO_THREADS),
            );
            Exit::Failed.report()
        }
    }
}

/// Adds to a project's problems what only its plugins know.
async fn judge(draft: &mut Draft) {
    let Some(catalog) = draft.project().map(PluginCatalog::of) else {
        return;
    };
    draft.check_plugins(&catalog);
    if let Some(project) = draft.project() {
        for problem in settings_problems(project, &catalog).await {
            draft.report(problem);
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let found = draft.project().map(|project| certificate_problems(project, now.cast_signed()));
    found.into_iter().flatten().for_each(|problem| draft.report(problem));
}
