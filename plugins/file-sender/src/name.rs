//! File names from templates.
//!
//! A template is text with placeholders: `{id}`, `{key}`, `{store}`, `{date}` and `{time}`
//! of the receipt in UTC, `{attribute:NAME}`; `{{` and `}}` are braces. What a message puts
//! in cannot lead anywhere else: characters that matter in paths are written as `%2F`, so
//! that two values never give one name, and a long name is cut and ends in a digest of the
//! whole.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::str::FromStr;

use portway_sdk::{Call, Failure, Message, Problem};

/// Bytes of a name between two slashes; file systems take 255, and a writer may put
/// something before or behind it for a while.
const NAME_BYTES_MAX: usize = 200;
const PATH_BYTES_MAX: usize = 1000;

/// A template, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Id,
    Key,
    Store,
    Date,
    Time,
    Attribute(String),
}

impl Name {
    /// The path of one message's file.
    pub fn render(&self, call: &Call, message: &Message) -> Result<Cow<'_, str>, Problem> {
        if let [Part::Literal(path)] = self.parts.as_slice() {
            return Ok(Cow::Borrowed(path));
        }
        let mut path = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => path.push_str(text),
                Part::Id => path.push_str(&message.id.to_string()),
                Part::Key => push_plain(&mut path, given(message.key.as_deref(), "key")?),
                Part::Store => push_plain(&mut path, &call.store),
                Part::Date => path.push_str(&date(message.received_ms)),
                Part::Time => path.push_str(&time(message.received_ms)),
                Part::Attribute(name) => {
                    push_plain(
                        &mut path,
                        given(message.attributes.get(name), &format!("attribute `{name}`"))?,
                    );
                }
            }
        }
        Ok(Cow::Owned(within_limits(&path)))
    }
}

impl FromStr for Name {
    type Err = Failure;

    fn from_str(template: &str) -> Result<Name, Failure> {
        let parts = parse(template).map_err(|text| bad(template, &text))?;
        // What the messages put in has no slash, so the template alone decides the folders.
        for name in template.split('/') {
            match name {
                "" => return Err(bad(template, "a path in a folder has no empty names")),
                "." | ".." => return Err(bad(template, "`.` and `..` lead out of the folder")),
                _ if name.chars().any(char::is_control) => {
                    return Err(bad(template, "a name has no control characters"));
                }
                _ => {}
            }
        }
        if template.len() > PATH_BYTES_MAX {
            return Err(bad(template, "it is too long"));
        }
        Ok(Name { parts })
    }
}

fn bad(template: &str, text: &str) -> Failure {
    Failure::new("bad-settings", format!("setting `file`: `{template}` is no path: {text}"))
}

fn parse(template: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = from.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else {
            let placeholder = from.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let (name, after) = placeholder.ok_or("a single brace is written twice")?;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(placeholder_of(name)?);
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

fn placeholder_of(name: &str) -> Result<Part, String> {
    match name {
        "id" => Ok(Part::Id),
        "key" => Ok(Part::Key),
        "store" => Ok(Part::Store),
        "date" => Ok(Part::Date),
        "time" => Ok(Part::Time),
        _ => match name.strip_prefix("attribute:").filter(|name| !name.is_empty() && !name.contains('/')) {
            Some(attribute) => Ok(Part::Attribute(attribute.to_owned())),
            None => Err(format!(
                "`{{{name}}}` is no placeholder; there are {{id}}, {{key}}, {{store}}, {{date}}, {{time}} and {{attribute:NAME}}"
            )),
        },
    }
}

fn given<'a>(value: Option<&'a str>, what: &str) -> Result<&'a str, Problem> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| {
        Problem::quarantine(
            "no-name",
            format!("the file's name needs the message's {what}, which it does not have"),
        )
    })
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
        let digest = format!("~{:016x}", fnv1a(name.as_bytes()));
        let room = NAME_BYTES_MAX - digest.len();
        let end = (0..=room).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        let (kept, _) = name.split_at(end);
        Cow::Owned(format!("{kept}{digest}"))
    });
    names.collect::<Vec<_>>().join("/")
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// `2026-02-28`, UTC.
fn date(ms: u64) -> String {
    // Days to a civil date, in years that begin in March so that the leap day is the last.
    let days = ms / 86_400_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `235959`, UTC.
fn time(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}{:02}{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn render(template: &str, message: &Message) -> String {
        let name: Name = template.parse().unwrap();
        let call = Call::new("main", false, Duration::from_secs(1));
        match name.render(&call, message) {
            Ok(path) => path.into_owned(),
            Err(problem) => format!("{problem:?}"),
        }
    }

    #[test]
    fn placeholders_are_filled_from_the_message() {
        let mut message = Message::new("").with_id(42).with_key("P1").with_attribute("type", "ORU");
        message.received_ms = 1_772_323_199_000;
        assert_eq!(
            render("{date}/{time}-{store}-{id}-{key}-{attribute:type}.hl7", &message),
            "2026-02-28/235959-main-42-P1-ORU.hl7"
        );
        assert_eq!(render("a{{b}}.txt", &message), "a{b}.txt");
    }

    #[test]
    fn a_value_stays_within_its_name_and_two_never_meet() {
        let of_key = |key: &str| render("{key}", &Message::new("").with_key(key));
        assert_eq!(of_key("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
        assert_eq!(of_key("a\nb\0c"), "a%0Ab%00c");
        assert_ne!(of_key("a/b"), of_key("a%2Fb"));
        assert!(render("{key}", &Message::new("")).contains("needs the message's key"));
        let (long, longer) = (of_key(&"ü".repeat(400)), of_key(&"ü".repeat(401)));
        assert!(long.len() <= NAME_BYTES_MAX && long != longer, "{long}");
    }

    #[test]
    fn a_template_that_is_no_path_in_the_folder_is_refused() {
        for template in ["", "/a", "a//b", "../a", "a/..", "a\nb", "{", "}", "{ide}", "{attribute:}"] {
            assert!(template.parse::<Name>().is_err(), "{template}");
        }
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        let days = [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_722, "2023-12-31"),
            (19_782, "2024-02-29"),
        ];
        for (day, expected) in days {
            assert_eq!(date(day * 86_400_000), expected);
        }
    }
}
