//! `secrets.toml`: names and their secret values. No problem repeats anything of the file.

use std::collections::BTreeMap;
use std::path::Path;

use portway_model::code;
use toml::de::DeValue;
use zeroize::Zeroizing;

use crate::files::read_text;
use crate::reader::{Reader, TableNode};
use crate::secret::Names;
use crate::secrets::{Found, Secrets};
use crate::{Environment, Place, Problem, Project, Secret};

/// The secrets of the project's own file.
pub(crate) fn read_secrets(dir: &Path, problems: &mut Vec<Problem>) -> Found {
    let path = dir.join(Project::SECRETS);
    let place = Place::of_file(Project::SECRETS);
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::NoFile,
        Err(error) => {
            problems.push(Problem::new(place, code::FILE_UNREADABLE, format!("cannot be read: {error}")));
            return Found::Unusable;
        }
    };
    if is_open_to_others(&metadata) {
        let text = "can be read by others than its owner";
        let hint = format!("run `chmod 600 {}`", Project::SECRETS);
        problems.push(Problem::new(place, code::BAD_SECRETS, text).hint(hint));
        return Found::Unusable;
    }
    match read_text(&path).map(Zeroizing::new) {
        Ok(text) => {
            let (secrets, found) = parse_secrets(Project::SECRETS, &text);
            problems.extend(found);
            Found::Read(secrets)
        }
        Err(why) => {
            problems.push(Problem::new(place, code::FILE_UNREADABLE, why));
            Found::Unusable
        }
    }
}

/// Whether others than its owner can read or change a file.
#[cfg(unix)]
pub(crate) fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
pub(crate) fn is_open_to_others(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// `shown` is what problems call the file.
pub(crate) fn parse_secrets(shown: &str, text: &str) -> (BTreeMap<String, Secret>, Vec<Problem>) {
    let (environment, none) = (Environment::default(), Secrets::default());
    let names = Names { environment: &environment, secrets: &none };
    let (secrets, mut problems) = Reader::file(shown, text, &names, Path::new(""), read_secret_table);
    // What the parser says may quote the line: only where it is remains.
    for problem in problems.iter_mut().filter(|problem| problem.code == code::NOT_TOML) {
        "not TOML".clone_into(&mut problem.text);
        problem.hint = Some("write `NAME = \"value\"`, one a line".to_owned());
    }
    (secrets.unwrap_or_default(), problems)
}

/// Whether it can be the name of a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() <= Secret::NAME_BYTES_MAX && name.bytes().all(word)
}

fn read_secret_table(table: TableNode<'_>, reader: &mut Reader<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut secrets = BTreeMap::new();
    for (key, value) in table.table {
        let name: &str = key.get_ref();
        match value.get_ref() {
            DeValue::String(secret) if is_secret_name(name) => {
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
