//! Bodies by their kind: paths into them, and the values at all paths of one plugin in one go.

mod csv;
mod hl7;
mod json;

use portway_sdk::Failure;

use crate::{BodyKind, BodySettings, ReadError, settings::unfit, value::Value};

/// The paths of one plugin, each with a number.
#[derive(Debug)]
pub(crate) struct Paths {
    written: Vec<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Attributes,
    Hl7(hl7::Places),
    Json(json::Places),
    Csv(csv::Places),
}

impl Paths {
    pub(crate) fn new(settings: &BodySettings) -> Result<Paths, Failure> {
        let kind = match settings.kind {
            BodyKind::Attributes => Kind::Attributes,
            BodyKind::Hl7 => Kind::Hl7(hl7::Places::new(settings).map_err(|why| unfit("charset", why))?),
            BodyKind::Json => Kind::Json(json::Places::default()),
            BodyKind::Csv => Kind::Csv(csv::Places::new(settings).map_err(|why| unfit("csv", why))?),
        };
        Ok(Paths { written: Vec::new(), kind })
    }

    pub(crate) fn len(&self) -> usize {
        self.written.len()
    }

    /// The number of a path; the same for the same text.
    pub(crate) fn add(&mut self, path: &str) -> Result<usize, String> {
        if let Some(known) = self.written.iter().position(|written| written == path) {
            return Ok(known);
        }
        let index = self.written.len();
        match &mut self.kind {
            Kind::Attributes => {
                return Err(format!("`{path}` leads into the body: say with `body` what it is"));
            }
            Kind::Hl7(places) => places.add(path)?,
            Kind::Json(places) => places.add(path, index)?,
            Kind::Csv(places) => places.add(path)?,
        }
        self.written.push(path.to_owned());
        Ok(index)
    }

    pub(crate) fn read(&self, bytes: &[u8], found: &mut Found) -> Result<(), ReadError> {
        match &self.kind {
            Kind::Attributes => Ok(()),
            Kind::Hl7(places) => places.read(bytes, found),
            Kind::Json(places) => places.read(bytes, found),
            Kind::Csv(places) => places.read(bytes, found),
        }
    }
}

/// The values that were found, by the numbers of their paths.
#[derive(Debug)]
pub(crate) struct Found {
    pub values: Vec<Vec<Value>>,
    room: usize,
    max: usize,
}

impl Found {
    pub(crate) fn new(paths: usize, max: usize) -> Found {
        Found { values: vec![Vec::new(); paths], room: max, max }
    }

    fn push(&mut self, path: usize, value: Value) -> Result<(), ReadError> {
        self.room = self.room.checked_sub(1).ok_or_else(|| {
            ReadError::unreadable(format!("the body has more than {} values at these paths", self.max))
        })?;
        if let Some(values) = self.values.get_mut(path) {
            values.push(value);
        }
        Ok(())
    }
}

/// A character set that a body does not say itself.
fn decode(bytes: &[u8], charset: &str) -> Result<String, ReadError> {
    use portway_sdk::text::{self, Error};
    let charset = if charset.is_empty() { "UTF-8" } else { charset };
    text::decode(bytes, charset).map_err(|error| {
        ReadError::unreadable(match error {
            Error::Malformed(at) => format!("byte {at} of the body does not fit the character set {charset}"),
            Error::UnknownCharset | Error::Other(_) => format!("character set {charset}: {error}"),
        })
    })
}
