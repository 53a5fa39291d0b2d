//! `portway gen-docs`: writes the reference pages that come from the code.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Arg, CommandFactory};

use super::schema;
use crate::cli::Cli;
use crate::output::{Exit, Output};
use crate::wiring::PluginCatalog;

/// Writes the generated reference pages; run by `cargo xtask gen`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder of the pages.
    #[arg(long, value_name = "DIR", default_value = "docs/reference")]
    to: PathBuf,
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.to).with_context(|| format!("cannot create `{}`", args.to.display()))?;
    std::fs::create_dir_all(args.to.join("schema"))?;
    for (name, text) in pages()? {
        let path = args.to.join(&name);
        std::fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
        output.note(format!("wrote {}", path.display()));
    }
    Ok(Exit::Done)
}

/// Every generated page: its file name and its text.
pub fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let mut pages = vec![
        ("options.md".to_owned(), portway_config::reference()),
        ("commands.md".to_owned(), commands()),
        ("metrics.md".to_owned(), portway_admin::metrics_reference()),
        ("openapi.json".to_owned(), portway_admin::openapi_document()),
    ];
    for (name, text) in schema::of_catalog(&PluginCatalog::default())? {
        pages.push((format!("schema/{name}"), text));
    }
    Ok(pages)
}

const INTRODUCTION: &str = "# Commands

<!-- Generated from the command line's declarations in host/portway; change those and run `cargo xtask gen`. -->

Data goes to stdout, everything else to stderr.
With `--json` every command that prints data prints JSON, one document a line.

| exit code | means |
|---|---|
| 0 | done |
| 1 | it was tried and did not work |
| 2 | the command line is wrong |
| 3 | the project has problems, or another engine delivers what this one would |
| 4 | no engine runs for the project |
| 5 | the engine refused what was asked |
| 6 | it was only looked, and there is something to do |
";

fn commands() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut root = Cli::command();
    root.build();
    write_commands(&mut page, &root, "portway");
    page
}

fn write_commands(page: &mut String, parent: &clap::Command, path: &str) {
    let shown =
        parent.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in shown {
        let path = format!("{path} {}", command.get_name());
        if !command.has_subcommands() || !command.is_subcommand_required_set() {
            write_command(page, command, &path);
        }
        write_commands(page, command, &path);
    }
}

fn write_command(page: &mut String, command: &clap::Command, path: &str) {
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    let about = about.unwrap_or_default().trim().to_owned();
    let full_stop = if about.ends_with('.') { "" } else { "." };
    let _ = write!(page, "\n## `{path}`\n\n{about}{full_stop}\n\n| argument | | default |\n|---|---|---|\n");
    let ours = |argument: &&Arg| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version" | "json")
    };
    for argument in command.get_arguments().filter(ours) {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| `{}` | {help} | {} |", written(argument), default(argument));
    }
}

/// As it is written on a command line.
fn written(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let value = values.first().map(ToString::to_string).unwrap_or_default();
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    }
}

fn default(argument: &Arg) -> String {
    let values = argument.get_default_values();
    let shown: Vec<_> =
        values.iter().map(|value| value.to_string_lossy()).filter(|value| !value.is_empty()).collect();
    match shown.first() {
        Some(value) if argument.get_action().takes_values() => format!("`{value}`"),
        _ if argument.is_required_set() => "required".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_section_and_hidden_ones_have_none() {
        let page = commands();
        for path in [
            "init",
            "validate",
            "test",
            "try",
            "schema",
            "status",
            "message list",
            "message dismiss",
            "resume",
            "backup",
            "explain",
            "gen",
            "sink",
        ] {
            assert!(page.contains(&format!("## `portway {path}`\n")), "{path} is missing");
        }
        assert!(!page.contains("gen-docs"));
        assert!(
            page.contains("| `--reason REASON` | Why, for the record. | required |")
                || page.contains("| `--reason REASON` | Why, for the record | required |"),
            "{page}"
        );
    }
}
