//! `secrets.toml`: names and their secret values. No problem repeats anything of the file.

use std::collections::BTreeMap;
use std::path::Path;

use portway_model::code;
use toml::de::DeValue;

use crate::files::read_text;
use crate::reader::{Reader, TableNode};
use crate::secret::Names;
use crate::{Environment, Place, Problem, Project, Secret};

/// The project's secrets; none if there is no file.
pub(crate) fn read_secrets(dir: &Path, problems: &mut Vec<Problem>) -> BTreeMap<String, Secret> {
    let path = dir.join(Project::SECRETS);
    let place = Place::of_file(Project::SECRETS);
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return BTreeMap::new(),
        Err(error) => {
            problems.push(Problem::new(place, code::FILE_UNREADABLE, format!("cannot be read: {error}")));
            return BTreeMap::new();
        }
    };
    if is_open_to_others(&metadata) {
        let text = "can be read by others than its owner";
        let hint = format!("run `chmod 600 {}`", Project::SECRETS);
        problems.push(Problem::new(place, code::BAD_SECRETS, text).hint(hint));
        return BTreeMap::new();
    }
    match read_text(&path) {
        Ok(text) => {
            let (secrets, found) = parse_secrets(&text);
            problems.extend(found);
            secrets
        }
        Err(why) => {
            problems.push(Problem::new(place, code::FILE_UNREADABLE, why));
            BTreeMap::new()
        }
    }
}

#[cfg(unix)]
fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &std::fs::Metadata) -> bool {
    false
}

pub(crate) fn parse_secrets(text: &str) -> (BTreeMap<String, Secret>, Vec<Problem>) {
    let (environment, none) = (Environment::default(), BTreeMap::new());
    let names = Names { environment: &environment, secrets: &none };
    let (secrets, mut problems) =
        Reader::file(Project::SECRETS, text, &names, Path::new(""), read_secret_table);
    // What the parser says may quote the line: only where it is remains.
    for problem in problems.iter_mut().filter(|problem| problem.code == code::NOT_TOML) {
        "not TOML".clone_into(&mut problem.text);
        problem.hint = Some("write `NAME = \"value\"`, one a line".to_owned());
    }
    (secrets.unwrap_or_default(), problems)
}

fn read_secret_table(table: TableNode<'_>, reader: &mut Reader<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut secrets = BTreeMap::new();
    for (key, value) in table.table {
        let name: &str = key.get_ref();
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match value.get_ref() {
            DeValue::String(secret) if name.bytes().all(word) => {
                secrets.insert(name.to_owned(), Secret::new(secret.as_ref()));
            }
            _ => {
                let hint = "write `NAME = \"value\"` at the top; names have letters, digits and `_`";
                reader.report(key.span().start, code::BAD_SECRETS, "not a secret", Some(hint.to_owned()));
            }
        }
    }
    Some(secrets)
}
