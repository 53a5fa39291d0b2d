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

use portway_hl7::{Delimiters, Field, FieldIndex, Indexer, Message as Hl7, Split};
use portway_hl7_text::{decode, of_header};
use portway_sdk::{Context, Failure, Message, Output, Problem, ResultExt, Transform, TransformVerdict};

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
        let charset = of_header(&Field::new(field(18), delimiters), self.settings.charset);
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

portway_sdk::export_transform!(OruToJson);
