//! HL7 v2: values by paths such as `PID-3[2].1`, where `[*]` stands for every repetition or every
//! segment of a name.
//!
//! A value is a text: its bytes under the message's character set, with escape sequences of delimiters
//! and bytes resolved. Other sequences stay as they are written.

use portway_hl7::{Charset, Field, Message, Piece, Pieces, Repetition, Segment, escape::hex_bytes};
use portway_sdk::text;

use super::Found;
use crate::{BodySettings, ReadError, value::Value};

/// The paths of one plugin.
#[derive(Debug)]
pub(crate) struct Places {
    places: Vec<Place>,
    /// Of messages that leave MSH-18 empty.
    charset: Charset,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    segment: String,
    occurrence: Which,
    field: Option<FieldPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldPlace {
    number: usize,
    /// None: the whole field, or the first repetition where a component is named.
    repetition: Option<Which>,
    component: Option<usize>,
    subcomponent: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Every,
    /// From 1.
    Only(usize),
}

impl Places {
    pub(crate) fn new(settings: &BodySettings) -> Result<Places, String> {
        let charset = Charset::named(settings.charset.as_bytes());
        match charset {
            Charset::Unknown => Err(format!("`{}` is no character set of table 0211", settings.charset)),
            Charset::Wide => Err(format!("`{}` cannot stand under one-byte delimiters", settings.charset)),
            Charset::Utf8 | Charset::Latin1 | Charset::Named(_) => Ok(Places { places: Vec::new(), charset }),
        }
    }

    pub(crate) fn add(&mut self, path: &str) -> Result<(), String> {
        let place = parse(path)
            .ok_or_else(|| format!("`{path}` is no path like `MSH-9.2`, `PID-3[2].1` or `OBX[*]-5`"))?;
        self.places.push(place);
        Ok(())
    }

    pub(crate) fn read(&self, bytes: &[u8], found: &mut Found) -> Result<(), ReadError> {
        let message = Message::parse(bytes)
            .map_err(|error| ReadError::unreadable(format!("the body is no HL7 v2: {error}")))?;
        if !message.header().is("MSH") {
            return Err(ReadError::unreadable("the body is a batch of HL7 v2 messages"));
        }
        let written = message.header().field(18).filter(|field| !field.is_empty());
        let charset = written.map_or(self.charset, |field| Charset::of_field(&field));
        for (path, place) in self.places.iter().enumerate() {
            let segments = message.segments().filter(|segment| segment.is(&place.segment));
            match place.occurrence {
                Which::Only(number) => {
                    if let Some(segment) = segments.into_iter().nth(number - 1) {
                        place.read(&segment, &mut |raw| found.push(path, value(raw, &segment, charset)?))?;
                    }
                }
                Which::Every => {
                    for segment in segments {
                        place.read(&segment, &mut |raw| found.push(path, value(raw, &segment, charset)?))?;
                    }
                }
            }
        }
        Ok(())
    }
}

type Push<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), ReadError>;

impl Place {
    fn read(&self, segment: &Segment<'_>, push: Push<'_>) -> Result<(), ReadError> {
        let Some(place) = &self.field else { return push(segment.raw()) };
        let Some(field) = segment.field(place.number) else { return Ok(()) };
        match place.repetition {
            None if place.component.is_none() => push(field.raw()),
            None => place.read_one(&field, 1, push),
            Some(Which::Only(number)) => place.read_one(&field, number, push),
            Some(Which::Every) => {
                for repetition in field.repetitions() {
                    place.read_repetition(&repetition, push)?;
                }
                Ok(())
            }
        }
    }
}

impl FieldPlace {
    fn read_one(&self, field: &Field<'_>, number: usize, push: Push<'_>) -> Result<(), ReadError> {
        field.repetition(number).map_or(Ok(()), |repetition| self.read_repetition(&repetition, push))
    }

    fn read_repetition(&self, repetition: &Repetition<'_>, push: Push<'_>) -> Result<(), ReadError> {
        let Some(number) = self.component else { return push(repetition.raw()) };
        let Some(component) = repetition.component(number) else { return Ok(()) };
        match self.subcomponent {
            None => push(component.raw()),
            Some(number) => component.subcomponent(number).map_or(Ok(()), push),
        }
    }
}

fn value(raw: &[u8], segment: &Segment<'_>, charset: Charset) -> Result<Value, ReadError> {
    if raw == b"\"\"" {
        return Ok(Value::Null);
    }
    let is_escaped = segment.delimiters().escape.is_some_and(|escape| raw.contains(&escape));
    if !is_escaped {
        return decode(raw, charset).map(Value::Text);
    }
    let mut bytes = Vec::with_capacity(raw.len());
    for piece in Pieces::new(raw, segment.delimiters()) {
        match piece {
            Piece::Delimiter { meant, .. } => bytes.push(meant),
            Piece::Hex { digits, .. } => bytes.extend(hex_bytes(digits)),
            other => bytes.extend_from_slice(other.raw()),
        }
    }
    decode(&bytes, charset).map(Value::Text)
}

fn decode(bytes: &[u8], charset: Charset) -> Result<String, ReadError> {
    let unfit = |name: &str| {
        ReadError::unreadable(format!("a value does not fit the character set {name} of the message"))
    };
    match charset {
        Charset::Utf8 => std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| unfit("UTF-8")),
        Charset::Latin1 => Ok(portway_hl7::charset::latin1(bytes)),
        Charset::Named(_) if bytes.is_ascii() && !bytes.contains(&0x1B) => {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
        Charset::Named(name) => text::decode(bytes, name).map_err(|_| unfit(name)),
        Charset::Wide | Charset::Unknown => {
            Err(ReadError::unreadable("MSH-18 names a character set that is not known"))
        }
    }
}

fn parse(path: &str) -> Option<Place> {
    // Round brackets are what other engines write.
    let path = path.replace('(', "[").replace(')', "]");
    let (segment, mut rest) = path.split_at_checked(3)?;
    let is_name = segment.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_name || !segment.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let occurrence = take_bracketed(&mut rest)?.unwrap_or(Which::Only(1));
    let field = match rest.strip_prefix('-') {
        None => None,
        Some(after) => {
            rest = after;
            Some(FieldPlace {
                number: take_number(&mut rest)?,
                repetition: take_bracketed(&mut rest)?,
                component: take_dotted(&mut rest)?,
                subcomponent: take_dotted(&mut rest)?,
            })
        }
    };
    rest.is_empty().then(|| Place { segment: segment.to_ascii_uppercase(), occurrence, field })
}

/// None: wrong. `Some(None)`: there is none.
fn take_bracketed(rest: &mut &str) -> Option<Option<Which>> {
    let Some(after) = rest.strip_prefix('[') else { return Some(None) };
    if let Some(after) = after.strip_prefix("*]") {
        *rest = after;
        return Some(Some(Which::Every));
    }
    *rest = after;
    let number = take_number(rest)?;
    *rest = rest.strip_prefix(']')?;
    Some(Some(Which::Only(number)))
}

fn take_dotted(rest: &mut &str) -> Option<Option<usize>> {
    let Some(after) = rest.strip_prefix('.') else { return Some(None) };
    *rest = after;
    Some(Some(take_number(rest)?))
}

/// From 1.
fn take_number(rest: &mut &str) -> Option<usize> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at_checked(end)?;
    *rest = after;
    digits.parse::<u16>().ok().filter(|number| *number > 0).map(usize::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MESSAGE: &[u8] = b"MSH|^~\\&|LAB|H|||2024||ORU^R01|7|P|2.5||||||8859/1\r\
        PID|1||11^^^A&B~22^^^C||M\xFCller||\"\"|\r\
        OBX|1|NM|a||5\rNTE|1\rOBX|2|ST|b||x\\T\\y~z\\X41\\\\.br\\\r";

    fn read_of(path: &str, bytes: &[u8], charset: &str) -> String {
        let mut places =
            Places::new(&BodySettings { charset: charset.into(), ..BodySettings::default() }).unwrap();
        if let Err(why) = places.add(path) {
            return why;
        }
        let mut found = Found::new(1, 5);
        match places.read(bytes, &mut found) {
            Ok(()) => {
                let told = found.values[0].iter().map(|value| value.text().unwrap_or("null").to_owned());
                told.collect::<Vec<_>>().join(" | ")
            }
            Err(ReadError::Unreadable(why) | ReadError::Host(why)) => why,
        }
    }

    fn read(path: &str) -> String {
        read_of(path, MESSAGE, "")
    }

    #[test]
    fn a_path_leads_to_one_value_or_to_every_one() {
        assert_eq!(read("MSH-9.2"), "R01");
        assert_eq!(read("MSH-1"), "|");
        assert_eq!(read("PID-3.1"), "11");
        assert_eq!(read("PID-3[2].1"), "22");
        assert_eq!(read("PID-3(2).1"), "22");
        assert_eq!(read("PID-3[*].1"), "11 | 22");
        assert_eq!(read("PID-3"), "11^^^A&B~22^^^C");
        assert_eq!(read("pid-3[*].4.1"), "A | C");
        assert_eq!(read("PID-3[*].4.2"), "B");
        assert_eq!(read("OBX-5"), "5");
        assert_eq!(read("OBX[*]-3"), "a | b");
        assert_eq!(read("OBX[2]-5[*]"), "x&y | zA\\.br\\");
        assert_eq!(read("OBX[3]-5"), "");
        assert_eq!(read("NTE[*]"), "NTE|1");
        assert_eq!(read("PID-7"), "null");
        assert_eq!(read("PID-8"), "");
    }

    #[test]
    fn values_are_texts_under_the_messages_character_set() {
        assert_eq!(read("PID-5"), "Müller");
        let empty = b"MSH|^~\\&|M\xFCller\r";
        assert_eq!(read_of("MSH-3", empty, "8859/1"), "Müller");
        assert!(read_of("MSH-3", empty, "").contains("does not fit the character set UTF-8"));
        let unknown = b"MSH|^~\\&|A|||||||||||||||klingon\r";
        assert!(read_of("MSH-3", unknown, "").contains("character set that is not known"));
        assert!(Places::new(&BodySettings { charset: "klingon".into(), ..BodySettings::default() }).is_err());
        assert!(Places::new(&BodySettings { charset: "UTF-16".into(), ..BodySettings::default() }).is_err());
    }

    #[test]
    fn what_is_no_message_and_no_path_is_said() {
        assert!(read_of("MSH-3", b"{}", "").starts_with("the body is no HL7 v2"));
        assert!(read_of("MSH-3", b"BHS|^~\\&|A\rMSH|^~\\&|A\r", "").contains("batch"));
        for path in
            ["", "PI", "PID-", "PID-0", "PID3", "PID-3[", "PID-3[**]", "PID[*]-3.1.2.3", "ÄÖÜ-1", "1ID-3"]
        {
            assert!(read(path).contains("is no path like"), "{path}");
        }
        let many = [b"MSH|^~\\&|A\r".as_slice(), &b"NTE|x\r".repeat(6)].concat();
        assert!(read_of("NTE[*]-1", &many, "").contains("more than 5 values"));
    }

    proptest! {
        #[test]
        fn no_path_and_no_bytes_make_it_panic(path in "[A-Z]{3}.{0,12}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let bytes = [b"MSH|^~\\&|".as_slice(), &bytes].concat();
            read_of(&path, &bytes, "8859/1");
        }

        #[test]
        fn without_stars_a_path_means_what_it_means_everywhere(path in "(MSH|PID|OBX)(\\[[1-3]\\])?-[1-9](\\[[12]\\])?(\\.[1-4](\\.[12])?)?") {
            let message = Message::parse(MESSAGE).unwrap();
            let expected = message.get(&path.parse().unwrap()).filter(|raw| *raw != b"\"\"");
            let expected = expected.map(|raw| raw.iter().map(|b| char::from(*b)).collect::<String>());
            prop_assume!(!expected.as_ref().is_some_and(|text| text.contains('\\')));
            let found = read(&path).replace("null", "");
            prop_assert_eq!(found, expected.unwrap_or_default());
        }
    }
}
