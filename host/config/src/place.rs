//! Where something stands in a project file.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// File, line and column of a value or key. Lines and columns count from 1; line 0 means
/// the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Relative to the project.
    pub file: Arc<str>,
    pub line: u32,
    /// In characters.
    pub column: u32,
}

impl Place {
    /// The file as a whole.
    pub fn of_file(file: &str) -> Place {
        Place { file: file.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// A value and where it stands, for checks that come after reading. Two are equal whose values
/// are: a line that moved changes nothing of what runs.
#[derive(Clone, Debug)]
pub struct At<T> {
    pub value: T,
    pub place: Place,
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for At<T> {}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The text of a file and where its lines begin.
#[derive(Debug)]
pub(crate) struct SourceText<'t> {
    pub(crate) name: Arc<str>,
    text: &'t str,
    /// Offset of the first byte of each line; the first is 0.
    lines: Vec<usize>,
}

impl<'t> SourceText<'t> {
    pub(crate) fn new(name: &str, text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        SourceText { name: name.into(), text, lines }
    }

    /// The place of a byte offset; beyond the end is the end.
    pub(crate) fn place(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        // Bytes that begin a character: all but UTF-8 continuations.
        let characters = before.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place { file: self.name.clone(), line: count(line), column: count(characters.saturating_add(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = SourceText::new("a.toml", "é = 1\nkey = 2\n");
        let place = |offset| text.place(offset).to_string();
        assert_eq!([place(0), place(3), place(7)], ["a.toml:1:1", "a.toml:1:3", "a.toml:2:1"]);
        assert_eq!(place(9_999), "a.toml:3:1");
    }
}
