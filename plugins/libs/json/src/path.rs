//! Paths into a document: JSON Pointers (RFC 6901), or names with dots between them.
//!
//! `/patient/names/0` and `patient.names.0` lead to the same place. A path begins where it is used: at
//! the document, or at an element that is gone through; `$` in front of it begins at the document.

use std::fmt;
use std::str::FromStr;

use crate::Value;

/// Names of a path.
const PARTS_MAX: usize = 64;
const BYTES_MAX: usize = 1024;

/// A place in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    written: String,
    is_from_document: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    name: String,
    /// What it is in an array.
    index: Option<usize>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    TooLong,
    /// Two dots beside one another, or one at an end.
    EmptyName,
    /// `~` is followed by neither `0` nor `1`.
    Tilde,
    /// `$` is followed by neither `/` nor `.`.
    Document,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::TooLong => {
                write!(f, "a path has at most {PARTS_MAX} names and {BYTES_MAX} bytes")
            }
            PathError::EmptyName => f.write_str("a name between dots is not empty; write the path as `/a/b`"),
            PathError::Tilde => f.write_str("`~` is written `~0`, and `/` in a name `~1`"),
            PathError::Document => f.write_str("behind `$` stands nothing, `/` or `.`"),
        }
    }
}

impl std::error::Error for PathError {}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(written: &str) -> Result<Path, PathError> {
        if written.len() > BYTES_MAX {
            return Err(PathError::TooLong);
        }
        let (is_from_document, rest) = match written.strip_prefix('$') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => (true, rest),
            Some(rest) => (true, rest.strip_prefix('.').ok_or(PathError::Document)?),
            None => (false, written),
        };
        let parts: Vec<Part> = match rest.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(pointer_part).collect::<Result<_, _>>()?,
            None if rest.is_empty() && !written.ends_with('.') => Vec::new(),
            None => rest.split('.').map(dotted_part).collect::<Result<_, _>>()?,
        };
        if parts.len() > PARTS_MAX {
            return Err(PathError::TooLong);
        }
        Ok(Path { written: written.to_owned(), is_from_document, parts })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Path {
    /// The path to a member of this name, whatever is in the name.
    pub fn of_member(name: &str) -> Path {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Path { written: format!("/{escaped}"), is_from_document: false, parts: vec![part(name.to_owned())] }
    }

    /// What is there; none: there is no such place.
    pub fn find<'v, 'a>(&self, here: &'v Value<'a>, document: &'v Value<'a>) -> Option<&'v Value<'a>> {
        let mut found = if self.is_from_document { document } else { here };
        for part in &self.parts {
            found = match found {
                Value::Object(_) => found.member(&part.name)?,
                Value::Array(elements) => elements.get(part.index?)?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => return None,
            };
        }
        Some(found)
    }

    /// The names, each with what it is in an array.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.parts.iter().map(|part| (part.name.as_str(), part.index))
    }

    /// Begins at the document, wherever it is used.
    pub fn is_from_document(&self) -> bool {
        self.is_from_document
    }
}

fn pointer_part(written: &str) -> Result<Part, PathError> {
    let mut name = String::new();
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        name.push(match character {
            '~' => match characters.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err(PathError::Tilde),
            },
            _ => character,
        });
    }
    Ok(part(name))
}

fn dotted_part(written: &str) -> Result<Part, PathError> {
    if written.is_empty() { Err(PathError::EmptyName) } else { Ok(part(written.to_owned())) }
}

fn part(name: String) -> Part {
    let is_index = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    let index = if is_index { name.parse().ok() } else { None };
    Part { name, index }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const DOCUMENT: &str =
        r#"{"a":{"b":[10,{"c":"x"}],"":"empty","0":"zero"},"m/n":1,"m~n":2,"$x":3,"d.e":4}"#;

    fn found(path: &str) -> String {
        let document = parse(DOCUMENT).unwrap();
        let here = document.member("a").unwrap();
        let path: Path = match path.parse() {
            Ok(path) => path,
            Err(error) => return error.to_string(),
        };
        path.find(here, &document).map_or_else(|| "nothing".into(), |value| format!("{value:?}"))
    }

    #[test]
    fn pointers_and_dots_lead_to_the_same_places() {
        for path in ["/b/1/c", "b.1.c", "$/a/b/1/c", "$.a.b.1.c"] {
            assert_eq!(found(path), r#"Text("x")"#, "{path}");
        }
        let cases = [
            ("/b/0", r#"Number("10")"#),
            ("/0", r#"Text("zero")"#),
            ("/", r#"Text("empty")"#),
            ("$/m~1n", r#"Number("1")"#),
            ("$/m~0n", r#"Number("2")"#),
            ("$/$x", r#"Number("3")"#),
            ("$/d.e", r#"Number("4")"#),
            ("/b/2", "nothing"),
            ("/b/01", "nothing"),
            ("/b/-1", "nothing"),
            ("/b/99999999999999999999999", "nothing"),
            ("/b/0/c", "nothing"),
            ("x.y", "nothing"),
        ];
        for (path, expected) in cases {
            assert_eq!(found(path), expected, "{path}");
        }
        assert!(found("").starts_with("Object"));
        assert!(found("$").starts_with("Object"));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let cases = [
            ("a..b", "a name between dots"),
            (".a", "a name between dots"),
            ("$.", "a name between dots"),
            ("/a~2", "`~` is written"),
            ("$a", "behind `$`"),
        ];
        for (path, expected) in cases {
            assert!(found(path).contains(expected), "{path}: {}", found(path));
        }
        assert!(found(&"/a".repeat(65)).contains("at most 64 names"));
        assert!(found(&"a".repeat(1025)).contains("1024 bytes"));
    }

    #[test]
    fn any_name_has_a_path() {
        for name in ["a", "m/n", "m~n", "d.e", "", "$x"] {
            let path = Path::of_member(name);
            assert_eq!(path.to_string().parse(), Ok(path.clone()), "{name}");
            assert_eq!(path.parts().next(), Some((name, None)));
        }
    }
}
