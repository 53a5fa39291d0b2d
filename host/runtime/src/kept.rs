//! The input of a connection from the first byte its codec still needs.
//!
//! A chain of the chunks as they were read. Bytes within one chunk are handed out without a
//! copy, over several chunks they are copied once.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Kept input; offsets count from the start of the connection.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    first: u64,
    bytes: usize,
    chunks: VecDeque<Bytes>,
}

impl Kept {
    pub fn new(first: u64) -> Kept {
        Kept { first, ..Kept::default() }
    }

    /// Offset of the first byte that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Offset after the last byte.
    pub fn end(&self) -> u64 {
        self.first + self.bytes as u64
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.bytes += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// The chunks, to be fed again.
    pub fn chunks(&self) -> Vec<Bytes> {
        self.chunks.iter().cloned().collect()
    }

    /// Forgets what lies before an offset within what is kept.
    pub fn keep_from(&mut self, offset: u64) {
        let mut past =
            usize::try_from(offset.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.bytes);
        self.first += past as u64;
        self.bytes -= past;
        while let Some(chunk) = self.chunks.front_mut() {
            if past < chunk.len() {
                chunk.advance(past);
                break;
            }
            past -= chunk.len();
            self.chunks.pop_front();
        }
    }

    /// The bytes of a span; none if they are not all kept.
    pub fn cut(&self, start: u64, len: usize) -> Option<Bytes> {
        let mut skip = usize::try_from(start.checked_sub(self.first)?).ok()?;
        if skip.checked_add(len)? > self.bytes {
            return None;
        }
        let mut copied = BytesMut::new();
        for chunk in &self.chunks {
            if skip >= chunk.len() {
                skip -= chunk.len();
                continue;
            }
            let wanted = len - copied.len();
            let here = wanted.min(chunk.len() - skip);
            if here == len {
                return Some(chunk.slice(skip..skip + here));
            }
            if copied.is_empty() {
                copied.reserve(len);
            }
            copied.extend_from_slice(chunk.get(skip..skip + here)?);
            skip = 0;
            if copied.len() == len {
                break;
            }
        }
        Some(copied.freeze())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_span_within_a_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"0123456789");
        let mut kept = Kept::new(100);
        kept.push(chunk.clone());
        let cut = kept.cut(102, 3).unwrap();
        assert_eq!(&cut[..], b"234");
        assert_eq!(cut.as_ptr(), chunk[2..].as_ptr());
        assert_eq!(kept.cut(102, 9), None);
        assert_eq!(kept.cut(99, 1), None);
    }

    proptest! {
        #[test]
        fn every_cut_is_the_slice_of_the_whole(
            sizes in prop::collection::vec(0_usize..20, 0..12),
            from in 0_usize..200, start in 0_usize..200, len in 0_usize..200,
        ) {
            let whole: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|n| n as u8).collect();
            let mut kept = Kept::new(0);
            let mut rest = &whole[..];
            for size in sizes {
                let (chunk, after) = rest.split_at(size);
                kept.push(Bytes::copy_from_slice(chunk));
                rest = after;
            }
            kept.keep_from(from as u64);
            let from = from.min(whole.len());
            prop_assert_eq!(kept.first(), from as u64);
            prop_assert_eq!(kept.len(), whole.len() - from);
            prop_assert_eq!(kept.chunks().concat(), &whole[from..]);
            let expected = if start >= from { whole.get(start..start + len) } else { None };
            let cut = kept.cut(start as u64, len);
            prop_assert_eq!(cut.as_deref(), expected);
        }
    }
}
