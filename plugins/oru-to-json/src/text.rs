//! Texts: from a place in the message to a JSON string.
//!
//! Most texts hold nothing special and are copied eight bytes at a time. JSON's own specials are
//! escaped on the way; the first HL7 escape character hands over to the slow way, where sequences
//! become what they stand for. What cannot be told as text stays as it is written.

use std::ops::Range;

use portway_hl7::{
    Charset, Delimiters, Piece, Pieces,
    charset::latin1,
    escape::{Format, hex_bytes},
};
use portway_sdk::text;

use crate::out::Out;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// A byte that no UTF-8 text holds: the delimiter of a message that has none of the kind.
const NEVER: u8 = 0xFF;
/// A text is reserved for in blocks of this size, since escaped it may be six times as long.
const BLOCK_BYTES: usize = 16 * 1024;
/// Lines that one `\.sp99\` makes at most.
const SKIPPED_LINES_MAX: u16 = 100;

/// The text of a message, how it is delimited, and what its bytes were before it was text.
pub(crate) struct Source<'a> {
    pub text: &'a [u8],
    pub charset: Charset,
    pub delimiters: Delimiters,
    pub component: u8,
    pub repetition: u8,
    pub subcomponent: u8,
    escape: u8,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str, delimiters: Delimiters, charset: Charset) -> Source<'a> {
        Source {
            text: text.as_bytes(),
            charset,
            delimiters,
            component: delimiters.component.unwrap_or(NEVER),
            repetition: delimiters.repetition.unwrap_or(NEVER),
            subcomponent: delimiters.subcomponent.unwrap_or(NEVER),
            escape: delimiters.escape.unwrap_or(NEVER),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self, place: &Range<usize>) -> &'a [u8] {
        self.text.get(place.start..place.end).unwrap_or(&[])
    }

    /// `""`
    #[inline]
    pub(crate) fn is_null(&self, place: &Range<usize>) -> bool {
        place.len() == 2 && self.bytes(place) == b"\"\""
    }

    /// The part up to the first `delimiter`, and what is behind it.
    #[inline]
    pub(crate) fn split(&self, place: &Range<usize>, delimiter: u8) -> (Range<usize>, Option<Range<usize>>) {
        let bytes = self.bytes(place);
        let found = if bytes.len() < 32 {
            bytes.iter().position(|byte| *byte == delimiter)
        } else {
            portway_hl7::search::find_byte(bytes, delimiter)
        };
        match found {
            Some(at) => (place.start..place.start + at, Some(place.start + at + 1..place.end)),
            None => (place.clone(), None),
        }
    }

    /// The part up to the first `delimiter`.
    #[inline]
    pub(crate) fn first(&self, place: &Range<usize>, delimiter: u8) -> Range<usize> {
        self.split(place, delimiter).0
    }

    /// Eight bytes from a place on; zeros behind the end.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        let rest = self.text.get(at..).unwrap_or(&[]);
        if let Some(word) = rest.first_chunk::<8>() {
            return u64::from_le_bytes(*word);
        }
        let mut word = [0; 8];
        for (slot, byte) in word.iter_mut().zip(rest) {
            *slot = *byte;
        }
        u64::from_le_bytes(word)
    }

    /// A high bit where a byte cannot be copied; the lowest is exact.
    #[inline]
    fn specials(&self, word: u64) -> u64 {
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        (below_space | equals(word, b'"') | equals(word, b'\\') | equals(word, self.escape)) & HIGHS
    }
}

#[inline]
fn equals(word: u64, byte: u8) -> u64 {
    let zeroed = word ^ (ONES * u64::from(byte));
    zeroed.wrapping_sub(ONES) & !zeroed
}

impl Out {
    /// The text as a JSON string with its quotes and a comma.
    #[inline]
    pub(crate) fn string(&mut self, source: &Source<'_>, place: Range<usize>) {
        self.reserve(2);
        self.push(b'"');
        self.text(source, place);
        self.reserve(2);
        self.push(b'"');
        self.push(b',');
    }

    /// The text without quotes.
    #[inline]
    pub(crate) fn text(&mut self, source: &Source<'_>, place: Range<usize>) {
        let Range { start: mut at, end } = place;
        while at < end {
            let block_end = end.min(at + BLOCK_BYTES);
            self.hand_on();
            self.reserve(6 * (block_end - at));
            while at < block_end {
                let count = (block_end - at).min(8);
                let word = source.word(at);
                // Bytes behind the text do not count.
                let counted = u64::MAX >> (64 - 8 * count as u32);
                let specials = source.specials(word) & counted;
                if specials == 0 {
                    self.push_word(word, count);
                    at += count;
                    continue;
                }
                let clean = (specials.trailing_zeros() / 8) as usize;
                self.push_word(word, clean);
                at += clean;
                let byte = (word >> (8 * clean)) as u8;
                if byte == source.escape {
                    return self.escaped_text(source, at..end);
                }
                self.special(byte);
                at += 1;
            }
        }
    }

    /// One byte that JSON writes otherwise; there is room for six.
    fn special(&mut self, byte: u8) {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
                let word = [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15), 0, 0];
                return self.push_word(u64::from_le_bytes(word), 6);
            }
        };
        self.push(b'\\');
        self.push(short);
    }

    /// A text with HL7 escape sequences.
    #[cold]
    fn escaped_text(&mut self, source: &Source<'_>, place: Range<usize>) {
        let mut pieces = Pieces::new(source.bytes(&place), &source.delimiters).peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Text(raw) | Piece::Lone(raw) => self.plain(raw),
                Piece::Delimiter { meant, .. } => self.plain(&[meant]),
                Piece::Format { command: Format::Break | Format::Center, .. } => self.plain(b"\n"),
                Piece::Format { command: Format::Skip(lines), .. } => {
                    let lines = lines.unsigned_abs().min(SKIPPED_LINES_MAX);
                    (0..lines).for_each(|_| self.plain(b"\n"));
                }
                // Says how the text looks, not what it says.
                Piece::Format { .. } | Piece::Highlight { .. } => {}
                Piece::Charset { raw, .. } | Piece::Vendor { raw, .. } => self.plain(raw),
                Piece::Hex { digits, raw } => {
                    // A character may be written as one sequence a byte.
                    let (mut bytes, mut written): (Vec<u8>, _) = (hex_bytes(digits).collect(), raw.to_vec());
                    while let Some(Piece::Hex { digits, raw }) = pieces.peek() {
                        bytes.extend(hex_bytes(digits));
                        written.extend_from_slice(raw);
                        pieces.next();
                    }
                    match decode(&bytes, source.charset) {
                        Some(text) => self.plain(text.as_bytes()),
                        None => self.plain(&written),
                    }
                }
            }
        }
    }

    /// UTF-8 that holds no sequences.
    fn plain(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(BLOCK_BYTES) {
            self.hand_on();
            self.reserve(6 * block.len());
            for &byte in block {
                match byte {
                    b'"' | b'\\' | 0..0x20 => self.special(byte),
                    _ => self.push(byte),
                }
            }
        }
    }
}

/// The bytes of hexadecimal sequences are in the message's own character set.
fn decode(bytes: &[u8], charset: Charset) -> Option<String> {
    match charset {
        Charset::Utf8 | Charset::Wide | Charset::Unknown => String::from_utf8(bytes.to_vec()).ok(),
        Charset::Latin1 => Some(latin1(bytes)),
        Charset::Named(name) => text::decode(bytes, name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use portway_sdk::Body;
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str, delimiters: Delimiters, charset: Charset) -> String {
        let source = Source::new(text, delimiters, charset);
        let mut out = Out::default();
        out.start();
        out.string(&source, 0..text.len());
        out.drop_comma();
        let Ok(Body::Inline(bytes)) = out.finish() else { panic!("a short text is inline") };
        String::from_utf8(bytes).unwrap()
    }

    fn read(text: &str, charset: Charset) -> String {
        serde_json::from_str(&json(text, Delimiters::STANDARD, charset)).unwrap()
    }

    #[test]
    fn sequences_become_what_they_stand_for() {
        let cases = [
            (r"a\F\b\S\c\T\d\R\e\E\f", r"a|b^c&d~e\f"),
            (r"one\.br\two\.sp2\three", "one\ntwo\n\nthree"),
            (r"\H\loud\N\ \.in+2\quiet", "loud quiet"),
            (r"C:\temp\file", r"C:\temp\file"),
            (r"\X0D0A\", "\r\n"),
            (r"\XC3\\XA9\", "é"),
            (r"\XC3\", r"\XC3\"),
            (r"\Zx\ \C2842\", r"\Zx\ \C2842\"),
            ("say \"hi\"\tnow", "say \"hi\"\tnow"),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text, Charset::Utf8), expected, "{text}");
        }
        assert_eq!(read(r"\XE9\", Charset::Latin1), "é");
    }

    #[test]
    fn a_backslash_that_escapes_nothing_is_a_character() {
        let delimiters = Delimiters { escape: Some(b'!'), ..Delimiters::STANDARD };
        assert_eq!(json(r"a\b!F!", delimiters, Charset::Utf8), r#""a\\b|""#);
        let delimiters = Delimiters { escape: None, ..Delimiters::STANDARD };
        assert_eq!(json(r"a\F\", delimiters, Charset::Utf8), r#""a\\F\\""#);
    }

    proptest! {
        #[test]
        fn without_sequences_a_text_reads_back(text in "[^\\\\]{0,60}") {
            prop_assert_eq!(read(&text, Charset::Utf8), text);
        }

        #[test]
        fn any_text_is_a_json_string(text in "[\\\\XFSTREPHNZC.brspin0-9A-F\"é\u{0}-\u{1f}]{0,60}") {
            read(&text, Charset::Utf8);
            read(&text, Charset::Latin1);
        }
    }
}
