//! The records of a message, read by `csv-core`.
//!
//! Its reader is kept from message to message: making one costs as much as reading some thousand
//! fields, and most messages are a single record.

use std::ops::Range;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::settings::Settings;
use crate::text::line_of;

/// Fields and bytes that a record is first given room for.
const FIELDS: usize = 64;
const BYTES: usize = 1024;
/// Room that is not kept for the next message.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Makes the reader that the settings describe.
pub(crate) fn reader(settings: &Settings) -> Reader {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(settings.delimiter);
    match settings.quote {
        Some(quote) => builder.quote(quote),
        None => builder.quoting(false),
    };
    builder.build()
}

/// One record; its room is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Record {
    text: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
    count: usize,
    /// Bytes of all fields.
    bytes: usize,
    /// Where it begins in the message.
    start: usize,
}

impl Record {
    /// Gives room back that few messages need.
    pub(crate) fn release(&mut self) {
        if self.text.len() > KEPT_BYTES_MAX {
            *self = Record::default();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The text of a field; empty where there is none.
    pub(crate) fn field(&self, number: usize) -> &[u8] {
        self.place(number).and_then(|place| self.text.get(place)).unwrap_or_default()
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|number| self.field(number))
    }

    /// All fields, one directly behind the other.
    pub(crate) fn text(&self) -> &[u8] {
        self.text.get(..self.bytes).unwrap_or_default()
    }

    fn place(&self, number: usize) -> Option<Range<usize>> {
        let ends = self.ends.get(..self.count)?;
        let start = number.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
        Some(start..*ends.get(number)?)
    }
}

/// Goes through the records of a text.
pub(crate) struct Records<'t> {
    reader: &'t mut Reader,
    text: &'t [u8],
    at: usize,
}

impl<'t> Records<'t> {
    pub(crate) fn new(reader: &'t mut Reader, text: &'t [u8]) -> Records<'t> {
        reader.reset();
        Records { reader, text, at: 0 }
    }

    /// Whether there was one more.
    pub(crate) fn read(&mut self, record: &mut Record) -> bool {
        record.start = self.at;
        record.count = 0;
        record.text.resize(record.text.len().max(BYTES), 0);
        record.ends.resize(record.ends.len().max(FIELDS), 0);
        let mut written = 0;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let text = record.text.get_mut(written..).unwrap_or_default();
            let ends = record.ends.get_mut(record.count..).unwrap_or_default();
            let (result, read, bytes, fields) = self.reader.read_record(rest, text, ends);
            self.at += read;
            written += bytes;
            record.count += fields;
            match result {
                // The end of the text is told by asking once more.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => record.text.resize(record.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => record.ends.resize(record.ends.len() * 2, 0),
                ReadRecordResult::Record => {
                    record.bytes = written;
                    return true;
                }
                ReadRecordResult::End => return false,
            }
        }
    }

    /// In which line a record begins. Empty lines before it were read as part of it.
    pub(crate) fn line(&self, record: &Record) -> usize {
        let rest = self.text.get(record.start..).unwrap_or_default();
        let empty = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        line_of(self.text, record.start + empty)
    }
}
