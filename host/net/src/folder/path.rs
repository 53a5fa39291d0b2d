//! Which paths are plain enough to go under a granted folder.
//!
//! Pure. What the file system holds at a path is judged where it is opened.

use std::sync::Arc;

use cap_std::fs::Dir;

use super::FolderError;

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1_024;
/// Bytes of one name.
const NAME_BYTES_MAX: usize = 255;
/// Folders on the way.
const DEPTH_MAX: usize = 16;
/// Names with this prefix are half-written files of ours.
pub(super) const RESERVED_PREFIX: &str = ".portway-part-";

/// A name in the directory it lies in.
pub(super) struct Place {
    pub(super) dir: Arc<Dir>,
    pub(super) name: String,
}

pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED_PREFIX)
}

/// The folders on the way, and the last name.
pub(super) fn parse_file(path: &str) -> Result<(std::vec::IntoIter<&str>, &str), FolderError> {
    let mut names = parse(path)?;
    let name = names.pop().ok_or(FolderError::Denied)?;
    Ok((names.into_iter(), name))
}

/// All names of a path to a folder; none is the folder itself.
pub(super) fn parse_folder(path: &str) -> Result<std::vec::IntoIter<&str>, FolderError> {
    if path.is_empty() {
        return Ok(Vec::new().into_iter());
    }
    parse(path).map(Vec::into_iter)
}

fn parse(path: &str) -> Result<Vec<&str>, FolderError> {
    let names: Vec<&str> = path.split('/').collect();
    let fits = path.len() <= PATH_BYTES_MAX && names.len() <= DEPTH_MAX;
    if fits && names.iter().all(|name| is_plain(name)) { Ok(names) } else { Err(FolderError::Denied) }
}

fn is_plain(name: &str) -> bool {
    let known = name.is_empty() || name == "." || name == "..";
    let odd = name.chars().any(|character| character == '\\' || character.is_control());
    !known && !odd && name.len() <= NAME_BYTES_MAX && !is_reserved(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_relative_paths_are_taken_apart() {
        let (parents, name) = parse_file("a/b/c.txt").unwrap();
        assert_eq!((parents.as_slice(), name), (["a", "b"].as_slice(), "c.txt"));
        assert_eq!(parse_file("c").unwrap().1, "c");
        assert_eq!(parse_folder("").unwrap().count(), 0);
        assert_eq!(parse_file("...").unwrap().1, "...");
    }

    #[test]
    fn paths_that_could_mean_something_else_are_denied() {
        let (long_name, long_path, deep) = ("x".repeat(256), "xx/".repeat(400), "x/".repeat(16));
        let cases = [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            ".",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "a\0",
            "a\nb",
            ".portway-part-1",
            "a/.portway-part-x",
            &long_name,
            &long_path,
            &deep,
        ];
        for path in cases {
            assert!(parse_file(path).is_err(), "{path:?}");
        }
    }
}
