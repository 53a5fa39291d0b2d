//! Every guide, and the README, is run as it is written: its files in a project of its own, its
//! commands with the real program, on free ports.
//!
//! Guides run side by side, each in a folder with the `portway.toml` of the first one.

mod merge;
mod page;
mod ports;
mod walk;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use page::{What, steps};
use walk::Walk;

/// A command that a guide shows and nobody runs here.
pub struct NotRun {
    guide: &'static str,
    /// How it begins.
    command: &'static str,
    because: &'static str,
}

const fn not_run(guide: &'static str, command: &'static str, because: &'static str) -> NotRun {
    NotRun { guide, command, because }
}

const BUILDS: &str = "it builds what is tested here";
const COMPONENT: &str = "the component is built by `cargo xtask plugins --test`, and another test asks it";
const MACHINE: &str = "it needs systemd, and root";
const DATABASE: &str = "it needs a database server; `e2e::postgres` runs engines on one";

const NOT_RUN: &[NotRun] = &[
    not_run("README.md", "cargo xtask", "it builds and runs what this test is a part of"),
    not_run("first-interface.md", "cargo xtask plugins", BUILDS),
    not_run("first-interface.md", "cargo build", BUILDS),
    not_run("answer-requests.md", "cargo", COMPONENT),
    not_run("answer-requests.md", "rustup", COMPONENT),
    not_run("answer-requests.md", "curl 'http://127.0.0.1:8080/quote", COMPONENT),
    not_run("postgresql.md", "createuser", DATABASE),
    not_run("postgresql.md", "createdb", DATABASE),
    not_run("postgresql.md", "portway run --standby", DATABASE),
    not_run("systemd.md", "install ", MACHINE),
    not_run("systemd.md", "useradd", MACHINE),
    not_run("systemd.md", "cp -r", MACHINE),
    not_run("systemd.md", "systemctl", MACHINE),
    not_run("systemd.md", "journalctl", MACHINE),
    not_run("systemd.md", "sudo", MACHINE),
    not_run("traces.md", "docker", "it needs a container runtime and an image"),
    not_run("web-page.md", "ssh", "it needs another machine"),
];

#[test]
fn every_guide_runs_as_it_is_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut guides = vec![("README.md".to_owned(), root.join("README.md"))];
    for entry in fs::read_dir(root.join("docs/guides")).unwrap() {
        let entry = entry.unwrap();
        guides.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    let first = fs::read_to_string(root.join("docs/guides/first-interface.md")).unwrap();
    let portway_toml = &first_file(&first);
    // One guide by its name, while it is written: `PORTWAY_GUIDE=fan-out.md`.
    let only = std::env::var("PORTWAY_GUIDE").ok();
    guides.retain(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let results: Vec<_> = std::thread::scope(|scope| {
        let walks: Vec<_> = guides
            .iter()
            .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
            .map(|(name, text)| scope.spawn(move || one(name, &text, portway_toml)))
            .collect();
        walks.into_iter().map(|walk| walk.join().unwrap()).collect()
    });
    let mut left_out = BTreeSet::new();
    let mut failures = Vec::new();
    for (found, result) in results {
        left_out.extend(found);
        failures.extend(result.err());
    }
    for index in &left_out {
        let NotRun { guide, command, because } = &NOT_RUN[*index];
        println!("not run: {guide}: `{command} …`: {because}");
    }
    // A guide that failed did not come to its end.
    if failures.is_empty() && only.is_none() {
        failures.extend(stale(NOT_RUN, &left_out));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Entries of the list that nothing needed.
fn stale(not_run: &[NotRun], left_out: &BTreeSet<usize>) -> Vec<String> {
    let stale = not_run.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
    stale.map(|(_, one)| format!("{} has no `{}`: take it out of the list", one.guide, one.command)).collect()
}

fn one(name: &str, text: &str, portway_toml: &str) -> (BTreeSet<usize>, Result<(), String>) {
    let steps = match steps(text) {
        Ok(steps) => steps,
        Err(error) => return (BTreeSet::new(), Err(format!("{name}: {error}"))),
    };
    let mut walk = Walk::new(name, portway_toml);
    let result = walk.all(&steps, NOT_RUN);
    (walk.left_out.clone(), result)
}

/// The file that all other guides build on.
fn first_file(first_guide: &str) -> String {
    let file = steps(first_guide).unwrap().into_iter().find_map(|step| match step.what {
        What::File { path, text } if path == "portway.toml" => Some(text),
        _ => None,
    });
    file.expect("the first guide shows a `portway.toml`")
}

#[test]
fn what_is_not_as_a_guide_says_is_told_with_its_line() {
    let wrong = [
        ("```sh\ntrue\nfalse\n```\n", "odd.md:3: `false` fails"),
        ("```sh\necho 1\n```\n```output\ntwo\n```\n", "odd.md:5: `two` is not printed by `echo 1`"),
        ("```sh\ncd nowhere\n```\n```output\n1\n```\n", "odd.md:2: "),
        ("```output\n1\n```\n", "odd.md:2: no command before it"),
        ("```toml\na =\n```\n", "odd.md:2: it is no TOML"),
        ("```toml\n# in no.toml\na = 1\n```\n", "odd.md:2: nothing can be added to `no.toml`"),
    ];
    for (text, told) in wrong {
        let mut walk = Walk::new("odd.md", "");
        walk.patience = std::time::Duration::ZERO;
        let error = walk.all(&steps(text).unwrap(), &[]).unwrap_err();
        assert!(error.starts_with(told), "{told}: {error}");
    }
}

#[test]
fn an_entry_that_nothing_needs_any_more_is_told() {
    let list = [not_run("a.md", "ssh", "far away"), not_run("a.md", "rsh", "long ago")];
    let mut walk = Walk::new("a.md", "");
    walk.all(&steps("```sh\nssh there\n```\n").unwrap(), &list).unwrap();
    assert_eq!(stale(&list, &walk.left_out), ["a.md has no `rsh`: take it out of the list"]);
}
