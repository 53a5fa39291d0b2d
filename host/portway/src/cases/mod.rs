//! Test cases of a project: folders of files beside its interfaces, run through real plugins.
//!
//! `tests/INTERFACE/CASE/` holds the input, perhaps a `case.toml`, and under `expected/` what has
//! to come out. `produced` makes files of what came out, `compare` says where they differ, `junit`
//! tells it to a build server.

mod compare;
pub mod junit;
mod produced;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portway_config::{CaseFile, InterfaceSettings, Project, read_case};
use serde::Serialize;

use crate::wiring::AssembleError;
use crate::wiring::rehearsal::{Input, Rehearsal};
pub use compare::Difference;
pub(crate) use produced::{envelope, not_a_message, request_text};

/// Cases of a project.
const CASES_MAX: usize = 10_000;
/// Input files of a case.
const INPUTS_MAX: usize = 1_000;
/// The folder of what has to come out.
const EXPECTED: &str = "expected";

/// A case that was found.
#[derive(Clone, Debug)]
pub struct Case {
    pub interface: String,
    pub name: String,
    pub folder: PathBuf,
}

/// What came of a case.
#[derive(Debug, Serialize)]
pub struct CaseReport {
    pub interface: String,
    pub case: String,
    pub result: CaseResult,
    pub differences: Vec<Difference>,
    /// Why it could not be run.
    pub error: Option<String>,
    pub took_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseResult {
    Passed,
    Differs,
    /// What was expected is now what came out.
    Updated,
    /// It could not be run.
    Broken,
}

/// Whether a case is held to what is expected, or makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Compare,
    Update,
}

/// Every case under `tests/`, by interface and name.
pub fn list(project: &Project) -> anyhow::Result<Vec<Case>> {
    let folder = project.dir.join(Project::TESTS);
    let mut cases = Vec::new();
    for interface in folders(&folder)? {
        for case in folders(&folder.join(&interface))? {
            let folder = folder.join(&interface).join(&case);
            cases.push(Case { interface: interface.clone(), name: case, folder });
            if cases.len() > CASES_MAX {
                anyhow::bail!("more than {CASES_MAX} test cases");
            }
        }
    }
    Ok(cases)
}

/// The folders in a folder, by name; none if there is no such folder.
fn folders(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => anyhow::bail!("cannot list `{}`: {error}", folder.display()),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Runs one case.
pub async fn run(case: &Case, project: &Project, rehearsal: &mut Rehearsal<'_>, mode: Mode) -> CaseReport {
    let began = Instant::now();
    let outcome = run_case(case, project, rehearsal, mode).await;
    let (result, differences, error) = match outcome {
        Ok((result, differences)) => (result, differences, None),
        Err(error) => (CaseResult::Broken, Vec::new(), Some(broken_text(&error))),
    };
    CaseReport {
        interface: case.interface.clone(),
        case: case.name.clone(),
        result,
        differences,
        error,
        took_ms: milliseconds(began.elapsed()),
    }
}

/// Why a case cannot be run, and what to do where that is known.
fn broken_text(error: &anyhow::Error) -> String {
    let hint = error.downcast_ref::<AssembleError>().and_then(AssembleError::hint);
    match hint {
        Some(hint) => format!("{error:#}\nhint: {hint}"),
        None => format!("{error:#}"),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

async fn run_case(
    case: &Case,
    project: &Project,
    rehearsal: &mut Rehearsal<'_>,
    mode: Mode,
) -> anyhow::Result<(CaseResult, Vec<Difference>)> {
    let Some(interface) = project.interface(&case.interface) else {
        anyhow::bail!("there is no interface `{}`", case.interface);
    };
    let shown = format!("{}/{}/{}", Project::TESTS, case.interface, case.name);
    let settings = read_case(&case.folder, &shown)?;
    check_names(&settings, interface)?;
    let inputs = inputs(&case.folder, project.limits.message_bytes_max.0)?;
    let came = produced::produce(interface, &settings, &inputs, rehearsal).await?;
    let folder = case.folder.join(EXPECTED);
    let differences = compare::compare(&folder, &came)?;
    if mode == Mode::Compare || differences.is_empty() {
        let result = if differences.is_empty() { CaseResult::Passed } else { CaseResult::Differs };
        return Ok((result, differences));
    }
    compare::update(&folder, &came)?;
    Ok((CaseResult::Updated, differences))
}

/// What a case says of a destination that is not there would have no effect.
fn check_names(case: &CaseFile, interface: &InterfaceSettings) -> anyhow::Result<()> {
    let of_settings =
        case.settings.iter().map(|settings| (settings.destination.as_ref(), settings.transform));
    let of_answers = case.answer.iter().map(|answer| (answer.destination.as_ref(), answer.transform));
    for (destination, transform) in of_settings.chain(of_answers) {
        let Some(name) = destination else {
            anyhow::ensure!(transform.is_none(), "what is said of a transform names no destination");
            continue;
        };
        let Some(found) = interface.destinations.iter().find(|one| one.name.value == name.value) else {
            anyhow::bail!(
                "{}: interface `{}` has no destination `{}`",
                name.place,
                interface.name,
                name.value
            );
        };
        if let Some(number) = transform.filter(|number| found.transform.len() < *number as usize) {
            anyhow::bail!("{}: destination `{}` has no transform {number}", name.place, name.value);
        }
    }
    Ok(())
}

/// The input files of a case in the order of their names: `input.hl7`, or `input-1.hl7` and so on;
/// `request.http` for a source of HTTP.
fn inputs(folder: &Path, bytes_max: u64) -> anyhow::Result<Vec<Input>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let stem = name.split_once('.').map_or(name.as_str(), |(stem, _)| stem);
        let kind = stem.split_once('-').map_or(stem, |(kind, _)| kind);
        if matches!(kind, "input" | "request") && !name.ends_with('~') {
            names.push(name);
        }
    }
    if names.is_empty() {
        anyhow::bail!("there is no input: add a file `input.…`, or `request.http`");
    }
    if names.len() > INPUTS_MAX {
        anyhow::bail!("{} input files, at most {INPUTS_MAX} are taken", names.len());
    }
    // `input-10` comes after `input-9`.
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.into_iter().map(|name| read_input(&folder.join(name), bytes_max)).collect()
}

/// Reads a file as an input. More than a message may have is refused.
pub fn read_input(path: &Path, bytes_max: u64) -> anyhow::Result<Input> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = read_limited(path, bytes_max)?;
    Ok(Input { name, bytes: bytes.into() })
}

fn read_limited(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let unreadable = |error: std::io::Error| anyhow::anyhow!("cannot read `{}`: {error}", path.display());
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        anyhow::bail!("`{}` is not a regular file", path.display());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .map_err(unreadable)?
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        anyhow::bail!("`{}` has more than {bytes_max} bytes", path.display());
    }
    Ok(bytes)
}
