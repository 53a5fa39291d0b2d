//! Segments: the lines of a message, however their ends are written.
//!
//! CR, LF and CRLF end a segment, also mixed. Blank lines and blanks before a name are passed over.
//! One case needs a look ahead: where the header ends in a lone CR, an LF may be part of a text, and
//! it ends a segment only if another one that is known, or nothing, follows.

use crate::{
    Delimiters, Field,
    delimiters::encoding_characters,
    search::{find_byte, find_either},
};

/// Blanks and line ends behind an LF after which a text has certainly ended.
const LOOK_AHEAD_BYTES: usize = 64;

/// Segments that may follow a lone LF.
const KNOWN_NAMES: [&[u8; 3]; 76] = [
    b"ACC", b"ADD", b"AIG", b"AIL", b"AIP", b"AIS", b"AL1", b"ARV", b"BHS", b"BLG", b"BTS", b"CTD", b"CTI",
    b"DB1", b"DG1", b"DRG", b"DSC", b"DSP", b"ERR", b"EVN", b"FHS", b"FT1", b"FTS", b"GT1", b"IAM", b"IN1",
    b"IN2", b"IN3", b"INV", b"IPC", b"MFA", b"MFE", b"MFI", b"MRG", b"MSA", b"MSH", b"NK1", b"NTE", b"OBR",
    b"OBX", b"ODS", b"ODT", b"ORC", b"PD1", b"PDA", b"PID", b"PR1", b"PRT", b"PV1", b"PV2", b"QAK", b"QPD",
    b"QRD", b"QRF", b"RCP", b"REL", b"RGS", b"ROL", b"RXA", b"RXC", b"RXD", b"RXE", b"RXG", b"RXO", b"RXR",
    b"SAC", b"SCH", b"SFT", b"SPM", b"STF", b"TCC", b"TQ1", b"TQ2", b"TXA", b"UB1", b"UB2",
];

/// One segment, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    bytes: &'a [u8],
    delimiters: Delimiters,
}

impl<'a> Segment<'a> {
    pub fn new(bytes: &'a [u8], delimiters: Delimiters) -> Self {
        Segment { bytes, delimiters }
    }

    /// As written, from the first letter of its name.
    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn delimiters(&self) -> &Delimiters {
        &self.delimiters
    }

    /// The name as written, which may be in lower case.
    pub fn name(&self) -> &'a [u8] {
        let end = find_byte(self.bytes, self.delimiters.field).unwrap_or(self.bytes.len());
        self.bytes.get(..end).unwrap_or(self.bytes)
    }

    /// Compares names in any case.
    pub fn is(&self, name: &str) -> bool {
        self.bytes.split_at_checked(name.len()).is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(name.as_bytes())
                && rest.first().is_none_or(|&byte| byte == self.delimiters.field)
        })
    }

    /// True for MSH, FHS and BHS, whose first field is the separator itself.
    pub fn is_header(&self) -> bool {
        is_header_name(self.bytes) && self.bytes.get(3).is_none_or(|&byte| byte == self.delimiters.field)
    }

    /// The field of that number, counted as HL7 does: PID-3 is `field(3)`, MSH-1 the separator.
    pub fn field(&self, number: usize) -> Option<Field<'a>> {
        if self.is_header() {
            match number {
                0 => return None,
                1 => return Some(Field::whole(self.bytes.get(3..4)?)),
                2 => {
                    self.bytes.get(4..)?;
                    return Some(Field::whole(encoding_characters(self.bytes)));
                }
                _ => {}
            }
        }
        let skipped = if self.is_header() { number - 1 } else { number };
        if skipped == 0 {
            return None;
        }
        let mut rest = self.bytes;
        for _ in 0..skipped {
            rest = rest.get(find_byte(rest, self.delimiters.field)? + 1..)?;
        }
        let end = find_byte(rest, self.delimiters.field).unwrap_or(rest.len());
        Some(Field::new(rest.get(..end)?, self.delimiters))
    }

    /// All fields with their numbers, from 1 (in a header from 2, MSH-2).
    pub fn fields(&self) -> impl Iterator<Item = (usize, Field<'a>)> + use<'a> {
        let header = self.is_header();
        let delimiters = self.delimiters;
        let after_name = find_byte(self.bytes, delimiters.field).map(|at| at + 1);
        let mut rest = after_name.and_then(|at| self.bytes.get(at..));
        let mut number = usize::from(header);
        std::iter::from_fn(move || {
            let left = rest?;
            number += 1;
            let end = find_byte(left, delimiters.field);
            rest = end.and_then(|end| left.get(end + 1..));
            let bytes = end.and_then(|end| left.get(..end)).unwrap_or(left);
            let is_encoding = header && number == 2;
            Some((number, if is_encoding { Field::whole(bytes) } else { Field::new(bytes, delimiters) }))
        })
    }
}

/// The segments of a message in order.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    rest: &'a [u8],
    delimiters: Delimiters,
    line_feed_may_be_text: bool,
}

impl<'a> Segments<'a> {
    /// `bytes` begin with the header.
    pub(crate) fn new(bytes: &'a [u8], delimiters: Delimiters) -> Self {
        let header_end = find_either(bytes, b'\r', b'\n');
        let after = header_end.and_then(|at| bytes.get(at..));
        let line_feed_may_be_text = after.is_some_and(|after| after.starts_with(b"\r"))
            && after.is_some_and(|after| !after.starts_with(b"\r\n"));
        Segments { rest: bytes, delimiters, line_feed_may_be_text }
    }

    /// Where the segment at the start of `rest` ends.
    fn end(&self) -> usize {
        if !self.line_feed_may_be_text {
            return find_either(self.rest, b'\r', b'\n').unwrap_or(self.rest.len());
        }
        let mut from = 0;
        while let Some(ahead) = self.rest.get(from..) {
            let Some(found) = find_either(ahead, b'\r', b'\n') else { break };
            let at = from + found;
            let after = self.rest.get(at + 1..).unwrap_or(&[]);
            if self.rest.get(at) == Some(&b'\r') || ends_segment(after, self.delimiters.field) {
                return at;
            }
            from = at + 1;
        }
        self.rest.len()
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        self.rest = skip_blank(self.rest);
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_at_checked(self.end())?;
        self.rest = rest;
        Some(Segment::new(line, self.delimiters))
    }
}

/// Passes over blank lines and blanks before a name.
pub(crate) fn skip_blank(bytes: &[u8]) -> &[u8] {
    let blank = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    bytes.get(blank..).unwrap_or(&[])
}

/// Whether an LF that may be text ends its segment, by what follows it. Looks only so far ahead, or
/// a megabyte of line feeds would be looked at a million times.
pub(crate) fn ends_segment(after: &[u8], field: u8) -> bool {
    let text = skip_blank(after.get(..LOOK_AHEAD_BYTES).unwrap_or(after));
    text.is_empty() || starts_segment(text, field)
}

/// A name that is known, or a Z segment's, and the separator. Any three letters would not do: the last
/// line of a text can be as short as `NAD`.
fn starts_segment(bytes: &[u8], field: u8) -> bool {
    let Some((name, rest)) = bytes.split_first_chunk::<3>() else { return false };
    if rest.first() != Some(&field) {
        return false;
    }
    let name = name.map(|byte| byte.to_ascii_uppercase());
    let is_local = name.first() == Some(&b'Z') && name.iter().all(u8::is_ascii_alphanumeric);
    is_local || KNOWN_NAMES.contains(&&name)
}

/// MSH, FHS or BHS in any case.
pub(crate) fn is_header_name(bytes: &[u8]) -> bool {
    bytes
        .first_chunk::<3>()
        .is_some_and(|name| matches!(&name.map(|byte| byte.to_ascii_uppercase()), b"MSH" | b"FHS" | b"BHS"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn names(message: &str) -> Vec<String> {
        let message = Message::parse(message.as_bytes()).unwrap();
        message.segments().map(|segment| String::from_utf8_lossy(segment.raw()).into_owned()).collect()
    }

    #[test]
    fn every_kind_of_segment_end_is_understood() {
        let expected = ["MSH|^~\\&|A", "PID|1", "ZPI|x"];
        assert_eq!(names("MSH|^~\\&|A\rPID|1\rZPI|x\r"), expected);
        assert_eq!(names("MSH|^~\\&|A\nPID|1\nZPI|x"), expected);
        assert_eq!(names("MSH|^~\\&|A\r\nPID|1\r\nZPI|x\r\n"), expected);
        assert_eq!(names("MSH|^~\\&|A\rPID|1\nZPI|x\n"), expected);
        assert_eq!(names("\r\n  MSH|^~\\&|A\r\r\n\n PID|1\r\t ZPI|x"), expected);
    }

    #[test]
    fn a_line_feed_in_a_text_does_not_cut_it() {
        let expected = ["MSH|^~\\&|A", "OBX|1|TX|||one\ntwo\nPIDs\nNAD|F", "NTE|1"];
        assert_eq!(names("MSH|^~\\&|A\rOBX|1|TX|||one\ntwo\nPIDs\nNAD|F\rNTE|1\r"), expected);
    }

    #[test]
    fn header_fields_count_from_the_separator() {
        let segment = Segment::new(b"MSH|^~\\&|LAB|H", Delimiters::STANDARD);
        let raw = |number| segment.field(number).map(|field| field.raw());
        assert_eq!(raw(0), None);
        assert_eq!(raw(1), Some(&b"|"[..]));
        assert_eq!(raw(2), Some(&b"^~\\&"[..]));
        assert_eq!(raw(3), Some(&b"LAB"[..]));
        assert_eq!(raw(4), Some(&b"H"[..]));
        assert_eq!(raw(5), None);
    }

    #[test]
    fn fields_agree_with_field() {
        for bytes in [&b"MSH|^~\\&|LAB||H|"[..], b"pid|1||x^y~z|", b"ZZZ", b"MSH", b"MSH|"] {
            let segment = Segment::new(bytes, Delimiters::STANDARD);
            for (number, field) in segment.fields() {
                assert_eq!(
                    segment.field(number),
                    Some(field),
                    "{number} of {}",
                    String::from_utf8_lossy(bytes)
                );
            }
            let last = segment.fields().last().map_or(usize::from(segment.is_header()), |(number, _)| number);
            assert_eq!(segment.field(last + 1).filter(|_| last > 1), None);
        }
    }

    #[test]
    fn names_compare_in_any_case() {
        let segment = Segment::new(b"pid|1", Delimiters::STANDARD);
        assert!(segment.is("PID"));
        assert!(!segment.is("PI"));
        assert_eq!(segment.name(), b"pid");
    }
}
