//! Makes a JSON document of any HL7 v2 message, by its structure alone.
//!
//! What fields mean is left to whoever reads the document; its shape is fixed in the README and by the
//! cases.

mod document;
mod name;
mod settings;

use std::borrow::Cow;

use portway_hl7::{Field, Message as Hl7};
use portway_hl7_text::{decode, of_header};
use portway_sdk::{Context, Failure, Message, Problem, ResultExt, Transform, TransformVerdict};

use crate::document::document;

pub use settings::{Escapes, Names, Settings, Shape};

/// The transform of one destination.
#[derive(Debug)]
pub struct Hl7ToJson {
    settings: Settings,
}

impl Transform for Hl7ToJson {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(Hl7ToJson { settings })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let bytes = message.body.bytes().retry("blobs")?;
        let message = Hl7::parse(&bytes).quarantine("not-hl7")?;
        let delimiters = *message.delimiters();
        if !delimiters.are_ascii() {
            let text = "a delimiter in MSH-1 or MSH-2 is not ASCII, so it cannot be told from the text";
            return Err(Problem::quarantine("bad-delimiters", text));
        }
        let written = message.header().field(18).unwrap_or(Field::new(b"", delimiters));
        let charset = of_header(&written, self.settings.charset);
        let body = match decode(&bytes, charset)? {
            Cow::Borrowed(_) => document(&message, charset, &self.settings)?,
            Cow::Owned(text) => {
                let message = Hl7::parse(&text).quarantine("not-hl7")?;
                document(&message, charset, &self.settings)?
            }
        };
        Ok(TransformVerdict::deliver(body))
    }
}

portway_sdk::export_transform!(Hl7ToJson);
