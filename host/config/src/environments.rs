//! `environments/NAME.toml`: values for `${env:…}`, one file for each place a project runs at.
//!
//! Variables of the process come first, so that a deployment has the last word. Secrets do not
//! stand here: these files belong into version control.

use std::path::Path;

use portway_model::code;
use toml::de::DeValue;

use crate::files::read_text;
use crate::reader::{Reader, TableNode, shorten};
use crate::secret::Names;
use crate::{Environment, Name, Place, Problem, Project};

/// The environment with the values of the named file behind it, and what is wrong with the file.
pub(crate) fn read_environment(
    dir: &Path,
    environment: &Environment,
    name: &str,
) -> (Environment, Vec<Problem>) {
    let shown = format!("{}/{name}.toml", Project::ENVIRONMENTS);
    let place = Place::of_file(&shown);
    if Name::new(name).is_none() {
        let text = format!("`{}` is not the name of an environment", shorten(name));
        let place = Place::of_file(Project::ENVIRONMENTS);
        return (environment.clone(), vec![Problem::new(place, code::BAD_VALUE, text).hint(Name::RULE)]);
    }
    let text = match read_text(&dir.join(&shown)) {
        Ok(text) => text,
        Err(why) => {
            let hint = "an environment is a file of lines such as `HOST = \"127.0.0.1\"`";
            let problem = Problem::new(place, code::FILE_UNREADABLE, why).hint(hint);
            return (environment.clone(), vec![problem]);
        }
    };
    let (values, problems) = parse(&shown, &text);
    (environment.with_defaults(values), problems)
}

fn parse(shown: &str, text: &str) -> (Vec<(String, String)>, Vec<Problem>) {
    let (environment, none) = (Environment::default(), crate::secrets::Secrets::default());
    let names = Names { environment: &environment, secrets: &none };
    let (values, problems) = Reader::file(shown, text, &names, Path::new(""), read_values);
    (values.unwrap_or_default(), problems)
}

fn read_values(table: TableNode<'_>, reader: &mut Reader<'_>) -> Option<Vec<(String, String)>> {
    let mut values = Vec::new();
    for (key, value) in table.table {
        let name: &str = key.get_ref();
        let offset = key.span().start;
        if name.starts_with(Environment::SECRET_PREFIX) {
            let hint = "write it into `secrets.toml` without the prefix, or set it for the process";
            let text = "a secret does not belong into an environment's file";
            reader.report(offset, code::BAD_VALUE, text, Some(hint.to_owned()));
            continue;
        }
        let written = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Boolean(value) => Some(value.to_string()),
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|number| number.to_string())
            }
            _ => None,
        };
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match written {
            Some(written) if is_word => values.push((name.to_owned(), written)),
            _ => {
                let hint = "write `NAME = \"value\"` at the top; names have letters, digits and `_`";
                let text = format!("`{}` is no variable with a value", shorten(name));
                reader.report(offset, code::BAD_VALUE, text, Some(hint.to_owned()));
            }
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_those_of_the_process() {
        let (values, problems) = parse("environments/test.toml", "HOST = \"lab\"\nPORT = 2575\nTLS = true\n");
        assert!(problems.is_empty(), "{problems:?}");
        let environment = Environment::of_pairs([("HOST", "other")]).with_defaults(values);
        assert_eq!(environment.get("HOST"), Some("other"));
        assert_eq!((environment.get("PORT"), environment.get("TLS")), (Some("2575"), Some("true")));
    }

    #[test]
    fn secrets_and_tables_are_refused_with_their_place() {
        let (_, problems) = parse("environments/test.toml", "A = \"a\"\nPORTWAY_SECRET_T = \"x\"\n[b]\n");
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(shown[0].starts_with("environments/test.toml:2:1: a secret"), "{shown:?}");
        assert!(shown[1].contains("`b` is no variable"), "{shown:?}");
    }

    #[test]
    fn an_environment_without_a_file_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["nope", "../nope"] {
            assert_eq!(read_environment(dir.path(), &Environment::default(), name).1.len(), 1, "{name}");
        }
    }
}
