//! Tables: the values of a column in all records, by the name in the header or by number.

use ::csv::{ReaderBuilder, StringRecord};

use super::Found;
use crate::{BodySettings, ReadError, value::Value};

/// The columns of one plugin.
#[derive(Debug)]
pub(crate) struct Places {
    columns: Vec<Column>,
    header: bool,
    separator: u8,
    quote: Option<u8>,
    charset: String,
}

#[derive(Debug)]
enum Column {
    Named(String),
    /// From 0.
    Numbered(usize),
}

impl Places {
    pub(crate) fn new(settings: &BodySettings) -> Result<Places, String> {
        let csv = &settings.csv;
        let single = |text: &str, name: &str| match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\r' | b'\n') => Ok(*byte),
            _ => Err(format!("`{name}` is one character of ASCII that ends no line, not `{text}`")),
        };
        let separator = single(&csv.separator, "separator")?;
        let quote = if csv.quote.is_empty() { None } else { Some(single(&csv.quote, "quote")?) };
        if quote == Some(separator) {
            return Err("`separator` and `quote` are the same character".to_owned());
        }
        let charset = settings.charset.clone();
        Ok(Places { columns: Vec::new(), header: csv.header, separator, quote, charset })
    }

    pub(crate) fn add(&mut self, path: &str) -> Result<(), String> {
        let column = match path.strip_prefix('#') {
            Some(digits) => {
                let number = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                Column::Numbered(number.ok_or_else(|| format!("`{path}` is no column like `#1`"))?)
            }
            None if self.header => Column::Named(path.to_owned()),
            None => {
                return Err(format!(
                    "without a header columns have numbers like `#1`, not names like `{path}`"
                ));
            }
        };
        self.columns.push(column);
        Ok(())
    }

    pub(crate) fn read(&self, bytes: &[u8], found: &mut Found) -> Result<(), ReadError> {
        let text = super::decode(bytes, &self.charset)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).delimiter(self.separator);
        builder.quoting(self.quote.is_some()).quote(self.quote.unwrap_or(b'"'));
        let mut reader = builder.from_reader(text.as_bytes());
        let mut record = StringRecord::new();
        let mut read = |record: &mut StringRecord| {
            let no_table = |error| ReadError::unreadable(format!("the body is no table: {error}"));
            reader.read_record(record).map_err(no_table)
        };
        if self.header && !read(&mut record)? {
            return Err(ReadError::unreadable("the body is no table: it has no header"));
        }
        let columns: Vec<Vec<usize>> = self.columns.iter().map(|column| column.places(&record)).collect();
        while read(&mut record)? {
            for (path, places) in columns.iter().enumerate() {
                for value in places.iter().filter_map(|place| record.get(*place)) {
                    found.push(path, Value::Text(value.to_owned()))?;
                }
            }
        }
        Ok(())
    }
}

impl Column {
    /// Where the column stands under this header; twice where its name stands twice.
    fn places(&self, header: &StringRecord) -> Vec<usize> {
        match self {
            Column::Numbered(number) => vec![*number],
            Column::Named(name) => {
                let named = header.iter().enumerate().filter(|(_, written)| written.trim() == name);
                named.map(|(place, _)| place).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BodyKind, CsvSettings};

    fn read(csv: CsvSettings, path: &str, bytes: &[u8]) -> String {
        let settings = BodySettings { kind: BodyKind::Csv, csv, charset: String::new() };
        let mut places = match Places::new(&settings) {
            Ok(places) => places,
            Err(why) => return why,
        };
        if let Err(why) = places.add(path) {
            return why;
        }
        let mut found = Found::new(1, 5);
        match places.read(bytes, &mut found) {
            Ok(()) => found.values[0].iter().filter_map(Value::text).collect::<Vec<_>>().join(" | "),
            Err(ReadError::Unreadable(why) | ReadError::Host(why)) => why,
        }
    }

    fn plain(path: &str, bytes: &[u8]) -> String {
        read(CsvSettings::default(), path, bytes)
    }

    #[test]
    fn columns_are_found_by_name_and_by_number_in_every_record() {
        let table = b"\xEF\xBB\xBFid, ward ,name\r\n1,\"a,b\",x\r\n\n2,c,\"q\"\"q\"\r\n";
        assert_eq!(plain("id", table), "1 | 2");
        assert_eq!(plain("ward", table), "a,b | c");
        assert_eq!(plain("#3", table), "x | q\"q");
        assert_eq!(plain("bed", table), "");
        assert_eq!(plain("#9", table), "");
        assert_eq!(plain("a", b"a,a\n1,2"), "1 | 2");
        let other = CsvSettings { header: false, separator: ";".into(), quote: String::new() };
        assert_eq!(read(other.clone(), "#2", b"a;\"b\nc;d\""), "\"b | d\"");
        assert!(read(other, "name", b"").contains("numbers like `#1`"));
    }

    #[test]
    fn what_is_no_table_is_said() {
        assert_eq!(plain("a", b""), "the body is no table: it has no header");
        assert!(plain("a", b"a,b\n1\n").contains("the body is no table: CSV error: record 1"));
        assert!(plain("a", b"a\n\xFF\n").contains("byte 2 of the body does not fit"));
        assert!(plain("a", b"a\n1\n2\n3\n4\n5\n6").contains("more than 5 values"));
        assert!(plain("#0", b"").contains("no column like `#1`"));
        let with = |separator: &str| CsvSettings { separator: separator.into(), ..CsvSettings::default() };
        assert!(read(with("::"), "a", b"").contains("one character"));
        assert!(read(with("\""), "a", b"").contains("the same character"));
    }
}
