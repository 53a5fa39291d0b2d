//! Paths: `PID-3.1`, `OBX[2]-5.1`, `PID-3[2].1.2`, `MSH-10`.
//!
//! Segment, field, component and subcomponent, with a number in brackets where a segment or a field
//! repeats; all numbers from 1. A path that stops early means the whole of what it names, so `PID-3`
//! is the field with all its repetitions, while `PID-3.1` is a component of the first.

use std::{fmt, num::NonZeroU16, str::FromStr};

use crate::{Message, Segment};

/// A place in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    segment: [u8; 3],
    occurrence: usize,
    field: Option<FieldPath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldPath {
    number: usize,
    repetition: Option<usize>,
    component: Option<usize>,
    subcomponent: Option<usize>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    text: String,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no path like `PID-3.1`, `OBX[2]-5` or `MSH-10`", self.text)
    }
}

impl std::error::Error for PathError {}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        parse(text).ok_or_else(|| PathError { text: text.chars().take(80).collect() })
    }
}

fn parse(text: &str) -> Option<Path> {
    let (segment, rest) = text.as_bytes().split_first_chunk::<3>()?;
    let named = segment.iter().all(u8::is_ascii_alphanumeric) && segment.first()?.is_ascii_alphabetic();
    if !named {
        return None;
    }
    let mut rest = std::str::from_utf8(rest).ok()?;
    let occurrence = take_bracketed(&mut rest)?.unwrap_or(1);
    let field = match rest.strip_prefix('-') {
        None => None,
        Some(after) => {
            rest = after;
            Some(FieldPath {
                number: take_number(&mut rest)?,
                repetition: take_bracketed(&mut rest)?,
                component: take_dotted(&mut rest)?,
                subcomponent: take_dotted(&mut rest)?,
            })
        }
    };
    let segment = segment.map(|byte| byte.to_ascii_uppercase());
    rest.is_empty().then_some(Path { segment, occurrence, field })
}

/// None: wrong. `Some(None)`: there is none.
fn take_bracketed(rest: &mut &str) -> Option<Option<usize>> {
    let Some(after) = rest.strip_prefix('[') else { return Some(None) };
    *rest = after;
    let number = take_number(rest)?;
    *rest = rest.strip_prefix(']')?;
    Some(Some(number))
}

fn take_dotted(rest: &mut &str) -> Option<Option<usize>> {
    let Some(after) = rest.strip_prefix('.') else { return Some(None) };
    *rest = after;
    Some(Some(take_number(rest)?))
}

fn take_number(rest: &mut &str) -> Option<usize> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at_checked(end)?;
    *rest = after;
    Some(usize::from(digits.parse::<NonZeroU16>().ok()?.get()))
}

impl Path {
    /// The name of its segment, in capitals.
    pub fn segment_name(&self) -> &[u8] {
        &self.segment
    }

    /// Whether it points into the header, the first thing of a message that arrives.
    pub fn is_in_header(&self) -> bool {
        &self.segment == b"MSH" && self.occurrence == 1
    }

    pub(crate) fn find<'a>(&self, message: &Message<'a>) -> Option<&'a [u8]> {
        let name = std::str::from_utf8(&self.segment).ok()?;
        self.find_in(&message.segment(name, self.occurrence)?)
    }

    /// What it points at inside a segment that the caller has chosen.
    pub fn find_in<'a>(&self, segment: &Segment<'a>) -> Option<&'a [u8]> {
        let Some(path) = &self.field else { return Some(segment.raw()) };
        let field = segment.field(path.number)?;
        if path.repetition.is_none() && path.component.is_none() {
            return Some(field.raw());
        }
        let repetition = field.repetition(path.repetition.unwrap_or(1))?;
        let Some(component) = path.component else { return Some(repetition.raw()) };
        let component = repetition.component(component)?;
        match path.subcomponent {
            None => Some(component.raw()),
            Some(number) => component.subcomponent(number),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.segment))?;
        if self.occurrence != 1 {
            write!(f, "[{}]", self.occurrence)?;
        }
        let Some(path) = &self.field else { return Ok(()) };
        write!(f, "-{}", path.number)?;
        if let Some(repetition) = path.repetition {
            write!(f, "[{repetition}]")?;
        }
        for number in [path.component, path.subcomponent].into_iter().flatten() {
            write!(f, ".{number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MESSAGE: &[u8] = b"MSH|^~\\&|LAB^1.2&x|H|||2024||ORU^R01|id 7 |P|2.5\r\
        pid|1||11^^^A&B~22^^^C||\"\"\r\
        OBX|1|NM|a||5\rOBX|2|ST|b||x^y\r";

    fn check(path: &str, expected: Option<&str>) {
        let message = Message::parse(MESSAGE).unwrap();
        let found = message.get(&path.parse().unwrap());
        assert_eq!(found, expected.map(str::as_bytes), "{path}");
    }

    #[test]
    fn paths_find_the_bytes_as_written() {
        check("MSH-1", Some("|"));
        check("MSH-2", Some("^~\\&"));
        check("MSH-10", Some("id 7 "));
        check("MSH-9.2", Some("R01"));
        check("MSH-3.2.2", Some("x"));
        check("PID-3", Some("11^^^A&B~22^^^C"));
        check("PID-3.1", Some("11"));
        check("PID-3[2].1", Some("22"));
        check("PID-3[2]", Some("22^^^C"));
        check("PID-3.4.2", Some("B"));
        check("PID-2", Some(""));
        check("PID-5", Some("\"\""));
        check("PID-9", None);
        check("OBX[2]-5.2", Some("y"));
        check("OBX[3]-5", None);
        check("obx-5", Some("5"));
        check("OBX[2]", Some("OBX|2|ST|b||x^y"));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            "",
            "PI",
            "PID-",
            "PID-0",
            "PID3",
            "PID-3.",
            "PID-3[0]",
            "PID-3.1.2.3",
            "1ID-3",
            "PID-3 ",
            "PID-99999",
        ] {
            assert!(text.parse::<Path>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_written_as_it_is_read(text in "[A-Z][A-Z0-9]{2}(\\[[2-9]\\])?(-[1-9][0-9]?(\\[[1-9]\\])?(\\.[1-9](\\.[1-9])?)?)?") {
            prop_assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = text.parse::<Path>();
        }
    }
}
