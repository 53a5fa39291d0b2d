//! Folders: copying one, and where the build keeps its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

/// The folder of the build this program came from: what is expensive is kept there.
pub(crate) fn build_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let has_tag = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let folder = program.ancestors().find(has_tag).context("this program is not in a folder of a build")?;
    Ok(folder.to_path_buf())
}

/// Copies a folder with everything in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read `{}`", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy `{}`", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Runs a command to its end; what it said is the error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        let said = [output.stdout.as_slice(), b"\n", output.stderr.as_slice()].concat();
        bail!("{command:?} failed ({}): {}", output.status, String::from_utf8_lossy(&said).trim());
    }
    Ok(output)
}
