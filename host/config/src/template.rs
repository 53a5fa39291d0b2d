//! References in texts: `${env:NAME}` and `${secret:NAME}`, where an option is marked for them.
//!
//! `$${` is a literal `${`. A mistake names the reference, never a value.

use crate::secret::Names;
use crate::secrets_file::is_secret_name;

/// Which references an option takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    #[default]
    None,
    /// `${env:…}`
    Env,
    /// `${env:…}` and `${secret:…}`
    Secret,
}

/// A reference that could not be resolved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unresolved {
    pub(crate) text: String,
    pub(crate) hint: String,
}

/// The text with its references replaced. Made in one piece, so that no part of a secret stays
/// behind in memory that was outgrown.
pub(crate) fn resolve(text: &str, mark: Mark, names: &Names<'_>) -> Result<String, Unresolved> {
    let mut resolved: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(literal) = before.strip_suffix('$') {
            resolved.extend([literal, "${"]);
            rest = reference.get(2..).unwrap_or_default();
            continue;
        }
        resolved.push(before);
        let (name, after) =
            reference.get(2..).and_then(|inner| inner.split_once('}')).ok_or_else(unclosed)?;
        resolved.push(lookup(name, mark, names)?);
        rest = after;
    }
    resolved.push(rest);
    Ok(resolved.concat())
}

fn lookup<'n>(reference: &str, mark: Mark, names: &'n Names<'_>) -> Result<&'n str, Unresolved> {
    let (kind, name) = reference.split_once(':').unwrap_or(("", reference));
    let named = is_secret_name(name);
    let (value, hint) = match kind {
        "env" | "secret" if !named => {
            let text = format!("`${{{kind}:…}}` does not name anything");
            return Err(Unresolved { text, hint: "names have letters, digits and `_`".to_owned() });
        }
        "env" if mark == Mark::None => return Err(not_marked("env")),
        "secret" if mark != Mark::Secret => return Err(not_marked("secret")),
        "env" => (names.environment.get(name), format!("set the environment variable `{name}`")),
        "secret" => (names.secrets.get(name, names.environment), names.secrets.hint(name)),
        _ => {
            let hint = "write `${env:NAME}` or `${secret:NAME}`; `$${` is a literal `${`".to_owned();
            return Err(Unresolved { text: "unknown kind of reference".to_owned(), hint });
        }
    };
    value.ok_or_else(|| Unresolved { text: format!("`${{{kind}:{name}}}` has no value"), hint })
}

fn unclosed() -> Unresolved {
    let hint = "close the reference with `}`; `$${` is a literal `${`".to_owned();
    Unresolved { text: "a reference begins here and does not end".to_owned(), hint }
}

fn not_marked(kind: &str) -> Unresolved {
    let text = format!("`${{{kind}:…}}` is not taken by this option");
    Unresolved {
        text,
        hint: "write the value itself; the reference lists the options that take references".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;
    use crate::secrets::Secrets;

    fn check(text: &str, mark: Mark) -> Result<String, String> {
        let environment = Environment::of_pairs([("HOST", "lab"), ("PORTWAY_SECRET_A", "from-env")]);
        let secrets = Secrets::of_file([("A", "from-file"), ("B", "only-file")]);
        let names = Names { environment: &environment, secrets: &secrets };
        resolve(text, mark, &names).map_err(|unresolved| unresolved.text)
    }

    #[test]
    fn references_are_replaced_and_the_environment_wins() {
        assert_eq!(check("http://${env:HOST}:80/", Mark::Env).unwrap(), "http://lab:80/");
        assert_eq!(check("${secret:A} ${secret:B}", Mark::Secret).unwrap(), "from-env only-file");
        assert_eq!(check("a $ b $${env:HOST}", Mark::None).unwrap(), "a $ b ${env:HOST}");
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(check("${env:NOPE}", Mark::Env).unwrap_err(), "`${env:NOPE}` has no value");
        assert_eq!(check("${secret:A}", Mark::Env).unwrap_err(), "`${secret:…}` is not taken by this option");
        assert_eq!(check("${env:HOST}", Mark::None).unwrap_err(), "`${env:…}` is not taken by this option");
        assert_eq!(check("${HOST}", Mark::Env).unwrap_err(), "unknown kind of reference");
        assert!(check("${env:", Mark::Env).is_err());
        assert!(check("${env:}", Mark::Env).is_err());
    }
}
