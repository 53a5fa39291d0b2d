//! `portway init`: a project that runs, from one of a few beginnings.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde::Serialize;

use super::schema;
use crate::output::{Exit, Output};
use crate::wiring::PluginCatalog;

/// Makes a project that runs: one interface, a first test case, and what to do next.
///
/// Files name their JSON Schema, which lies under `.portway/schema`, so that editors complete
/// them. Nothing that is there is written over.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder of the project; it is made where there is none
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// What the project begins with: `lab` receives HL7 over MLLP, `webhook` takes requests,
    /// `files` reads CSV
    #[arg(long, value_enum, value_name = "KIND", default_value = "lab")]
    from: From,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum From {
    Lab,
    Webhook,
    Files,
}

/// A file by its path in the project, and its text.
type File = (&'static str, &'static str);

/// Files of one beginning.
macro_rules! files {
    ($kind:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../templates/", $kind, "/", $path)))),+]
    };
}

const LAB: &[File] = files!("lab":
    "portway.toml",
    "README.md",
    "interfaces/lab.toml",
    "tests/lab/a-result/input.hl7",
    "tests/lab/a-result/expected/source.txt",
    "tests/lab/a-result/expected/archive/verdict.txt",
    "tests/lab/a-result/expected/archive/output.json",
);
const WEBHOOK: &[File] = files!("webhook":
    "portway.toml",
    "README.md",
    "interfaces/orders.toml",
    "tests/orders/an-order/request.http",
    "tests/orders/an-order/expected/source.txt",
    "tests/orders/an-order/expected/archive/verdict.txt",
    "tests/orders/an-order/expected/archive/output.json",
);
const FILES: &[File] = files!("files":
    "portway.toml",
    "README.md",
    "interfaces/stock.toml",
    "tests/stock/a-row/input.csv",
    "tests/stock/a-row/expected/source.txt",
    "tests/stock/a-row/expected/archive/verdict.txt",
    "tests/stock/a-row/expected/archive/output.json",
);
/// What an engine writes does not belong into version control.
const IGNORED: &str = "/data/\n/secrets.toml\n";
/// Keeps a folder in version control whose files are not.
const KEEP: &str = ".gitkeep";

/// What was made.
#[derive(Serialize)]
struct Made {
    project: String,
    files: Vec<String>,
}

impl From {
    fn files(self) -> &'static [File] {
        match self {
            From::Lab => LAB,
            From::Webhook => WEBHOOK,
            From::Files => FILES,
        }
    }

    /// Folders that the interface is granted.
    fn folders(self) -> &'static [&'static str] {
        match self {
            From::Lab | From::Webhook => &["out"],
            From::Files => &["in", "in/done", "out"],
        }
    }
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let mut files: Vec<(String, String)> =
        args.from.files().iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let mut ignored = IGNORED.to_owned();
    for folder in args.from.folders() {
        ignored.push_str(&format!("/{folder}/*\n!/{folder}/{KEEP}\n"));
        files.push((format!("{folder}/{KEEP}"), String::new()));
    }
    for inner in args.from.folders().iter().filter(|folder| folder.contains('/')) {
        ignored.push_str(&format!("!/{inner}/\n"));
    }
    files.push((".gitignore".to_owned(), ignored));
    for (name, text) in schema::of_catalog(&PluginCatalog::default())? {
        files.push((format!("{}/{name}", schema::FOLDER), text));
    }
    refuse_present(&args.folder, &files)?;
    for (path, text) in &files {
        write_new(&args.folder.join(path), text)?;
    }
    let made = Made {
        project: args.folder.display().to_string(),
        files: files.into_iter().map(|(path, _)| path).collect(),
    };
    output.data(&made, show)?;
    Ok(Exit::Done)
}

/// Looks at every file before the first is written, so that nothing is left half done.
fn refuse_present(folder: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    let present: Vec<&str> = files
        .iter()
        .map(|(path, _)| path.as_str())
        .filter(|path| fs::symlink_metadata(folder.join(path)).is_ok())
        .collect();
    if !present.is_empty() {
        bail!("`{}` already has `{}`, and nothing is written over", folder.display(), present.join("`, `"));
    }
    Ok(())
}

fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

fn show(made: &Made) -> String {
    let enter = if made.project == "." { String::new() } else { format!("cd {}\n", made.project) };
    let files: String = made.files.iter().map(|file| format!("  {file}\n")).collect();
    format!(
        "made a project in {}:\n{files}\nnext:\n{enter}portway validate\nportway test\nportway run\n",
        made.project
    )
}
