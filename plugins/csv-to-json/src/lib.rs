//! Makes JSON of CSV records.
//!
//! Records are read by `csv-core` and written one after another; no table is built. What a message may
//! hold and what becomes of it is fixed in the README and by the cases.

mod columns;
mod quoting;
mod records;
mod settings;
mod text;

use csv_core::Reader;
use portway_json::{Output, is_plain_number, needs_escape};
use portway_sdk::{Body, Context, Failure, Message, Problem, ResultExt, Transform, TransformVerdict};

use crate::{
    columns::{Columns, columns},
    records::{Record, Records, reader},
    text::Charset,
};

pub use settings::{Empty, Header, Ragged, Settings, Shape, Types};

/// The transform of one destination.
#[derive(Debug)]
pub struct CsvToJson {
    settings: Settings,
    charset: Charset,
    /// None: the first line of each message names them.
    columns: Option<Columns>,
    reader: Reader,
    record: Record,
    following: Record,
}

impl Transform for CsvToJson {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        if settings.quote == Some(settings.delimiter) {
            let text = "settings `delimiter` and `quote`: one character cannot be both";
            return Err(Failure::new("bad-settings", text));
        }
        let charset = Charset::named(&settings.charset)?;
        let columns = match &settings.header {
            Header::FirstLine => None,
            Header::Names(names) => Some(
                columns(names.iter().map(String::as_str))
                    .map_err(|text| Failure::new("bad-settings", format!("setting `header`: {text}")))?,
            ),
        };
        let reader = reader(&settings);
        let (record, following) = (Record::default(), Record::default());
        Ok(CsvToJson { settings, charset, columns, reader, record, following })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let bytes = message.body.bytes().retry("blobs")?;
        let text = self.charset.decode(&bytes)?;
        if let Some(quote) = self.settings.quote {
            quoting::check(text.as_bytes(), self.settings.delimiter, quote).quarantine("not-csv")?;
        }
        let CsvToJson { settings, columns, reader, record, following, .. } = self;
        let mut records = Records::new(reader, text.as_bytes());
        let named;
        let columns = match columns {
            Some(columns) => columns,
            None => {
                named = header(settings, &mut records, record)?;
                &named
            }
        };
        let writer = Writer { settings, columns, out: Output::default() };
        let body = writer.document(&mut records, [record, following]);
        record.release();
        following.release();
        Ok(TransformVerdict::deliver(body?))
    }
}

/// The names in the first line.
fn header(settings: &Settings, records: &mut Records<'_>, record: &mut Record) -> Result<Columns, Problem> {
    if !records.read(record) {
        return Err(Problem::quarantine("not-csv", "there is no line with the names of the columns"));
    }
    let name = |name| settings.trimmed(std::str::from_utf8(name).unwrap_or_default());
    let names: Vec<&str> = record.fields().map(name).collect();
    columns(names.into_iter()).map_err(|text| Problem::quarantine("bad-columns", text))
}

/// Writes the document of one message.
struct Writer<'m> {
    settings: &'m Settings,
    columns: &'m Columns,
    out: Output,
}

impl Writer<'_> {
    fn document(mut self, records: &mut Records<'_>, room: [&mut Record; 2]) -> Result<Body, Problem> {
        let [record, following] = room;
        let has_record = records.read(record);
        let mut has_following = has_record && records.read(following);
        let is_one = has_record && !has_following;
        if self.settings.shape == Shape::Object && !is_one {
            let count = if has_record { "several records" } else { "no record" };
            let text = format!("the message has {count}, and `shape` is `object`");
            return Err(Problem::quarantine("not-one-record", text));
        }
        let is_array = self.settings.shape == Shape::Array || !is_one;
        self.out.push(if is_array { b"[" } else { b"" });
        if has_record {
            self.object(record, records)?;
        }
        while has_following && !self.out.is_over() {
            self.out.push_byte(b',');
            self.object(following, records)?;
            has_following = records.read(following);
        }
        self.out.push(if is_array { b"]" } else { b"" });
        self.out.finish()
    }

    fn object(&mut self, record: &Record, records: &Records<'_>) -> Result<(), Problem> {
        self.check_length(record, records)?;
        let is_clean = !needs_escape(record.text());
        for (number, key) in self.columns.keys().enumerate() {
            self.out.push(key);
            self.field(record.field(number), is_clean);
        }
        self.out.push_byte(b'}');
        Ok(())
    }

    fn check_length(&self, record: &Record, records: &Records<'_>) -> Result<(), Problem> {
        let (expected, found) = (self.columns.len(), record.len());
        let fits = match self.settings.ragged {
            Ragged::Quarantine => found == expected,
            Ragged::Pad => {
                record.fields().skip(expected).all(|field| self.settings.trimmed_bytes(field).is_empty())
            }
        };
        if fits {
            return Ok(());
        }
        let line = records.line(record);
        let text = format!(
            "the record in line {line} has another number of fields ({found}) than there are columns ({expected})"
        );
        Err(Problem::quarantine("ragged", text))
    }

    fn field(&mut self, field: &[u8], is_clean: bool) {
        let field = self.settings.trimmed_bytes(field);
        if field.is_empty() && self.settings.empty == Empty::Null {
            self.out.push(b"null");
        } else if self.settings.types == Types::Infer && is_number_or_boolean(field) {
            self.out.push(field);
        } else if is_clean {
            self.out.push_clean_text(field);
        } else {
            self.out.push_text_bytes(field);
        }
    }
}

fn is_number_or_boolean(field: &[u8]) -> bool {
    match field.first() {
        Some(b'-' | b'0'..=b'9') => std::str::from_utf8(field).is_ok_and(is_plain_number),
        Some(b't' | b'f') => matches!(field, b"true" | b"false"),
        _ => false,
    }
}

portway_sdk::export_transform!(CsvToJson);
