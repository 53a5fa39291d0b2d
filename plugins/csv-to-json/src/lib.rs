//! Makes JSON of CSV records.
//!
//! Records are read by the `csv` crate and written one after another; no table is built. What a
//! message may hold and what becomes of it is fixed in the README and by the cases.

mod columns;
mod quoting;
mod settings;
mod text;

use csv::{Reader, ReaderBuilder, StringRecord};
use portway_json::{Output, is_plain_number};
use portway_sdk::{Body, Context, Failure, Message, Problem, ResultExt, Transform, TransformVerdict};

use crate::{
    columns::columns,
    text::{Charset, line_of},
};

pub use settings::{Empty, Header, Ragged, Settings, Shape, Types};

/// The transform of one destination.
#[derive(Debug)]
pub struct CsvToJson {
    settings: Settings,
    charset: Charset,
    /// None: the first line of each message names them.
    columns: Option<Vec<String>>,
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
        Ok(CsvToJson { settings, charset, columns })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let bytes = message.body.bytes().retry("blobs")?;
        let text = self.charset.decode(&bytes)?;
        if let Some(quote) = self.settings.quote {
            quoting::check(text.as_bytes(), self.settings.delimiter, quote).quarantine("not-csv")?;
        }
        let mut records = self.records(text.as_bytes());
        let body = match &self.columns {
            Some(columns) => self.document(columns, &mut records)?,
            None => self.document(&self.header(&mut records)?, &mut records)?,
        };
        Ok(TransformVerdict::deliver(body))
    }
}

impl CsvToJson {
    fn records<'t>(&self, text: &'t [u8]) -> Records<'t> {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(self.settings.delimiter);
        match self.settings.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        Records { text, reader: builder.from_reader(text), trim: self.settings.trim }
    }

    /// The names in the first line.
    fn header(&self, records: &mut Records<'_>) -> Result<Vec<String>, Problem> {
        let mut header = StringRecord::new();
        if !records.read(&mut header)? {
            return Err(Problem::quarantine("not-csv", "there is no line with the names of the columns"));
        }
        let names: Vec<&str> = header.iter().collect();
        columns(names.into_iter()).map_err(|text| Problem::quarantine("bad-columns", text))
    }

    fn document(&self, columns: &[String], records: &mut Records<'_>) -> Result<Body, Problem> {
        let (mut record, mut following) = (StringRecord::new(), StringRecord::new());
        let has_record = records.read(&mut record)?;
        let mut has_following = has_record && records.read(&mut following)?;
        let is_one = has_record && !has_following;
        if self.settings.shape == Shape::Object && !is_one {
            let count = if has_record { "several records" } else { "no record" };
            let text = format!("the message has {count}, and `shape` is `object`");
            return Err(Problem::quarantine("not-one-record", text));
        }
        let is_array = self.settings.shape == Shape::Array || !is_one;
        let mut out = Output::default();
        out.push(if is_array { b"[" } else { b"" });
        if has_record {
            self.check_length(columns, &record, records)?;
            self.object(columns, &record, &mut out);
        }
        while has_following && !out.is_over() {
            out.push(b",");
            self.check_length(columns, &following, records)?;
            self.object(columns, &following, &mut out);
            has_following = records.read(&mut following)?;
        }
        out.push(if is_array { b"]" } else { b"" });
        out.finish()
    }

    fn object(&self, columns: &[String], record: &StringRecord, out: &mut Output) {
        let fields = record.iter().chain(std::iter::repeat(""));
        for (number, (name, field)) in columns.iter().zip(fields).enumerate() {
            out.push(if number == 0 { b"{" } else { b"," });
            out.push_name(name);
            self.field(field, out);
        }
        out.push(b"}");
    }

    fn check_length(
        &self,
        columns: &[String],
        record: &StringRecord,
        records: &Records<'_>,
    ) -> Result<(), Problem> {
        let (expected, found) = (columns.len(), record.len());
        let fits = match self.settings.ragged {
            Ragged::Quarantine => found == expected,
            Ragged::Pad => record.iter().skip(expected).all(str::is_empty),
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

    fn field(&self, field: &str, out: &mut Output) {
        let is_bare = match self.settings.types {
            Types::Text => false,
            Types::Infer => matches!(field, "true" | "false") || is_plain_number(field),
        };
        if is_bare {
            out.push(field.as_bytes());
        } else if field.is_empty() && self.settings.empty == Empty::Null {
            out.push(b"null");
        } else {
            out.push_text(field);
        }
    }
}

/// The records of a message, one after another.
struct Records<'t> {
    text: &'t [u8],
    reader: Reader<&'t [u8]>,
    trim: bool,
}

impl Records<'_> {
    /// Whether there was one more.
    fn read(&mut self, record: &mut StringRecord) -> Result<bool, Problem> {
        let is_read = self.reader.read_record(record).quarantine("not-csv")?;
        if self.trim {
            record.trim();
        }
        Ok(is_read)
    }

    /// In which line a record begins. The reader counts empty lines before it as part of it.
    fn line(&self, record: &StringRecord) -> usize {
        let start = record.position().map_or(0, |position| position.byte() as usize);
        let rest = self.text.get(start..).unwrap_or_default();
        let empty = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        line_of(self.text, start + empty)
    }
}

portway_sdk::export_transform!(CsvToJson);
