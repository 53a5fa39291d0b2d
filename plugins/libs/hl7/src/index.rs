//! The fields of a segment, found in one pass, for those who read most of them.
//!
//! [`Segment::field`](crate::Segment::field) starts from the segment's name each time; here a line's
//! separators and its end are found together, sixteen bytes at a time, and kept as offsets. What it
//! finds is exactly what [`Segments`](crate::Segments) and fields find.

use std::ops::Range;

use crate::{
    Message,
    search::{BLOCK_BYTES, Block, find_either},
    segment::{ends_segment, is_header_name, skip_blank},
};

/// Fields that are kept of a segment; further ones are passed over.
pub const INDEXED_FIELDS_MAX: usize = 64;

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
        let mut starts = index.starts.iter_mut();
        // Whoever indexes a message checked its length.
        let mut next_start = |offset: usize| starts.next().map(|slot| *slot = offset as u32).is_some();
        next_start(start);
        let (mut at, mut count, mut end) = (start, 0, self.text.len());
        let mut is_over = start >= end;
        while !is_over {
            let block = self.block(at);
            let mut hits = block.equal(self.field) & bits_before(end - at);
            let controls = block.controls();
            if controls != 0
                && let Some(place) = self.end_in_block(at, controls)
            {
                hits &= bits_before(place);
                end = at + place;
                is_over = true;
            }
            while hits != 0 {
                let offset = at + hits.trailing_zeros() as usize;
                count += usize::from(next_start(offset + 1));
                hits &= hits - 1;
            }
            at += BLOCK_BYTES;
            is_over |= at >= end;
        }
        // The last part ends at the end; where there is no place for that, it is passed over.
        index.count = count + usize::from(next_start(end + 1));
        end
    }

    /// Which byte of a block ends the segment.
    fn end_in_block(&self, at: usize, mut controls: u32) -> Option<usize> {
        while controls != 0 {
            let place = controls.trailing_zeros() as usize;
            match self.text.get(at + place) {
                Some(b'\r') => return Some(place),
                Some(b'\n') if self.line_feed_ends(at + place) => return Some(place),
                _ => controls &= controls - 1,
            }
        }
        None
    }

    fn line_feed_ends(&self, offset: usize) -> bool {
        !self.line_feed_may_be_text || ends_segment(self.text.get(offset + 1..).unwrap_or(&[]), self.field)
    }

    /// The bytes from an offset on; behind the end of the text such as are never looked for.
    #[inline]
    fn block(&self, at: usize) -> Block {
        match self.text.get(at..at + BLOCK_BYTES).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Block::new(bytes),
            None => self.last_block(at),
        }
    }

    #[cold]
    #[inline(never)]
    fn last_block(&self, at: usize) -> Block {
        let mut bytes = [0xFF; BLOCK_BYTES];
        for (slot, byte) in bytes.iter_mut().zip(self.text.get(at..).unwrap_or(&[])) {
            *slot = *byte;
        }
        Block::new(&bytes)
    }
}

/// The lowest bits of a block, one for each of so many bytes.
#[inline]
fn bits_before(place: usize) -> u32 {
    (1_u32 << place.min(BLOCK_BYTES)) - 1
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
            check(&[b"MSH\xFF*~\\&\xFF".as_slice(), &tail].concat());
        }
    }
}
