//! Makes a JSON document of an HL7 v2 ORU message.
//!
//! The document's shape is fixed in the README and by the cases. The message is read in place and the
//! document written in one pass; there is no tree of either.

mod document;
mod out;
mod settings;
mod shape;
mod text;
mod value;

use std::borrow::Cow;

use portway_hl7::{
    Charset, DecodeError, Delimiters, Field, FieldIndex, Indexer, Message as Hl7, Split,
    charset::{check_utf8, latin1},
};
use portway_sdk::{
    Context, Failure, Message, Output, Problem, ResultExt, Transform, TransformVerdict, text as charsets,
};

use crate::{document::Writer, text::Source};

pub use settings::{Other, Settings};

/// The transform of one destination.
#[derive(Debug, Default)]
pub struct OruToJson {
    settings: Settings,
    writer: Writer,
}

impl Transform for OruToJson {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(OruToJson { settings, writer: Writer::default() })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let bytes = message.body.bytes().retry("blobs")?;
        let message = Hl7::parse(&bytes).quarantine("not-hl7")?;
        let delimiters = *message.delimiters();
        let mut header = FieldIndex::default();
        let is_indexed = Indexer::new(&message).is_some_and(|mut indexer| indexer.next_segment(&mut header));
        let field = |number| header.field(number).and_then(|place| bytes.get(place)).unwrap_or(&[]);
        if !is_indexed || !is_oru(field(9), &delimiters) {
            return Ok(self.other(field(9)));
        }
        if !delimiters.are_ascii() {
            let text = "a delimiter in MSH-1 or MSH-2 is not ASCII, so it cannot be told from the text";
            return Err(Problem::quarantine("bad-delimiters", text));
        }
        let charset = self.charset(&Field::new(field(18), delimiters));
        let body = match decode(&bytes, charset)? {
            Cow::Borrowed(text) => self.writer.write(&message, &Source::new(text, delimiters, charset))?,
            Cow::Owned(text) => {
                let message = Hl7::parse(&text).quarantine("not-hl7")?;
                self.writer.write(&message, &Source::new(&text, delimiters, charset))?
            }
        };
        Ok(Output::new(body).into())
    }
}

impl OruToJson {
    /// What MSH-18 says, or the settings where it says nothing.
    fn charset(&self, written: &Field<'_>) -> Charset {
        match self.settings.charset {
            Some(charset) if written.is_empty() => charset,
            _ => Charset::of_field(written),
        }
    }

    fn other(&self, kind: &[u8]) -> TransformVerdict {
        let kind: String = String::from_utf8_lossy(kind).chars().take(80).collect();
        let sentence = format!("the message is of type `{kind}`, not ORU");
        match self.settings.other {
            Other::Quarantine => TransformVerdict::Quarantine(Failure::new("not-oru", sentence)),
            Other::Filter => TransformVerdict::filter(sentence),
            Other::Pass => TransformVerdict::Pass,
        }
    }
}

fn is_oru(kind: &[u8], delimiters: &Delimiters) -> bool {
    let code = Split::new(kind, delimiters.component).next();
    code.is_some_and(|code| code.eq_ignore_ascii_case(b"ORU"))
}

/// The bytes in UTF-8.
fn decode(bytes: &[u8], charset: Charset) -> Result<Cow<'_, [u8]>, Problem> {
    let at_byte = |at: usize, charset: &str| {
        let hint = "if the sender leaves MSH-18 empty, the setting `charset` can say what it means";
        let text = format!("byte {at} does not fit the character set {charset} of the message; {hint}");
        Problem::quarantine("malformed-text", text)
    };
    match charset {
        Charset::Utf8 => match check_utf8(bytes) {
            Ok(()) => Ok(Cow::Borrowed(bytes)),
            Err(DecodeError::Malformed(at)) => Err(at_byte(at, "UTF-8")),
            Err(DecodeError::NeedsTable) => Err(unknown_charset()),
        },
        Charset::Latin1 if bytes.is_ascii() => Ok(Cow::Borrowed(bytes)),
        Charset::Latin1 => Ok(Cow::Owned(latin1(bytes).into_bytes())),
        Charset::Named(name) => match charsets::decode(bytes, name) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(charsets::Error::Malformed(at)) => Err(at_byte(at as usize, name)),
            Err(error) => Err(Problem::quarantine("charset", format!("{name}: {error}"))),
        },
        // The header was readable under one-byte delimiters, so this is not what it claims to be.
        Charset::Wide => check_utf8(bytes).map(|()| Cow::Borrowed(bytes)).map_err(|_| unknown_charset()),
        Charset::Unknown => Err(unknown_charset()),
    }
}

fn unknown_charset() -> Problem {
    Problem::quarantine("unknown-charset", "MSH-18 names a character set that is not in table 0211")
}

portway_sdk::export_transform!(OruToJson);
