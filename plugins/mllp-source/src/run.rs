//! What is being cut, and the chunk on its way through.

use portway_sdk::Item;

use crate::{
    lines::Lines,
    verdict::{Cut, Fragment},
};

/// What is being cut.
#[derive(Debug)]
pub(crate) struct Run {
    pub kind: Kind,
    /// What a fresh codec would need to see.
    pub keep_from: u64,
    /// The first byte of the content.
    pub start: u64,
    /// The last byte of the earlier chunks.
    pub last: u8,
    pub lines: Lines,
    pub end_inside: bool,
    pub fragments: Vec<Fragment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Behind a start byte.
    Framed,
    /// Bytes without a start byte.
    Bare,
    /// The same, directly behind an end byte.
    Tail,
}

impl Run {
    pub(crate) fn new(kind: Kind, keep_from: u64, start: u64) -> Run {
        Run {
            kind,
            keep_from,
            start,
            last: 0,
            lines: Lines::default(),
            end_inside: false,
            fragments: Vec::new(),
        }
    }
}

/// One chunk on its way through.
pub(crate) struct Input<'a> {
    pub chunk: &'a [u8],
    pub position: usize,
    /// The chunk's offset.
    pub first: u64,
    /// Where in the chunk the content of the run at hand begins.
    pub content_from: usize,
    pub items: Vec<Item>,
}

impl<'a> Input<'a> {
    pub(crate) fn new(chunk: &'a [u8], first: u64) -> Input<'a> {
        Input { chunk, position: 0, first, content_from: 0, items: Vec::new() }
    }

    /// A run's content begins here, or behind the start byte at hand.
    pub(crate) fn enter(&mut self, run: &Run) {
        self.position += usize::from(run.kind == Kind::Framed);
        self.content_from = self.position;
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.chunk.get(self.position..).unwrap_or(&[])
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.chunk.get(self.position).copied()
    }

    pub(crate) fn offset(&self) -> u64 {
        self.first + self.position as u64
    }

    /// The part of the run's content in this chunk that lies before an offset.
    pub(crate) fn content_to(&self, end: u64) -> &'a [u8] {
        let to = usize::try_from(end.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.chunk.get(self.content_from..to).unwrap_or(&[])
    }

    /// The byte before the one at hand, in this run.
    pub(crate) fn previous(&self, run: &Run) -> Option<u8> {
        if self.position > self.content_from {
            return self.chunk.get(self.position - 1).copied();
        }
        (self.offset() > run.start).then_some(run.last)
    }
}

/// What was cut, with its first bytes: those of earlier chunks in `head`, and those of this one.
pub(crate) fn cut<'a>(
    head: &'a mut Vec<u8>,
    head_bytes_max: usize,
    input: &Input<'a>,
    run: &Run,
    end: u64,
) -> Cut<'a> {
    let new = input.content_to(end);
    let bytes = if head.is_empty() {
        new.get(..head_bytes_max).unwrap_or(new)
    } else {
        let room = head_bytes_max.saturating_sub(head.len());
        head.extend_from_slice(new.get(..room).unwrap_or(new));
        head.as_slice()
    };
    let length = end.saturating_sub(run.start);
    // An end byte that was not yet known to be one may be among the bytes that were kept.
    let known = usize::try_from(length).unwrap_or(usize::MAX);
    let head = bytes.get(..known).unwrap_or(bytes);
    Cut { head, start: run.start, length, headers: run.lines.headers(), bytes_max: head_bytes_max }
}
