//! The contract with plugins: every item documented, every change seen in review.
//!
//! Nothing is frozen before 1.0; the hashes only make a change of `wit/` impossible to miss.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

const HASHES: &str = "docs/reference/wit-hashes.txt";

/// Undocumented items, and files whose hash is not the one in the list.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in wit_files(root)? {
        let text = fs::read_to_string(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        findings.extend(
            undocumented(&text).into_iter().map(|line| format!("{shown}:{line}: document every item")),
        );
    }
    let written = fs::read_to_string(root.join(HASHES)).unwrap_or_default();
    if written != hashes(root)? {
        findings.push(format!("{HASHES}: `wit/` has changed: touch its page and run `cargo xtask fix`"));
    }
    Ok(findings)
}

/// Writes the list of hashes.
pub fn write(root: &Path) -> Result<()> {
    fs::write(root.join(HASHES), hashes(root)?).context(HASHES)
}

fn hashes(root: &Path) -> Result<String> {
    let mut text = String::new();
    for path in wit_files(root)? {
        let digest = Sha256::digest(fs::read(&path)?);
        let hex = digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        writeln!(text, "{hex}  {}", path.strip_prefix(root).unwrap_or(&path).display())?;
    }
    Ok(text)
}

fn wit_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["wit", "wit/deps/portway-host"] {
        for entry in fs::read_dir(root.join(folder)).context(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "wit") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Line numbers of interfaces, worlds, types and functions without a `///` above them.
fn undocumented(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut previous = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let first = line.split([' ', ':']).next().unwrap_or_default();
        let is_type =
            ["interface", "world", "record", "variant", "enum", "resource", "type", "flags"].contains(&first);
        let is_function = line.contains(": func(") || line.contains(": static func(");
        if (is_type || is_function) && !previous.starts_with("///") {
            lines.push(index + 1);
        }
        previous = line;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_without_a_comment_is_found() {
        let text = "/// A.\ninterface a {\n  get: func() -> u8;\n  /// B.\n  record b {}\n}\n";
        assert_eq!(undocumented(text), [3]);
    }
}
