//! File names: a template that stays in the granted folder whatever a message puts in.
//!
//! Characters that matter in paths are written as `%2F`, so that two values never give one
//! name, and a long name is cut and ends in a digest of the whole.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::str::FromStr;

use portway_sdk::{Call, Failure, Message, Problem, ResultExt, Template};

/// Bytes of a name between two slashes; file systems take 255, and a writer may put
/// something before or behind it for a while.
const NAME_BYTES_MAX: usize = 200;
const PATH_BYTES_MAX: usize = 1000;

/// The template of a path in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(Template);

impl Name {
    /// The path of one message's file.
    pub fn render(&self, call: &Call, message: &Message) -> Result<Cow<'_, str>, Problem> {
        match self.0.render(call, message, push_plain).quarantine("no-name")? {
            Cow::Borrowed(path) => Ok(Cow::Borrowed(path)),
            Cow::Owned(path) => Ok(Cow::Owned(within_limits(&path))),
        }
    }
}

impl FromStr for Name {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Name, Failure> {
        let template =
            text.parse().map_err(|error: portway_sdk::TemplateError| bad(text, &error.to_string()))?;
        // What a message puts in has no slash, so the template alone decides the folders.
        for name in text.split('/') {
            match name {
                "" => return Err(bad(text, "a path in a folder has no empty names")),
                "." | ".." => return Err(bad(text, "`.` and `..` are not allowed")),
                _ if name.chars().any(char::is_control) => {
                    return Err(bad(text, "a name has no control characters"));
                }
                _ => {}
            }
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(bad(text, "it is too long"));
        }
        Ok(Name(template))
    }
}

fn bad(template: &str, text: &str) -> Failure {
    Failure::new("bad-settings", format!("setting `file`: `{template}` is no path in the folder: {text}"))
}

/// Adds a value so that it stays within one name and no other value gives the same.
fn push_plain(path: &mut String, value: &str) {
    for (at, character) in value.char_indices() {
        let plain = match character {
            '/' | '\\' | '%' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => false,
            '.' => at > 0,
            _ => !character.is_control(),
        };
        if plain {
            path.push(character);
            continue;
        }
        let mut bytes = [0; 4];
        for byte in character.encode_utf8(&mut bytes).bytes() {
            // Writing to a string cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
}

/// Cuts names that are too long; a digest of the whole keeps them apart.
fn within_limits(path: &str) -> String {
    let names = path.split('/').map(|name| {
        if name.len() <= NAME_BYTES_MAX {
            return Cow::Borrowed(name);
        }
        let digest = format!("~{:016x}", portway_sdk::fnv1a(name.bytes()));
        let room = NAME_BYTES_MAX - digest.len();
        let end = (0..=room).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        let (kept, _) = name.split_at(end);
        Cow::Owned(format!("{kept}{digest}"))
    });
    names.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of_key(key: &str) -> String {
        let name: Name = "{key}".parse().unwrap();
        let call = Call::new("main", false, Duration::from_secs(1));
        name.render(&call, &Message::new("").with_key(key)).unwrap().into_owned()
    }

    #[test]
    fn a_value_stays_within_its_name_and_two_never_meet() {
        assert_eq!(of_key("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
        assert_eq!(of_key("a\nb\0c"), "a%0Ab%00c");
        assert_ne!(of_key("a/b"), of_key("a%2Fb"));
        let (long, longer) = (of_key(&"ü".repeat(400)), of_key(&"ü".repeat(401)));
        assert!(long.len() <= NAME_BYTES_MAX && long != longer, "{long}");
    }

    #[test]
    fn a_template_that_is_no_path_in_the_folder_is_refused() {
        for template in ["", "/a", "a//b", "../a", "a/..", "a\nb", "{", "{ide}"] {
            assert!(template.parse::<Name>().is_err(), "{template}");
        }
        assert!("{date}/{attribute:a}.hl7".parse::<Name>().is_ok());
    }
}
