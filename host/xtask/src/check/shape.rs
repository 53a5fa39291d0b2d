//! The shape of source files: headers, sizes, names, and what is never written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Lines without tests.
const LINES_MAX: usize = 600;
const FOLDERS: &[&str] = &["host", "plugins", "sdk-rust", "fuzz"];
/// Files named for a kind of thing instead of a subject.
const NAMES: &[&str] =
    &["types.rs", "utils.rs", "util.rs", "helpers.rs", "helper.rs", "common.rs", "misc.rs"];

/// What breaks a rule, with its place.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in rust_texts(root, FOLDERS)? {
        let of_file = of_file(&path, &text);
        findings.extend(of_file.into_iter().map(|text| format!("{path}{text}")));
    }
    Ok(findings)
}

/// Every Rust file in these folders of the root, in order: its path from there, and its text.
pub(super) fn rust_texts(root: &Path, folders: &[&str]) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for folder in folders {
        rust_files(&root.join(folder), &mut files)?;
    }
    files.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok((path.strip_prefix(root).unwrap_or(&path).display().to_string(), text))
    };
    files.into_iter().map(read).collect()
}

/// Every Rust file below a folder that is not built or found by a fuzzer.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with("target") && name != "corpus" {
            rust_files(&path, files)?;
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |line: usize, rule: &str| findings.push(format!(":{line}: {rule}"));
    let name = path.rsplit('/').next().unwrap_or(path);
    if NAMES.contains(&name) {
        find(1, "name a file for its subject, not for a kind of thing");
    }
    if !text.starts_with("//!") {
        find(1, "begin a file with `//!`: what it is, what it leaves to others");
    }
    let is_test = path.contains("/tests/") || path.contains("/examples/");
    let code: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    if code.len() > LINES_MAX && !is_test {
        find(code.len(), "more than 600 lines: split the file by subject");
    }
    for (index, line) in text.lines().enumerate() {
        for (needle, rule) in never() {
            if line.contains(needle.as_str()) {
                find(index + 1, rule);
            }
        }
        if line.contains(to_do().as_str()) && !line.contains('#') {
            find(index + 1, "a to-do carries an issue number");
        }
    }
    findings
}

/// Put together here, so that this file does not find itself.
fn never() -> [(String, &'static str); 4] {
    [
        (format!("#[{}(", "allow"), "use `#[expect(lint, reason = \"…\")]`"),
        (format!("#![{}(", "allow"), "use `#![expect(lint, reason = \"…\")]`"),
        (format!("#[{}]", "ignore"), "no test is skipped"),
        (format!("#[{}]", "should_panic"), "check the error instead"),
    ]
}

fn to_do() -> String {
    ["TO", "DO"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_breach() {
        assert!(of_file("host/x/src/lane.rs", "//! Lanes.\n").is_empty());
        assert_eq!(of_file("host/x/src/utils.rs", "fn a() {}\n").len(), 2);
        let long = format!("//! Long.\n{}", "fn a() {}\n".repeat(LINES_MAX));
        assert_eq!(of_file("host/x/src/a.rs", &long).len(), 1);
        assert_eq!(of_file("host/x/tests/it/a.rs", &long).len(), 0);
        let skipped = format!("//! T.\n#[{}]\n", "ignore");
        assert_eq!(of_file("host/x/src/a.rs", &skipped), [":2: no test is skipped"]);
    }
}
