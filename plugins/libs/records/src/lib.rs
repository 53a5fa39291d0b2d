//! Finds where records end in bytes that come in pieces, and copies none of them.
//!
//! A [`Splitter`] is fed pieces in their order and says which bytes are a record. It holds
//! a few numbers and never the bytes, so a record may be longer than any buffer; what
//! stands in a record is its caller's business, and so is where the bytes come from.
//! Any cutting into pieces gives the same records, and [`Mark`] is all that is needed to
//! go on at a record's end in another process.

mod csv;
mod hl7;
pub mod json;
mod json_array;
mod lines;
mod ndjson;

pub use csv::Csv;
pub use hl7::Hl7;
pub use json_array::JsonArray;
pub use lines::Lines;
pub use ndjson::Ndjson;

/// One record: exactly these bytes of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub start: u64,
    pub len: u64,
}

/// What came of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// How many bytes of the piece are done with. The rest comes again at the start of the
    /// next piece.
    pub used: usize,
    /// The record that ended. None: the splitter wants more bytes than it was given, or
    /// the input is at its end.
    pub record: Option<Record>,
}

/// Why the input cannot be split any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// For programs.
    pub code: &'static str,
    /// The byte of the input where it shows.
    pub at: u64,
    /// For people.
    pub text: String,
}

impl Broken {
    fn new(code: &'static str, at: u64, text: impl Into<String>) -> Broken {
        Broken { code, at, text: text.into() }
    }
}

/// All that is needed to go on behind a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The first byte that is not done with.
    pub at: u64,
    /// Where in its format it stands.
    pub phase: u8,
    /// What the format counts.
    pub counts: [u64; 3],
}

/// How input is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Lines,
    Csv { delimiter: u8, quote: Option<u8> },
    Hl7,
    JsonArray,
    Ndjson,
}

/// What a splitter puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A longer record breaks the input.
    pub record_bytes_max: u64,
    /// How deep JSON may be nested, at most [`json::DEPTH_MAX`].
    pub depth_max: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { record_bytes_max: u64::MAX, depth_max: json::DEPTH_MAX }
    }
}

/// Splits input of any format.
#[derive(Clone, Debug)]
pub enum Splitter {
    Lines(Lines),
    Csv(Csv),
    Hl7(Hl7),
    JsonArray(JsonArray),
    Ndjson(Ndjson),
}

impl Splitter {
    /// At the start of the input.
    pub fn new(format: Format, limits: Limits) -> Splitter {
        Splitter::resume(format, limits, Mark::default())
    }

    /// Behind a record.
    pub fn resume(format: Format, limits: Limits, mark: Mark) -> Splitter {
        match format {
            Format::Lines => Splitter::Lines(Lines::resume(limits, mark)),
            Format::Csv { delimiter, quote } => Splitter::Csv(Csv::resume(delimiter, quote, limits, mark)),
            Format::Hl7 => Splitter::Hl7(Hl7::resume(limits, mark)),
            Format::JsonArray => Splitter::JsonArray(JsonArray::resume(limits, mark)),
            Format::Ndjson => Splitter::Ndjson(Ndjson::resume(limits, mark)),
        }
    }

    /// Looks at the next piece, which begins where the last one was used up to. With
    /// `is_last` nothing follows it.
    pub fn cut(&mut self, bytes: &[u8], is_last: bool) -> Result<Step, Broken> {
        match self {
            Splitter::Lines(lines) => lines.cut(bytes, is_last),
            Splitter::Csv(csv) => csv.cut(bytes, is_last),
            Splitter::Hl7(hl7) => hl7.cut(bytes, is_last),
            Splitter::JsonArray(array) => array.cut(bytes, is_last),
            Splitter::Ndjson(ndjson) => ndjson.cut(bytes, is_last),
        }
    }

    /// To go on here later. Only directly behind a record, or at the start.
    pub fn mark(&self) -> Mark {
        match self {
            Splitter::Lines(lines) => lines.mark(),
            Splitter::Csv(csv) => csv.mark(),
            Splitter::Hl7(hl7) => hl7.mark(),
            Splitter::JsonArray(array) => array.mark(),
            Splitter::Ndjson(ndjson) => ndjson.mark(),
        }
    }

    /// Where the record that has not ended yet begins: no earlier byte is needed again.
    pub fn begun(&self) -> u64 {
        match self {
            Splitter::Lines(lines) => lines.begun(),
            Splitter::Csv(csv) => csv.begun(),
            Splitter::Hl7(hl7) => hl7.begun(),
            Splitter::JsonArray(array) => array.begun(),
            Splitter::Ndjson(ndjson) => ndjson.begun(),
        }
    }
}

/// A UTF-8 byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// What stands at the start of the input.
enum Opening {
    /// It takes more bytes to tell.
    Unknown,
    /// So many bytes are a byte order mark.
    Skip(usize),
}

/// Byte order marks: that of UTF-8 belongs to no record, those of UTF-16 and UTF-32 mean
/// that line ends cannot be found.
fn opening(bytes: &[u8], is_last: bool) -> Result<Opening, Broken> {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        let text = "the input is UTF-16 or UTF-32; only character sets that contain ASCII can be split";
        return Err(Broken::new("wrong-charset", 0, text));
    }
    if bytes.starts_with(MARK) {
        return Ok(Opening::Skip(MARK.len()));
    }
    let may_become_one = MARK.starts_with(bytes) || bytes == b"\xFF" || bytes == b"\xFE";
    Ok(if may_become_one && !is_last { Opening::Unknown } else { Opening::Skip(0) })
}

fn too_large(start: u64, limits: Limits) -> Broken {
    let text = format!("a record is longer than {} bytes", limits.record_bytes_max);
    Broken::new("record-too-large", start, text)
}

/// As much of a piece as a record may go on for, and one byte more: what is wrong behind that
/// is never seen, so that the reason does not depend on the pieces.
fn within(piece: &[u8], len: u64, limits: Limits) -> &[u8] {
    let room = limits.record_bytes_max.saturating_sub(len).saturating_add(1);
    piece.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(piece)
}
