//! Codes are spelt in the registry alone; plugins, which are built without it, write none that it
//! does not know.

use std::path::Path;

use anyhow::Result;
use portway_model::code;

use super::shape::rust_texts;

/// Calls that take a code, and which of their arguments it is.
const HOST_CALLS: &[(&str, usize)] = &[
    ("Failure::new(", 0),
    (".notice(", 0),
    ("ControlError::new(", 1),
    ("ApiError::new(", 1),
    ("Problem::new(", 1),
    ("reader.report(", 1),
];
const PLUGIN_CALLS: &[(&str, usize)] = &[
    ("Failure::new(", 0),
    ("Later::new(", 0),
    ("Problem::quarantine(", 0),
    ("Problem::retry(", 0),
    ("Trouble::misconfigured(", 0),
    ("Trouble::unavailable(", 0),
    (".failure(", 0),
    (".quarantine(", 0),
    (".retry(", 0),
    ("log::notice(", 0),
];
/// Codes there are a simulation's, a suite's, a hostile guest's or these checks' own: no operator
/// meets them.
const FOR_TESTS: &[&str] =
    &["host/testkit/", "host/store/src/conformance", "plugins/hostile/", "host/xtask/"];

/// Codes that go around the registry, with their places.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let files = rust_texts(root, &["host", "plugins", "sdk-rust"])?;
    Ok(files.iter().flat_map(|(path, text)| of_file(path, text)).collect())
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    let is_test = !path.contains("/src/")
        || path.contains("/tests/")
        || FOR_TESTS.iter().any(|part| path.starts_with(part));
    if is_test {
        return Vec::new();
    }
    let text = code_of(text);
    let is_host = path.starts_with("host/");
    let mut literals = in_methods(&text);
    for (call, argument) in if is_host { HOST_CALLS } else { PLUGIN_CALLS } {
        literals.extend(in_calls(&text, call, *argument));
    }
    literals.sort_unstable();
    let found = literals.into_iter().filter_map(|(line, literal)| {
        if is_host {
            Some(format!(
                "{path}:{line}: `{literal}` is spelt here: use a constant of `portway_model::code`, so that it has a page"
            ))
        } else if code::registered(literal).is_none() {
            Some(format!(
                "{path}:{line}: no page explains `{literal}`: add it to host/model/src/code/plugin.rs, and write the page"
            ))
        } else {
            None
        }
    });
    found.collect()
}

/// What is compiled without tests; comments are blank, so that lines keep their numbers.
fn code_of(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = lines.map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    code.collect::<Vec<_>>().join("\n")
}

/// Literals that stand where a call takes its code, with their lines.
fn in_calls<'a>(text: &'a str, call: &str, argument: usize) -> Vec<(usize, &'a str)> {
    let calls = text.match_indices(call).filter_map(|(at, _)| {
        let inside = text.get(at + call.len()..)?;
        let literal = nth_argument(inside, argument)?.strip_prefix('"')?;
        let (literal, _) = literal.split_once('"')?;
        Some((line_of(text, at), literal))
    });
    calls.collect()
}

/// Literals that a method `code` answers with.
fn in_methods(text: &str) -> Vec<(usize, &str)> {
    let mut literals = Vec::new();
    for head in ["fn code(self)", "fn code(&self)"] {
        for (at, _) in text.match_indices(head) {
            let body = text.get(at..).unwrap_or_default();
            let body = body.split_once("\n    }\n").map_or(body, |(body, _)| body);
            for (arm, _) in body.match_indices("=> \"") {
                let literal = body.get(arm + 4..).and_then(|rest| rest.split_once('"'));
                literals.extend(literal.map(|(literal, _)| (line_of(text, at + arm), literal)));
            }
        }
    }
    literals
}

/// Where an argument begins, in a text that begins behind the parenthesis of a call.
fn nth_argument(inside: &str, wanted: usize) -> Option<&str> {
    let (mut depth, mut seen, mut is_text, mut is_escaped) = (0_usize, 0, false, false);
    if wanted == 0 {
        return Some(inside.trim_start());
    }
    for (at, character) in inside.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            _ if is_text => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                seen += 1;
                if seen == wanted {
                    return inside.get(at + 1..).map(str::trim_start);
                }
            }
            _ => {}
        }
    }
    None
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_the_host_spells_itself_is_found() {
        let text =
            "//! A.\n// Failure::new(\"busy\", \"\")\nlet a = Failure::new(\n    \"busy\",\n    \"b\");\n";
        let found = of_file("host/x/src/a.rs", text);
        assert!(found[0].starts_with("host/x/src/a.rs:3: `busy` is spelt here"), "{found:?}");
        assert_eq!(found.len(), 1);
        let second = "ApiError::new(f(\"a, b\", 1), \"busy\", \"text\")";
        assert_eq!(of_file("host/x/src/a.rs", second).len(), 1);
        let method = "fn code(self) -> &'static str {\n        match self {\n            A => \"busy\",\n        }\n    }\n";
        assert_eq!(of_file("host/x/src/a.rs", method).len(), 1);
    }

    #[test]
    fn constants_tests_and_suites_may_stay() {
        let literal = "Failure::new(\"busy\", \"\")";
        for path in ["host/x/tests/it/a.rs", "host/testkit/src/a.rs", "host/store/src/conformance/a.rs"] {
            assert_eq!(of_file(path, literal), Vec::<String>::new(), "{path}");
        }
        let tested = format!("Failure::new(code::BUSY, \"busy\")\n#[cfg(test)]\nmod tests {{ {literal} }}\n");
        assert_eq!(of_file("host/x/src/a.rs", &tested), Vec::<String>::new());
    }

    #[test]
    fn a_plugin_may_spell_what_the_registry_knows_and_nothing_else() {
        let text = "Problem::retry(\"ack-timeout\", \"a\");\nread().quarantine(\"no-such-code\")?;\n";
        let found = of_file("plugins/x/src/a.rs", text);
        assert!(found[0].starts_with("plugins/x/src/a.rs:2: no page explains `no-such-code`"), "{found:?}");
        assert_eq!(found.len(), 1);
    }
}
