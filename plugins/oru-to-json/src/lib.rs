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
    Charset, DecodeError, Message as Hl7,
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
        let written = Hl7::parse(&bytes).quarantine("not-hl7")?;
        if !is_oru(&written) {
            return Ok(self.other(&written));
        }
        let charset = self.charset(&written);
        let text = decode(&bytes, charset)?;
        let message = Hl7::parse(&text).quarantine("not-hl7")?;
        if !message.delimiters().are_ascii() {
            let text = "a delimiter in MSH-1 or MSH-2 is not ASCII, so it cannot be told from the text";
            return Err(Problem::quarantine("bad-delimiters", text));
        }
        let source = Source::new(&text, *message.delimiters(), charset);
        let body = self.writer.write(&message, &source)?;
        Ok(Output::new(body).into())
    }
}

impl OruToJson {
    /// What MSH-18 says, or the settings where it says nothing.
    fn charset(&self, message: &Hl7<'_>) -> Charset {
        match message.header().field(18).filter(|field| !field.is_empty()) {
            Some(field) => Charset::of_field(&field),
            None => self.settings.charset.unwrap_or(Charset::Utf8),
        }
    }

    fn other(&self, message: &Hl7<'_>) -> TransformVerdict {
        let kind = message.header().field(9).map_or(&b""[..], |field| field.raw());
        let kind: String = String::from_utf8_lossy(kind).chars().take(80).collect();
        let sentence = format!("the message is of type `{kind}`, not ORU");
        match self.settings.other {
            Other::Quarantine => TransformVerdict::Quarantine(Failure::new("not-oru", sentence)),
            Other::Filter => TransformVerdict::filter(sentence),
            Other::Pass => TransformVerdict::Pass,
        }
    }
}

fn is_oru(message: &Hl7<'_>) -> bool {
    let kind = message.header().field(9).and_then(|field| field.component(1));
    kind.is_some_and(|kind| kind.raw().eq_ignore_ascii_case(b"ORU"))
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
