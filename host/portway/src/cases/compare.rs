//! Where what came out differs from what was expected, in a form that people can read.
//!
//! Documents of JSON and messages of HL7 are compared by their lines: how a document is
//! indented and which line ends a file got in version control is no difference; every other
//! byte is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use similar::TextDiff;

use super::produced::{File, Produced};
use super::read_limited;

/// Bytes of a file that is expected.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a difference that are shown.
const SHOWN_BYTES_MAX: usize = 16 << 10;
/// Files under `expected/`.
const FILES_MAX: usize = 10_000;

/// One file that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Under `expected/`.
    pub file: String,
    /// Lines with `-` were expected, lines with `+` came.
    pub diff: String,
}

/// Every difference, by file.
pub(super) fn compare(folder: &Path, came: &Produced) -> anyhow::Result<Vec<Difference>> {
    let expected = read_expected(folder)?;
    let paths: BTreeSet<&String> = expected.keys().chain(came.keys()).collect();
    let mut differences = Vec::new();
    for path in paths {
        let (name, diff) = match (expected.get(path), came.get(path)) {
            (Some(expected), Some(came)) => {
                let ending = expected.path.extension().unwrap_or_default().to_string_lossy().into_owned();
                (format!("{path}.{ending}"), diff(&ending, &expected.bytes, &came.bytes))
            }
            (Some(expected), None) => {
                let ending = expected.path.extension().unwrap_or_default().to_string_lossy().into_owned();
                (
                    format!("{path}.{ending}"),
                    Some(one_sided("expected, and did not come", '-', &expected.bytes)),
                )
            }
            (None, Some(came)) => {
                let text = one_sided("came, and is not expected", '+', &readable(came.ending, &came.bytes));
                (format!("{path}.{}", came.ending), Some(text))
            }
            (None, None) => continue,
        };
        differences.extend(diff.map(|diff| Difference { file: name, diff }));
    }
    Ok(differences)
}

/// Makes what came what is expected. Files keep the endings they have.
pub(super) fn update(folder: &Path, came: &Produced) -> anyhow::Result<()> {
    let expected = read_expected(folder)?;
    for (path, stale) in &expected {
        if !came.contains_key(path) {
            fs::remove_file(&stale.path)
                .with_context(|| format!("cannot remove `{}`", stale.path.display()))?;
        }
    }
    for (path, File { ending, bytes }) in came {
        let target = match expected.get(path) {
            Some(expected) => expected.path.clone(),
            None => folder.join(format!("{path}.{ending}")),
        };
        let ending = target.extension().unwrap_or_default().to_string_lossy().into_owned();
        let unchanged = expected.get(path).is_some_and(|old| diff(&ending, &old.bytes, bytes).is_none());
        if unchanged {
            continue;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create `{}`", parent.display()))?;
        }
        fs::write(&target, readable(&ending, bytes))
            .with_context(|| format!("cannot write `{}`", target.display()))?;
    }
    Ok(())
}

/// A file under `expected/`.
struct Expected {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// By the path without its ending.
fn read_expected(folder: &Path) -> anyhow::Result<BTreeMap<String, Expected>> {
    let mut expected = BTreeMap::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => anyhow::bail!("cannot list `{}`: {error}", folder.display()),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            // Below a destination's folder there is nothing more.
            if entry.file_type()?.is_dir() {
                anyhow::ensure!(prefix.is_empty(), "`{}` is too deep", entry.path().display());
                folders.push((entry.path(), format!("{name}/")));
                continue;
            }
            let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            let bytes = read_limited(&entry.path(), FILE_BYTES_MAX)?;
            let file = Expected { path: entry.path(), bytes };
            if let Some(twin) = expected.insert(format!("{prefix}{stem}"), file) {
                anyhow::bail!("`{}` and `{}` mean the same", twin.path.display(), entry.path().display());
            }
            anyhow::ensure!(expected.len() <= FILES_MAX, "more than {FILES_MAX} files are expected");
        }
    }
    Ok(expected)
}

/// Bytes as they are kept in a file: JSON with a line for each value, HL7 with a line for each segment.
fn readable(ending: &str, bytes: &[u8]) -> Vec<u8> {
    match ending {
        "json" => indent(bytes).unwrap_or_else(|| bytes.to_vec()),
        "hl7" => {
            let mut text: Vec<u8> =
                bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect();
            if text.last() != Some(&b'\n') {
                text.push(b'\n');
            }
            text
        }
        _ => bytes.to_vec(),
    }
}

/// None: they are the same.
fn diff(ending: &str, expected: &[u8], came: &[u8]) -> Option<String> {
    let normal = |bytes: &[u8]| match ending {
        // Version control may have turned line ends around.
        "hl7" => readable(ending, &String::from_utf8_lossy(bytes).replace("\r\n", "\n").into_bytes()),
        _ => readable(ending, bytes),
    };
    if expected == came {
        return None;
    }
    let (expected, came) = (normal(expected), normal(came));
    if expected == came {
        return None;
    }
    let (Ok(old), Ok(new)) = (std::str::from_utf8(&expected), std::str::from_utf8(&came)) else {
        let at = expected.iter().zip(&came).take_while(|(one, other)| one == other).count();
        let (old, new) = (expected.len(), came.len());
        return Some(format!("{old} bytes were expected and {new} came; they differ from byte {at} on\n"));
    };
    let diff = TextDiff::from_lines(old, new);
    Some(cut(diff.unified_diff().context_radius(2).to_string()))
}

fn one_sided(what: &str, mark: char, bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return format!("{what}: {} bytes\n", bytes.len());
    };
    let lines: String = text.lines().map(|line| format!("{mark}{line}\n")).collect();
    cut(format!("{what}\n{lines}"))
}

fn cut(mut text: String) -> String {
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n…\n");
    }
    text
}

/// A document of JSON with a line for each member, its numbers and texts as they were written.
/// None: it is no JSON.
fn indent(bytes: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).ok()?;
    let mut indented = Vec::with_capacity(bytes.len() * 2);
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let line = |indented: &mut Vec<u8>, depth: usize| {
        indented.push(b'\n');
        indented.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if in_text {
            indented.push(byte);
            in_text = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'"' => {
                in_text = true;
                indented.push(byte);
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                indented.push(byte);
                while rest.next_if(u8::is_ascii_whitespace).is_some() {}
                match rest.next_if(|next| matches!(next, b'}' | b']')) {
                    Some(end) => indented.push(end),
                    None => {
                        depth += 1;
                        line(&mut indented, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(&mut indented, depth);
                indented.push(byte);
            }
            b',' => {
                indented.push(byte);
                line(&mut indented, depth);
            }
            b':' => indented.extend_from_slice(b": "),
            _ => indented.push(byte),
        }
    }
    indented.push(b'\n');
    Some(indented)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn json_keeps_its_digits_and_texts_when_it_is_indented() {
        let text = r#"{"a":[1.10,{}],"b":"x, {\"y\"}: \\","c":[ ],"d":{"e":null}}"#;
        let indented = String::from_utf8(indent(text.as_bytes()).unwrap()).unwrap();
        expect![[r#"
            {
              "a": [
                1.10,
                {}
              ],
              "b": "x, {\"y\"}: \\",
              "c": [],
              "d": {
                "e": null
              }
            }
        "#]]
        .assert_eq(&indented);
        assert_eq!(indent(indented.as_bytes()).unwrap(), indented.as_bytes(), "indented twice it changes");
        assert_eq!(indent(b"{"), None);
    }

    #[test]
    fn forms_of_one_document_are_no_difference_and_digits_are() {
        assert_eq!(diff("json", b"{ \"a\": 1 }\n", b"{\"a\":1}"), None);
        assert_eq!(diff("hl7", b"MSH|\nPID|\n", b"MSH|\rPID|\r"), None);
        assert_eq!(diff("hl7", b"MSH|\r\nPID|\r\n", b"MSH|\rPID|\r"), None);
        assert!(diff("txt", b"a\n", b"a").is_some());
        expect![[r#"
            @@ -1,3 +1,3 @@
             {
            -  "a": 1.0
            +  "a": 1.00
             }
        "#]]
        .assert_eq(&diff("json", b"{\"a\":1.0}", b"{\"a\":1.00}").unwrap());
        assert_eq!(
            diff("bin", b"\xff\x00", b"\xff\x01\x02").unwrap(),
            "2 bytes were expected and 3 came; they differ from byte 1 on\n"
        );
    }

    #[test]
    fn an_update_makes_what_came_what_is_expected() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("expected");
        fs::create_dir_all(folder.join("old")).unwrap();
        fs::write(folder.join("old/output.txt"), "gone").unwrap();
        fs::create_dir_all(folder.join("api")).unwrap();
        fs::write(folder.join("api/output.ndjson"), "{}").unwrap();
        let file = |ending, text: &str| File { ending, bytes: text.as_bytes().to_vec() };
        let came = Produced::from([
            ("api/output".to_owned(), file("json", "{\"a\":1}")),
            ("source".to_owned(), file("txt", "message 1\n")),
        ]);
        let files: Vec<_> = compare(&folder, &came).unwrap().into_iter().map(|one| one.file).collect();
        assert_eq!(files, ["api/output.ndjson", "old/output.txt", "source.txt"]);
        update(&folder, &came).unwrap();
        assert_eq!(compare(&folder, &came).unwrap(), []);
        assert!(!folder.join("old/output.txt").exists());
        assert_eq!(fs::read_to_string(folder.join("api/output.ndjson")).unwrap(), "{\"a\":1}");
    }
}
