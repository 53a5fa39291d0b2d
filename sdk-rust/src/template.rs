//! Templates: text that is filled from a message, for file names, paths and headers.
//!
//! `{id}`, `{key}`, `{store}`, `{date}` and `{time}` of the receipt in UTC, and
//! `{attribute:NAME}` are placeholders; `{{` and `}}` are braces. How a value is written so
//! that it does no harm where it stands is the caller's to say.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::clock::date;
use crate::{Call, Message};

/// A template, read once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
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
    /// One of the placeholders that the caller knows.
    Named(String),
}

/// The message does not have what a template asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// `key`, or an attribute by its name.
    pub what: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the message has no {}", self.what)
    }
}

impl std::error::Error for Missing {}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// A brace that stands alone.
    LoneBrace,
    /// Not one of the placeholders.
    Unknown(String),
    /// Not one of the placeholders that this template may have.
    NotOneOf { name: String, known: String },
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::LoneBrace => f.write_str("a brace that is no placeholder's is written twice"),
            TemplateError::Unknown(name) => write!(
                f,
                "`{{{name}}}` is no placeholder; there are {{id}}, {{key}}, {{store}}, {{date}}, {{time}} and {{attribute:NAME}}"
            ),
            TemplateError::NotOneOf { name, known } => {
                write!(f, "`{{{name}}}` is no placeholder here; there are {known}")
            }
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a template whose placeholders are these and no others: for sources, which have
    /// no message yet.
    pub fn of(text: &str, names: &[&str]) -> Result<Template, TemplateError> {
        let known = || names.iter().map(|name| format!("`{{{name}}}`")).collect::<Vec<_>>().join(", ");
        parse(text, |name| match names.contains(&name) {
            true => Ok(Part::Named(name.to_owned())),
            false => Err(TemplateError::NotOneOf { name: name.to_owned(), known: known() }),
        })
    }

    /// Fills a template of [`Template::of`]: `push` writes the value of a placeholder.
    pub fn fill(&self, mut push: impl FnMut(&mut String, &str)) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Named(name) => push(&mut text, name),
                // Not written by `of`.
                Part::Id | Part::Key | Part::Store | Part::Date | Part::Time | Part::Attribute(_) => {}
            }
        }
        text
    }

    /// The text, where nothing in it depends on the message.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills it. `push` writes a value that the message brings; text of the template, ids,
    /// dates and times are written as they are.
    pub fn render(
        &self,
        call: &Call,
        message: &Message,
        mut push: impl FnMut(&mut String, &str),
    ) -> Result<Cow<'_, str>, Missing> {
        if let Some(text) = self.as_literal() {
            return Ok(Cow::Borrowed(text));
        }
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Id => text.push_str(&message.id.to_string()),
                Part::Date => text.push_str(&date(message.received_ms)),
                Part::Time => text.push_str(&time(message.received_ms)),
                Part::Store => push(&mut text, &call.store),
                Part::Named(name) => return Err(Missing { what: name.clone() }),
                Part::Key => push(&mut text, given(message.key.as_deref(), || "key".to_owned())?),
                Part::Attribute(name) => {
                    let value = given(message.attributes.get(name), || format!("attribute `{name}`"))?;
                    push(&mut text, value);
                }
            }
        }
        Ok(Cow::Owned(text))
    }
}

fn given(value: Option<&str>, what: impl FnOnce() -> String) -> Result<&str, Missing> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| Missing { what: what() })
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Template, TemplateError> {
        parse(text, placeholder_of)
    }
}

fn parse(
    text: &str,
    placeholder_of: impl Fn(&str) -> Result<Part, TemplateError>,
) -> Result<Template, TemplateError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
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
            let (name, after) = placeholder.ok_or(TemplateError::LoneBrace)?;
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
    Ok(Template { parts })
}

fn placeholder_of(name: &str) -> Result<Part, TemplateError> {
    match name {
        "id" => Ok(Part::Id),
        "key" => Ok(Part::Key),
        "store" => Ok(Part::Store),
        "date" => Ok(Part::Date),
        "time" => Ok(Part::Time),
        _ => match name.strip_prefix("attribute:") {
            Some(attribute) if !attribute.is_empty() => Ok(Part::Attribute(attribute.to_owned())),
            _ => Err(TemplateError::Unknown(name.to_owned())),
        },
    }
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
        let template: Template = template.parse().unwrap();
        let call = Call::new("main", false, Duration::from_secs(1));
        let rendered = template.render(&call, message, |text, value| text.push_str(&value.to_uppercase()));
        rendered.map_or_else(|missing| missing.to_string(), Cow::into_owned)
    }

    #[test]
    fn placeholders_are_filled_and_values_written_as_the_caller_says() {
        let mut message = Message::new("").with_id(42).with_key("p1").with_attribute("type", "oru");
        message.received_ms = 1_772_323_199_000;
        assert_eq!(
            render("{date}/{time}-{store}-{id}-{key}-{attribute:type}.hl7", &message),
            "2026-02-28/235959-MAIN-42-P1-ORU.hl7"
        );
        assert_eq!(render("a{{b}}.txt", &message), "a{b}.txt");
        assert_eq!(render("", &message), "");
        assert_eq!(render("{key}{attribute:x}", &message), "the message has no attribute `x`");
    }

    #[test]
    fn a_source_says_which_placeholders_there_are() {
        let template = Template::of("{{{file.name}}}#{n}", &["file.name", "n"]).unwrap();
        assert_eq!(template.fill(|text, name| text.push_str(&name.to_uppercase())), "{FILE.NAME}#N");
        let error = Template::of("{id}", &["file.name", "n"]).unwrap_err();
        assert_eq!(error.to_string(), "`{id}` is no placeholder here; there are `{file.name}`, `{n}`");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        assert_eq!("{".parse::<Template>(), Err(TemplateError::LoneBrace));
        assert_eq!("a}b".parse::<Template>(), Err(TemplateError::LoneBrace));
        assert_eq!("{ide}".parse::<Template>(), Err(TemplateError::Unknown("ide".into())));
        assert_eq!("{attribute:}".parse::<Template>(), Err(TemplateError::Unknown("attribute:".into())));
    }
}
