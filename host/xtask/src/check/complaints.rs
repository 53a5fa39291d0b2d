//! Every test that the table of complaints names exists, and every row names one.
//!
//! In the last column of `docs/complaints.md` stand code spans: a Rust file and behind it names of
//! its tests, or the folder of a case.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const PAGE: &str = "docs/complaints.md";

/// What functions take that a suite runs, each on all stores.
const CASES: [&str; 2] = ["(harness: &dyn Harness)", "(store: StoreKind)"];

/// What stands at a path.
enum Found {
    File(String),
    Folder,
    Nothing,
}

/// Rows without a test, and tests that are not there.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(PAGE)).with_context(|| format!("`{PAGE}` is missing"))?;
    let look = |path: &str| match fs::read_to_string(root.join(path)) {
        Ok(text) => Found::File(text),
        Err(_) if root.join(path).is_dir() => Found::Folder,
        Err(_) => Found::Nothing,
    };
    Ok(of_page(&text, look).into_iter().map(|(line, rule)| format!("{PAGE}:{line}: {rule}")).collect())
}

fn of_page(text: &str, look: impl Fn(&str) -> Found) -> Vec<(usize, String)> {
    let mut findings = Vec::new();
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else { continue };
        rows += 1;
        let of_row = of_row(cells.last().copied().unwrap_or_default(), &look);
        findings.extend(of_row.into_iter().map(|rule| (index + 1, rule)));
    }
    if rows == 0 {
        findings.push((1, "there is no table: rows begin with the number of the complaint".to_owned()));
    }
    findings
}

/// The cells of a row of the table: those rows begin with a number.
fn cells(line: &str) -> Option<Vec<&str>> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    cells.first().is_some_and(|first| first.parse::<u32>().is_ok()).then_some(cells)
}

fn of_row(shown_by: &str, look: &impl Fn(&str) -> Found) -> Vec<String> {
    let mut findings = Vec::new();
    let mut names = 0;
    let mut file: Option<(&str, String)> = None;
    for span in shown_by.split('`').skip(1).step_by(2) {
        if span.ends_with(".rs") {
            match look(span) {
                Found::File(text) => file = Some((span, text)),
                Found::Folder | Found::Nothing => findings.push(format!("there is no file `{span}`")),
            }
        } else if span.contains('/') {
            names += 1;
            if !span.contains("/cases/") || !matches!(look(span), Found::Folder) {
                findings.push(format!("there is no case `{span}`"));
            }
        } else {
            names += 1;
            match &file {
                Some((_, text)) if is_test(text, span) => {}
                Some((path, _)) => findings.push(format!("`{path}` has no test `{span}`")),
                None => findings.push(format!("the file of the test `{span}` is not named")),
            }
        }
    }
    if names == 0 {
        findings.push("name a test that shows the answer; what no test shows is not claimed".to_owned());
    }
    findings
}

/// Whether a file has a test function of this name: with an attribute above it, or, in a suite
/// of the stores, with its harness, or with the kind of store it is run on.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    let is_head = |line: &&str| line.split_once(&head).is_some_and(|(before, _)| !before.contains("//"));
    let Some(at) = lines.iter().position(is_head) else { return false };
    let is_case = lines.get(at).is_some_and(|line| CASES.iter().any(|arguments| line.contains(arguments)));
    let above = lines.iter().take(at).rev();
    let mut marks = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    is_case || marks.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "a/tests/it.rs";
    const TEXT: &str = "#[test]\nfn one() {}\n\n#[tokio::test(flavor = \"multi_thread\")]\n/// Two.\nasync fn two() {\n}\n\
                        fn helper() {}\n// fn gone() is no more\npub async fn three(harness: &dyn Harness) {}\n\
                        async fn four(store: StoreKind) {}\n";

    fn check(rows: &str) -> Vec<String> {
        let look = |path: &str| match path {
            FILE => Found::File(TEXT.to_owned()),
            "a/tests" | "a/cases/odd" => Found::Folder,
            _ => Found::Nothing,
        };
        of_page(rows, look).into_iter().map(|(line, rule)| format!("{line}: {rule}")).collect()
    }

    #[test]
    fn tests_and_cases_that_exist_are_no_finding() {
        let rows = "| # | complaint | answer | shown by |\n|---|---|---|---|\n\
                    | 1 | x | y | `a/tests/it.rs` `one`, `two`; `a/cases/odd` |\n\
                    | 2 | x | y | `a/tests/it.rs` `three`, `four` |\n";
        assert_eq!(check(rows), [""; 0]);
    }

    #[test]
    fn what_is_not_there_is_found_with_its_line() {
        let rows = [
            ("`a/tests/it.rs` `helper`", "1: `a/tests/it.rs` has no test `helper`"),
            ("`a/tests/it.rs` `gone`", "1: `a/tests/it.rs` has no test `gone`"),
            ("`a/cases/even`", "1: there is no case `a/cases/even`"),
            ("`a/tests`", "1: there is no case `a/tests`"),
            ("`one`", "1: the file of the test `one` is not named"),
            ("by reading", "1: name a test that shows the answer"),
            ("`a/tests/it.rs`", "1: name a test that shows the answer"),
            ("`b.rs` `one`", "1: there is no file `b.rs`"),
        ];
        for (shown_by, rule) in rows {
            let found = check(&format!("| 7 | x | y | {shown_by} |"));
            assert!(found.iter().any(|finding| finding.starts_with(rule)), "{shown_by}: {found:?}");
        }
        assert!(check("no table")[0].contains("there is no table"));
    }
}
