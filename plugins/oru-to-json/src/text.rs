//! Texts: from a place in the message to a JSON string.
//!
//! Most texts hold nothing special and are copied sixteen bytes at a time. JSON's own specials are
//! escaped on the way; the first HL7 escape character hands over to the slow way, where sequences
//! become what they stand for. What cannot be told as text stays as it is written.

use std::ops::Range;

use portway_hl7::{
    Charset, Delimiters,
    search::{BLOCK_BYTES, Block},
};
use portway_hl7_text::explain;

use crate::out::{Key, Out};

/// A byte that no UTF-8 text holds: the delimiter of a message that has none of the kind.
const NEVER: u8 = 0xFF;
/// A text longer than this is written so that it can be handed on in between.
const LONG_BYTES: usize = 16 * 1024;

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
    /// The text is UTF-8.
    pub(crate) fn new(text: &'a [u8], delimiters: Delimiters, charset: Charset) -> Source<'a> {
        Source {
            text,
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
        match self.find(place, |block| block.equal(delimiter)) {
            Some(at) => (place.start..at, Some(at + 1..place.end)),
            None => (place.clone(), None),
        }
    }

    /// The part up to the first `delimiter`.
    #[inline]
    pub(crate) fn first(&self, place: &Range<usize>, delimiter: u8) -> Range<usize> {
        self.split(place, delimiter).0
    }

    /// The first component of the first repetition.
    #[inline]
    pub(crate) fn first_component(&self, place: &Range<usize>) -> Range<usize> {
        let end = self.find(place, |block| block.equal(self.component) | block.equal(self.repetition));
        place.start..end.unwrap_or(place.end)
    }

    /// Where the first hit is. Short parts are the rule, so the bytes behind them are looked at as well
    /// and do not count.
    #[inline]
    fn find(&self, place: &Range<usize>, in_block: impl Fn(Block) -> u32) -> Option<usize> {
        let mut at = place.start;
        while at < place.end {
            let hits = in_block(self.block(at));
            if hits != 0 {
                let found = at + hits.trailing_zeros() as usize;
                return (found < place.end).then_some(found);
            }
            at += BLOCK_BYTES;
        }
        None
    }

    /// The components of a repetition, one after another.
    #[inline]
    pub(crate) fn components(&self, place: &Range<usize>) -> Components {
        let hits = if place.is_empty() { 0 } else { self.block(place.start).equal(self.component) };
        Components { start: place.start, end: place.end, at: place.start, hits, is_over: false }
    }

    /// The bytes from a place on, where there are enough of them.
    #[inline]
    fn bytes_from(&self, at: usize) -> Option<&'a [u8; BLOCK_BYTES]> {
        self.text.get(at..at.saturating_add(BLOCK_BYTES))?.first_chunk()
    }

    /// The same; zeros behind the end.
    #[inline]
    fn block(&self, at: usize) -> Block {
        match self.bytes_from(at) {
            Some(bytes) => Block::new(bytes),
            None => Block::new(&self.last_bytes(at)),
        }
    }

    #[cold]
    #[inline(never)]
    fn last_bytes(&self, at: usize) -> [u8; BLOCK_BYTES] {
        let mut bytes = [0; BLOCK_BYTES];
        for (slot, byte) in bytes.iter_mut().zip(self.text.get(at..).unwrap_or(&[])) {
            *slot = *byte;
        }
        bytes
    }

    /// How many bytes can be copied as they are, of these and of so many.
    #[inline]
    fn clean(&self, bytes: &[u8; BLOCK_BYTES], count: usize) -> usize {
        let block = Block::new(bytes);
        let specials = block.controls() | block.equal(b'"') | block.equal(b'\\') | block.equal(self.escape);
        (specials.trailing_zeros() as usize).min(count)
    }
}

/// Goes through the components of a repetition.
pub(crate) struct Components {
    /// Of the component at hand.
    start: usize,
    end: usize,
    /// The block that is looked at, and the separators in it that are still to come.
    at: usize,
    hits: u32,
    is_over: bool,
}

impl Components {
    #[inline]
    pub(crate) fn next(&mut self, source: &Source<'_>) -> Option<Range<usize>> {
        if self.is_over {
            return None;
        }
        let start = self.start;
        while self.hits == 0 {
            self.at += BLOCK_BYTES;
            if self.at >= self.end {
                self.is_over = true;
                return Some(start..self.end);
            }
            self.hits = source.block(self.at).equal(source.component);
        }
        let found = self.at + self.hits.trailing_zeros() as usize;
        self.hits &= self.hits - 1;
        if found >= self.end {
            self.is_over = true;
            return Some(start..self.end);
        }
        self.start = found + 1;
        Some(start..found)
    }
}

impl Out {
    /// A member that is a string, with its comma.
    #[inline]
    pub(crate) fn keyed_string(&mut self, source: &Source<'_>, place: Range<usize>, key: &Key) {
        let count = place.len();
        if count <= BLOCK_BYTES
            && let Some(bytes) = source.bytes_from(place.start)
            && source.clean(bytes, count) == count
        {
            return self.push_short_member(key, bytes, count);
        }
        self.push_key(key);
        self.string(source, place);
    }

    /// The text as a JSON string with its quotes and a comma.
    #[inline(never)]
    pub(crate) fn string(&mut self, source: &Source<'_>, place: Range<usize>) {
        self.push(b'"');
        self.text(source, place);
        self.push_array([b'"', b','], 2);
    }

    /// The text without quotes; it may hold anything, and be large.
    pub(crate) fn text(&mut self, source: &Source<'_>, place: Range<usize>) {
        let Range { start: mut at, end } = place;
        let is_long = place.len() > LONG_BYTES;
        while at < end {
            if is_long {
                self.hand_on();
            }
            let count = (end - at).min(BLOCK_BYTES);
            let bytes = source.bytes_from(at).copied().unwrap_or_else(|| source.last_bytes(at));
            let clean = source.clean(&bytes, count);
            // What is written behind the text is written over.
            self.push_array(bytes, clean);
            at += clean;
            if clean < count {
                let Some(&byte) = source.text.get(at) else { return };
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
                return self.push_array([b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)], 6);
            }
        };
        self.push(b'\\');
        self.push(short);
    }

    /// A text with HL7 escape sequences.
    #[cold]
    fn escaped_text(&mut self, source: &Source<'_>, place: Range<usize>) {
        let Source { delimiters, charset, .. } = source;
        explain(source.bytes(&place), delimiters, *charset, |piece| self.plain(piece));
    }

    /// UTF-8 that holds no sequences.
    fn plain(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(LONG_BYTES) {
            self.hand_on();
            for &byte in block {
                match byte {
                    b'"' | b'\\' | 0..0x20 => self.special(byte),
                    _ => self.push(byte),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use portway_sdk::Body;
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str, delimiters: Delimiters, charset: Charset) -> String {
        let source = Source::new(text.as_bytes(), delimiters, charset);
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
