//! Any text as each of the three files of a project: no panic, problems that lie inside the
//! text, each on lines that cannot move a terminal's cursor, and the same ones every time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_config::{Problems, check_text};

fuzz_target!(|input: &[u8]| {
    let Some((which, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let problems = check_text(file_name(*which), text);
    assert!(problems.len() <= Problems::MAX);
    let lines = text.split('\n').count();
    for problem in problems.iter() {
        assert!(problem.place.line as usize <= lines, "{problem:?}");
        let shown = problem.to_string();
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
    if text.parse::<toml::Table>().is_err() {
        assert!(!problems.is_empty(), "it is no TOML and nothing is said");
    }
    assert_eq!(check_text(file_name(*which), text), problems);
});

/// `p` and `s` choose the project file and the secrets, so that seeds can be read.
fn file_name(which: u8) -> &'static str {
    match which {
        b'p' => "portway.toml",
        b's' => "secrets.toml",
        _ => "interfaces/a.toml",
    }
}
