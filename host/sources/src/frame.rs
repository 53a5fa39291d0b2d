//! Where a connection stands in its frame: since when, with how many bytes, and how it began.
//!
//! Pure. The codec says how many bytes it keeps; a frame has begun when that is not zero.

use std::time::Duration;

use tokio::time::Instant;

use crate::refusals::BYTES_MAX;

/// One connection's frame.
#[derive(Debug)]
pub(crate) struct Frame {
    kept: u64,
    /// When the first of the kept bytes came.
    begun: Option<Instant>,
    last_byte: Instant,
    /// The first of the kept bytes, for the operator.
    head: Vec<u8>,
}

impl Frame {
    pub(crate) fn new(now: Instant) -> Frame {
        Frame { kept: 0, begun: None, last_byte: now, head: Vec::new() }
    }

    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    pub(crate) fn is_at_edge(&self) -> bool {
        self.kept == 0
    }

    /// After the codec took a chunk and kept so many of all bytes.
    pub(crate) fn received(&mut self, chunk: &[u8], found_items: bool, kept: u64, now: Instant) {
        self.last_byte = now;
        let before = std::mem::replace(&mut self.kept, kept);
        if kept == 0 {
            self.begun = None;
            self.head.clear();
            return;
        }
        // What ended with an item was another frame.
        if found_items || self.begun.is_none() {
            self.begun = Some(now);
        }
        let from_chunk = usize::try_from(kept).unwrap_or(usize::MAX);
        if from_chunk <= chunk.len() {
            self.head.clear();
            self.extend_head(chunk.get(chunk.len() - from_chunk..).unwrap_or_default());
        } else {
            let let_go = before.saturating_add(chunk.len() as u64).saturating_sub(kept);
            let let_go = usize::try_from(let_go).unwrap_or(usize::MAX).min(self.head.len());
            self.head.drain(..let_go);
            self.extend_head(chunk);
        }
    }

    fn extend_head(&mut self, bytes: &[u8]) {
        let room = BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// The first bytes of the frame in hand, with a chunk the codec did not get to the end of.
    pub(crate) fn in_hand(&self, chunk: &[u8]) -> Vec<u8> {
        let mut bytes = self.head.clone();
        let room = BYTES_MAX.saturating_sub(bytes.len());
        bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        bytes
    }

    /// The connection was not read for a while by our own choice: time starts anew.
    pub(crate) fn resumed(&mut self, now: Instant) {
        self.last_byte = now;
        if self.begun.is_some() {
            self.begun = Some(now);
        }
    }

    /// When patience ends: for the frame, or for the next one to begin.
    pub(crate) fn deadline(&self, idle_timeout: Duration, frame_timeout: Duration) -> Instant {
        match self.begun {
            Some(begun) => begun + frame_timeout,
            None => self.last_byte + idle_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(100);
    const IN_FRAME: Duration = Duration::from_secs(10);

    fn second(start: Instant, number: u64) -> Instant {
        start + Duration::from_secs(number)
    }

    #[test]
    fn a_frame_has_its_time_from_its_first_byte_however_slowly_it_drips() {
        let start = Instant::now();
        let mut frame = Frame::new(start);
        assert_eq!(frame.deadline(IDLE, IN_FRAME), second(start, 100));
        for number in 1..9 {
            frame.received(b"x", false, number, second(start, number));
            assert_eq!(frame.deadline(IDLE, IN_FRAME), second(start, 11));
        }
        frame.received(b"x", true, 0, second(start, 9));
        assert_eq!(frame.deadline(IDLE, IN_FRAME), second(start, 109));
    }

    #[test]
    fn the_end_of_one_frame_gives_the_next_its_own_time() {
        let start = Instant::now();
        let mut frame = Frame::new(start);
        frame.received(b"abc", false, 3, second(start, 1));
        frame.received(b"def-gh", true, 2, second(start, 5));
        assert_eq!(frame.deadline(IDLE, IN_FRAME), second(start, 15));
    }

    #[test]
    fn what_is_in_hand_begins_where_the_codec_keeps() {
        let now = Instant::now();
        let mut frame = Frame::new(now);
        frame.received(b"one<tw", true, 2, now);
        assert_eq!(frame.in_hand(b"o>"), b"two>");
        frame.received(b"o-", false, 4, now);
        assert_eq!(frame.in_hand(b""), b"two-");
        // The codec lets go of some of what it kept.
        frame.received(b"xy", false, 3, now);
        assert_eq!(frame.in_hand(b""), b"-xy");
        frame.received(&[b'z'; 2 * BYTES_MAX], false, 3 + 2 * BYTES_MAX as u64, now);
        assert_eq!(frame.in_hand(b"more").len(), BYTES_MAX);
        frame.received(b">", true, 0, now);
        assert_eq!(frame.in_hand(b""), b"");
    }
}
