//! The document: segments in their order, fields by their numbers.
//!
//! It is written segment by segment from slices of the text; there is no tree of either. What a part is
//! called is in `name`, in which the way to it stands while it is written.

use portway_hl7::{
    Charset, Delimiters, Message, Segment, Split,
    search::{Block, find_byte, find_in_blocks},
};
use portway_hl7_text::explain;
use portway_json::{Output, needs_escape};
use portway_sdk::{Body, Problem};

use crate::name::Name;
use crate::settings::{Escapes, Settings, Shape};

/// HL7's "delete this value".
const NULL: &[u8] = b"\"\"";
/// Characters of a bad name that are shown.
const SHOWN_MAX: usize = 20;

/// The document of a message whose text is UTF-8; the character set is what it was before.
pub(crate) fn document(
    message: &Message<'_>,
    charset: Charset,
    settings: &Settings,
) -> Result<Body, Problem> {
    let delimiters = *message.delimiters();
    let name = Name::new(settings.names);
    let mut writer = Writer {
        out: Output::default(),
        name,
        delimiters,
        charset,
        shape: settings.shape,
        escapes: settings.escapes,
        is_clean: false,
    };
    writer.out.push(b"{\"segments\":[");
    for (segment, number) in message.segments().zip(1..) {
        if writer.out.is_over() {
            break;
        }
        let name = name_of(&segment, number)?;
        writer.out.push(if number == 1 { b"" } else { b"," });
        writer.segment(&segment, name);
    }
    writer.out.push(b"]}");
    writer.out.finish()
}

/// The name in capitals. A second header means that the body is more than one message.
fn name_of(segment: &Segment<'_>, number: usize) -> Result<[u8; 3], Problem> {
    let written = segment.name();
    let name =
        written.first_chunk::<3>().filter(|_| written.len() == 3).map(|name| name.to_ascii_uppercase());
    let name = name.and_then(|name| <[u8; 3]>::try_from(name).ok());
    let Some(name) = name.filter(|name| name.iter().all(u8::is_ascii_alphanumeric)) else {
        let shown: String = String::from_utf8_lossy(written).chars().take(SHOWN_MAX).collect();
        let text =
            format!("segment {number} begins with `{shown}`, which is no name of three letters or digits");
        return Err(Problem::quarantine("bad-segment", text));
    };
    if matches!(&name, b"FHS" | b"BHS") || (number > 1 && &name == b"MSH") {
        let shown = String::from_utf8_lossy(&name);
        let text = format!("segment {number} is {shown}: the body is a batch or several messages, not one");
        return Err(Problem::quarantine("batch", text));
    }
    Ok(name)
}

struct Writer {
    out: Output,
    name: Name,
    delimiters: Delimiters,
    charset: Charset,
    shape: Shape,
    escapes: Escapes,
    /// No text of the segment at hand needs an escape, has one, or is null.
    is_clean: bool,
}

impl Writer {
    fn segment(&mut self, segment: &Segment<'_>, name: [u8; 3]) {
        self.out.push(b"{\"segment\":\"");
        self.out.push(&name);
        self.out.push(b"\"");
        self.name.begin(name);
        let has_escape =
            self.delimiters.escape.is_some_and(|escape| find_byte(segment.raw(), escape).is_some());
        self.is_clean = !has_escape && !needs_escape(segment.raw());
        if segment.is_header() {
            self.delimiter_field(1, &[self.delimiters.field]);
        }
        for (number, field) in segment.fields() {
            if segment.is_header() && number == 2 {
                self.delimiter_field(number, field.raw());
            } else {
                self.field(number, field.raw());
            }
        }
        self.out.push(b"}");
    }

    /// MSH-1 and MSH-2 hold delimiters, and are not cut by them.
    fn delimiter_field(&mut self, number: usize, bytes: &[u8]) {
        let (before, after): (&[u8], &[u8]) = match self.shape {
            Shape::Compact => (b"\"", b"\""),
            Shape::Full => (b"[[[\"", b"\"]]]"),
        };
        let back = self.member(number);
        self.out.push(before);
        self.out.push_text_part(bytes);
        self.out.push(after);
        self.name.back(back);
    }

    /// A field that is empty is left out.
    fn field(&mut self, number: usize, field: &[u8]) {
        let repetition = self.delimiters.repetition;
        let is_repeated = repetition.is_some_and(|repetition| find_byte(field, repetition).is_some());
        if !is_repeated && !self.has_content(field) {
            return;
        }
        let back = self.member(number);
        match self.shape {
            Shape::Full => self.array(field, repetition, Writer::full_repetition),
            Shape::Compact if is_repeated => self.array(field, repetition, Writer::compact_repetition),
            Shape::Compact => self.compact_repetition(field),
        }
        self.name.back(back);
    }

    /// A comma, and the name of the part of that number; returns the way back.
    fn member(&mut self, number: usize) -> usize {
        self.out.push_byte(b',');
        let back = self.name.go(number);
        self.out.push(self.name.written());
        back
    }

    /// Whether there is more than delimiters.
    fn has_content(&self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| !self.is_delimiter(*byte))
    }

    fn is_delimiter(&self, byte: u8) -> bool {
        Some(byte) == self.delimiters.component || Some(byte) == self.delimiters.subcomponent
    }

    fn array(&mut self, bytes: &[u8], at: Option<u8>, write: fn(&mut Writer, &[u8])) {
        self.out.push_byte(b'[');
        for (number, part) in Split::new(bytes, at).enumerate() {
            if number > 0 {
                self.out.push_byte(b',');
            }
            write(self, part);
        }
        self.out.push_byte(b']');
    }

    fn full_repetition(&mut self, repetition: &[u8]) {
        self.array(repetition, self.delimiters.component, Writer::full_component);
    }

    fn full_component(&mut self, component: &[u8]) {
        self.array(component, self.delimiters.subcomponent, Writer::text);
    }

    fn compact_repetition(&mut self, repetition: &[u8]) {
        self.compact(repetition, self.delimiters.component, Writer::compact_component);
    }

    fn compact_component(&mut self, component: &[u8]) {
        self.compact(component, self.delimiters.subcomponent, Writer::text);
    }

    /// The first text alone, where no other says anything; else an object of the parts that do.
    fn compact(&mut self, bytes: &[u8], at: Option<u8>, write: fn(&mut Writer, &[u8])) {
        let Delimiters { component, subcomponent, .. } = self.delimiters;
        let equal = |block: Block, delimiter: Option<u8>| delimiter.map_or(0, |byte| block.equal(byte));
        let end = find_in_blocks(bytes, |block| equal(block, component) | equal(block, subcomponent));
        let end = end.unwrap_or(bytes.len());
        let (first, others) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
        if !self.has_content(others) {
            return self.text(first);
        }
        self.out.push(b"{");
        let mut is_first = true;
        for (part, number) in Split::new(bytes, at).zip(1..) {
            if !self.has_content(part) {
                continue;
            }
            if !is_first {
                self.out.push_byte(b',');
            }
            is_first = false;
            let back = self.name.go(number);
            self.out.push(self.name.written());
            write(self, part);
            self.name.back(back);
        }
        self.out.push(b"}");
    }

    fn text(&mut self, text: &[u8]) {
        if self.is_clean {
            return self.out.push_clean_text(text);
        }
        if text == NULL {
            return self.out.push(b"null");
        }
        let has_escape = self.delimiters.escape.is_some_and(|escape| find_byte(text, escape).is_some());
        if !has_escape || self.escapes == Escapes::Raw {
            return self.out.push_text_bytes(text);
        }
        self.out.push_byte(b'"');
        explain(text, &self.delimiters, self.charset, |piece| self.out.push_text_part(piece));
        self.out.push_byte(b'"');
    }
}
