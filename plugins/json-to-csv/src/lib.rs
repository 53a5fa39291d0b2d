//! Makes CSV of a JSON object, or of an array of objects.
//!
//! Which values are fields is the settings' to say; numbers keep their text. Quoting is left to the
//! `csv` crate.

mod columns;
mod settings;

use std::borrow::Cow;

use csv::{QuoteStyle, Terminator, Writer, WriterBuilder};
use portway_json::{Output, Path, Value, read};
use portway_sdk::{Context, Failure, Message, Problem, ResultExt, Transform, TransformVerdict};

use crate::columns::{Column, columns};

pub use settings::{ColumnConfig, LineEnd, Nested, Quotes, Settings};

/// The transform of one destination.
#[derive(Debug)]
pub struct JsonToCsv {
    settings: Settings,
    records: Path,
    columns: Vec<Column>,
}

impl Transform for JsonToCsv {
    type Settings = Settings;

    fn open(mut settings: Settings, _context: &Context) -> Result<Self, Failure> {
        let columns = columns(std::mem::take(&mut settings.columns))?;
        let records = settings.records.parse();
        let records =
            records.map_err(|error| Failure::new("bad-settings", format!("setting `records`: {error}")))?;
        Ok(JsonToCsv { settings, records, columns })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let text = message.body.text()?;
        let document = read(&text)?;
        let records = self.records(&document)?;
        if records.is_empty() && !self.settings.header {
            return Ok(TransformVerdict::filter("there are no records, and no header is wanted"));
        }
        let mut writer = self.writer();
        if self.settings.header {
            writer.write_record(self.columns.iter().map(|column| &column.name))?;
        }
        for (record, number) in records.iter().zip(1..) {
            self.record(record, &document, number, &mut writer)?;
            if writer.get_ref().is_over() {
                break;
            }
        }
        let out = writer.into_inner().map_err(csv::IntoInnerError::into_error).retry("blobs")?;
        Ok(TransformVerdict::deliver(out.finish()?))
    }
}

impl JsonToCsv {
    /// The objects that become lines.
    fn records<'v, 'a>(&self, document: &'v Value<'a>) -> Result<&'v [Value<'a>], Problem> {
        match self.records.find(document, document) {
            Some(Value::Array(records)) => Ok(records),
            Some(record @ Value::Object(_)) => Ok(std::slice::from_ref(record)),
            other => {
                let found = other.map_or("nothing", Value::kind);
                let place = match self.records.to_string() {
                    path if path.is_empty() => "the document".into(),
                    path => format!("what stands at `{path}`"),
                };
                let text = format!("{place} is {found}, and neither an object nor an array of objects");
                Err(Problem::quarantine("not-a-record", text))
            }
        }
    }

    fn writer(&self) -> Writer<Output> {
        let quotes = match self.settings.quotes {
            Quotes::Needed => QuoteStyle::Necessary,
            Quotes::NotNumbers => QuoteStyle::NonNumeric,
            Quotes::Always => QuoteStyle::Always,
        };
        let line_end = match self.settings.line_end {
            LineEnd::Crlf => Terminator::CRLF,
            LineEnd::Lf => Terminator::Any(b'\n'),
        };
        let mut builder = WriterBuilder::new();
        builder.delimiter(self.settings.delimiter).quote_style(quotes).terminator(line_end);
        builder.from_writer(Output::default())
    }

    fn record(
        &self,
        record: &Value<'_>,
        document: &Value<'_>,
        number: usize,
        writer: &mut Writer<Output>,
    ) -> Result<(), Problem> {
        if !matches!(record, Value::Object(_)) {
            let text = format!("record {number} is {}, not an object", record.kind());
            return Err(Problem::quarantine("not-a-record", text));
        }
        for column in &self.columns {
            let value = column.path.find(record, document);
            if column.required && matches!(value, None | Some(Value::Null)) {
                let what = if value.is_some() { "null" } else { "nothing" };
                let text = format!("record {number} has {what} at `{}`, which is required", column.path);
                return Err(Problem::quarantine("missing-value", text));
            }
            let field = self.field(value).map_err(|kind| {
                let text = format!("record {number} has {kind} at `{}`, which is no field", column.path);
                Problem::quarantine("nested-value", text)
            })?;
            writer.write_field(field.as_ref())?;
        }
        Ok(writer.write_record(None::<&[u8]>)?)
    }

    /// The text of a field; an error is what the value is instead.
    fn field<'v>(&'v self, value: Option<&'v Value<'_>>) -> Result<Cow<'v, [u8]>, &'static str> {
        Ok(match value {
            None => self.settings.missing.as_bytes().into(),
            Some(Value::Null) => self.settings.null.as_bytes().into(),
            Some(Value::Bool(true)) => b"true".into(),
            Some(Value::Bool(false)) => b"false".into(),
            Some(Value::Number(number)) => number.as_bytes().into(),
            Some(Value::Text(text)) if self.settings.guard_formulas && is_formula(text) => {
                format!("'{text}").into_bytes().into()
            }
            Some(Value::Text(text)) => text.as_bytes().into(),
            Some(nested @ (Value::Array(_) | Value::Object(_))) => match self.settings.nested {
                Nested::Json => nested.to_json().into_bytes().into(),
                Nested::Quarantine => return Err(nested.kind()),
            },
        })
    }
}

/// Whether a spreadsheet may calculate a text instead of showing it. Numbers are no texts, so that
/// `-5` stays one.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

portway_sdk::export_transform!(JsonToCsv);
