//! The fields of a segment, found in one pass, for those who read most of them.
//!
//! [`Segment::field`](crate::Segment::field) starts from the segment's name each time; here a line's
//! separators and its end are found together, eight bytes at a time, and kept as offsets. What it
//! finds is exactly what [`Segments`](crate::Segments) and fields find.

use std::ops::Range;

use crate::{
    Message,
    search::find_either,
    segment::{ends_segment, is_header_name, skip_blank},
};

/// Fields that are kept of a segment; further ones are passed over.
pub const INDEXED_FIELDS_MAX: usize = 64;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const TOP_BITS: u64 = 0xE0E0_E0E0_E0E0_E0E0;
const LOWS: u64 = 0x7F7F_7F7F_7F7F_7F7F;

/// Where the fields of one segment lie in the message.
#[derive(Clone, Debug)]
pub struct FieldIndex {
    /// Where the name begins, and each field behind it; at `count`, where one more would.
    starts: [u32; INDEXED_FIELDS_MAX + 2],
    count: usize,
    end: u32,
    is_header: bool,
}

impl Default for FieldIndex {
    fn default() -> Self {
        FieldIndex { starts: [0; INDEXED_FIELDS_MAX + 2], count: 0, end: 0, is_header: false }
    }
}

impl FieldIndex {
    /// The segment's name in capitals, if it has the three characters of one.
    pub fn name(&self, text: &[u8]) -> Option<[u8; 3]> {
        let name = text.get(self.part(0)?)?;
        let name: &[u8; 3] = name.try_into().ok()?;
        Some(name.map(|byte| byte.to_ascii_uppercase()))
    }

    /// Where a field lies, counted as HL7 does. MSH-1 is the separator and not told here.
    #[inline]
    pub fn field(&self, number: usize) -> Option<Range<usize>> {
        let part = number.checked_sub(usize::from(self.is_header))?;
        if part == 0 { None } else { self.part(part) }
    }

    /// Where the whole segment lies.
    pub fn segment(&self) -> Range<usize> {
        self.starts.first().map_or(0, |start| *start as usize)..self.end as usize
    }

    #[inline]
    fn part(&self, part: usize) -> Option<Range<usize>> {
        if part >= self.count {
            return None;
        }
        let (start, next) = (*self.starts.get(part)?, *self.starts.get(part + 1)?);
        Some(start as usize..next.saturating_sub(1) as usize)
    }
}

/// Goes through the segments of a message.
#[derive(Clone, Debug)]
pub struct Indexer<'a> {
    text: &'a [u8],
    at: usize,
    field: u8,
    line_feed_may_be_text: bool,
}

impl<'a> Indexer<'a> {
    /// None for a message of 4 GiB or more, which offsets could not tell.
    pub fn new(message: &Message<'a>) -> Option<Indexer<'a>> {
        let text = message.raw();
        u32::try_from(text.len()).ok()?;
        let at = text.len() - message.body().len();
        let header_end = find_either(message.body(), b'\r', b'\n').and_then(|end| message.body().get(end..));
        let line_feed_may_be_text =
            header_end.is_some_and(|rest| rest.starts_with(b"\r") && !rest.starts_with(b"\r\n"));
        Some(Indexer { text, at, field: message.delimiters().field, line_feed_may_be_text })
    }

    /// Fills the index with the next segment; false: there is none.
    pub fn next_segment(&mut self, index: &mut FieldIndex) -> bool {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        let start = self.text.len() - skip_blank(rest).len();
        index.is_header = self.text.get(start..).is_some_and(is_header_name)
            && self.text.get(start + 3).is_none_or(|byte| *byte == self.field);
        let end = self.scan(start, index);
        index.end = end as u32;
        self.at = end;
        start < self.text.len()
    }

    /// Finds the separators up to the end of the segment, and returns that.
    fn scan(&self, start: usize, index: &mut FieldIndex) -> usize {
        let separators = ONES * u64::from(self.field);
        let mut starts = index.starts.iter_mut();
        // Whoever indexes a message checked its length.
        let mut next_start = |offset: usize| starts.next().map(|slot| *slot = offset as u32).is_some();
        next_start(start);
        let (mut at, mut count, mut end) = (start, 0, self.text.len());
        let mut is_over = start >= end;
        while !is_over {
            let word = self.word(at);
            let mut hits = zero_bytes(word ^ separators);
            // Exact for the lowest only, which is enough to see that there is one.
            if word.wrapping_sub(ONES * 0x20) & !word & HIGHS != 0
                && let Some(place) = self.end_in_word(at, word)
            {
                hits &= HIGHS & !(u64::MAX << (8 * place));
                end = at + place;
                is_over = true;
            }
            while hits != 0 {
                let offset = at + (hits.trailing_zeros() / 8) as usize;
                count += usize::from(next_start(offset + 1));
                hits &= hits - 1;
            }
            at += 8;
            is_over |= at >= end;
        }
        // The last part ends at the end; where there is no place for that, it is passed over.
        index.count = count + usize::from(next_start(end + 1));
        end
    }

    /// Which byte of a word ends the segment.
    fn end_in_word(&self, at: usize, word: u64) -> Option<usize> {
        let mut controls = zero_bytes(word & TOP_BITS);
        while controls != 0 {
            let place = (controls.trailing_zeros() / 8) as usize;
            match (word >> (8 * place)) as u8 {
                b'\r' => return Some(place),
                b'\n' if self.line_feed_ends(at + place) => return Some(place),
                _ => controls &= controls - 1,
            }
        }
        None
    }

    fn line_feed_ends(&self, offset: usize) -> bool {
        !self.line_feed_may_be_text || ends_segment(self.text.get(offset + 1..).unwrap_or(&[]), self.field)
    }

    /// Eight bytes; behind the end of the text such as are never looked for.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        match self.text.get(at..at + 8).and_then(<[u8]>::first_chunk::<8>) {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last_word(at),
        }
    }

    #[cold]
    #[inline(never)]
    fn last_word(&self, at: usize) -> u64 {
        let mut word = [0xFF; 8];
        for (slot, byte) in word.iter_mut().zip(self.text.get(at..).unwrap_or(&[])) {
            *slot = *byte;
        }
        u64::from_le_bytes(word)
    }
}

/// A high bit for each byte that is zero, exactly.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & LOWS) + LOWS) | word | LOWS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        let mut indexer = Indexer::new(&message).unwrap();
        let mut index = FieldIndex::default();
        for segment in message.segments() {
            assert!(indexer.next_segment(&mut index));
            assert_eq!(&bytes[index.segment()], segment.raw());
            for number in 2..INDEXED_FIELDS_MAX {
                let found = index.field(number).map(|range| &bytes[range]);
                assert_eq!(found, segment.field(number).map(|field| field.raw()), "field {number}");
            }
        }
        assert!(!indexer.next_segment(&mut index));
    }

    #[test]
    fn names_are_told_in_capitals() {
        let bytes = b"msh|^~\\&|A\rPID|1||x\rZ\r";
        let message = Message::parse(bytes).unwrap();
        let mut indexer = Indexer::new(&message).unwrap();
        let mut index = FieldIndex::default();
        let mut names = Vec::new();
        while indexer.next_segment(&mut index) {
            names.push(index.name(bytes));
        }
        assert_eq!(names, [Some(*b"MSH"), Some(*b"PID"), None]);
    }

    #[test]
    fn more_fields_than_are_kept_are_passed_over() {
        let bytes = [b"MSH|^~\\&|A\rPID".as_slice(), &[b'|'; 200], b"\rPV1|1"].concat();
        let message = Message::parse(&bytes).unwrap();
        let mut indexer = Indexer::new(&message).unwrap();
        let mut index = FieldIndex::default();
        while indexer.next_segment(&mut index) {}
        check(&bytes[..40]);
        assert_eq!(indexer.at, bytes.len());
    }

    proptest! {
        #[test]
        fn it_finds_what_segments_and_fields_find(
            tail in proptest::collection::vec(prop_oneof![
                4 => prop::sample::select(b"|||^~\\&\r\n \t\x1F PIDOBX1".to_vec()), 1 => any::<u8>()], 0..120)
        ) {
            check(&[b"MSH|^~\\&|".as_slice(), &tail].concat());
            check(&[b"\r MSH#*~\\&#".as_slice(), &tail].concat());
        }
    }
}
