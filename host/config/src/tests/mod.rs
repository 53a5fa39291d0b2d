//! Whole projects and files, good and bad.

mod bad;
mod encrypted;
mod good;

use std::path::Path;

use crate::interface::InterfaceFile;
use crate::reader::Reader;
use crate::secret::Names;
use crate::secrets::Secrets;
use crate::{DestinationSettings, Environment, Problems, load};

/// A project folder with these files.
pub(crate) fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// The problems of a project, with `DIR` for its folder.
pub(crate) fn problems(files: &[(&str, &str)]) -> String {
    let dir = project(files);
    let problems = load(dir.path(), &Environment::default()).err().unwrap_or_default();
    problems.to_string().replace(&dir.path().display().to_string(), "DIR")
}

/// A destination with a sender, a few more lines, and the secret `T`.
pub(crate) fn destination(lines: &str) -> DestinationSettings {
    let text = format!("[[destination]]\nname = \"d\"\n{lines}\n");
    let environment = Environment::of_pairs([("PORTWAY_SECRET_T", "s3cret")]);
    let secrets = Secrets::default();
    let names = Names { environment: &environment, secrets: &secrets };
    let (file, problems) = Reader::file("t.toml", &text, &names, Path::new("/p"), InterfaceFile::read_table);
    assert!(problems.is_empty(), "{}", Problems::new(problems));
    file.unwrap().destination.remove(0)
}

/// The problems of an interface whose only sender has these lines.
pub(crate) fn problems_of_sender(lines: &str) -> String {
    let text = format!("[[destination]]\nname = \"d\"\n[destination.sender]\nplugin = \"x\"\n{lines}\n");
    crate::check_text("interfaces/t.toml", &text).to_string()
}
