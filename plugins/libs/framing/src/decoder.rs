//! Cuts a stream into frames.
//!
//! Every decision is made at a byte, never at the end of a chunk, so that the same bytes give the same
//! events however they are cut, and a fresh decoder that is fed from [`Decoder::keep_from`] goes on as
//! the old one would have.

use std::rc::Rc;

use memchr::memchr;

use crate::{Delimiters, Framing, Length, delimiters::Progress};

/// Bytes without a start before the stream is given up.
pub const JUNK_BYTES_MAX: u64 = 64 * 1024;

/// Cuts one stream.
#[derive(Debug)]
pub struct Decoder {
    framing: Rc<Framing>,
    /// Bytes of the content of a frame.
    frame_bytes_max: u64,
    /// The offset of the next byte.
    at: u64,
    /// A frame began on this stream, here or before this decoder.
    is_begun: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Before a start, with so many of its bytes.
    Between { from: u64, matched: usize },
    /// In content that ends with a sequence.
    Inside { from: u64, start: u64, progress: Progress },
    /// In a length.
    Prefix { from: u64, written: Vec<u8> },
    /// In content of a known length.
    Counted { from: u64, start: u64, length: u64 },
    /// The stream is given up; what comes is not looked at.
    Closed,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Frame(Frame),
    /// A frame without content.
    Empty,
    /// A frame with more content than is allowed. The stream is given up.
    TooLarge,
    /// A length that is none. The stream is given up.
    BadLength,
    /// Too many bytes without a start. The stream is given up.
    NoStart,
    /// Bytes before a start were passed over.
    Junk {
        at: u64,
    },
}

/// Where the content of a frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub start: u64,
    pub len: u64,
    /// A start sequence stands in it: it may be two messages, the first without its end.
    pub start_inside: bool,
}

/// What the end of the stream leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    Nothing,
    /// Bytes without a start, and nothing else came at all.
    NoStart,
    /// A part of a frame.
    Broken,
    /// A frame of a framing without an end: nobody knows whether it is whole.
    Unended(Frame),
    /// The same, with more content than is allowed: its last bytes might have begun the next frame.
    TooLarge,
}

impl Decoder {
    /// `first` is the offset of the first byte that will come.
    pub fn new(framing: Rc<Framing>, frame_bytes_max: u64, first: u64) -> Decoder {
        let state = match &*framing {
            Framing::Delimited(delimiters) => begin(delimiters, first),
            Framing::Counted(_) => State::Prefix { from: first, written: Vec::new() },
        };
        Decoder { framing, frame_bytes_max, at: first, is_begun: first > 0, state }
    }

    /// The next bytes, up to the first event: how many that were, and the event. Without an event all of
    /// them are used.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, Option<Event>) {
        let framing = Rc::clone(&self.framing);
        let first = self.at;
        let mut rest = bytes;
        while !rest.is_empty() {
            let before = self.at;
            let event = self.step(&framing, rest);
            let used = usize::try_from(self.at - before).unwrap_or(usize::MAX);
            rest = rest.get(used..).unwrap_or(&[]);
            // Nothing used without an event would never end; it cannot be, and must not hang if it is.
            if event.is_some() || used == 0 {
                return (usize::try_from(self.at - first).unwrap_or(usize::MAX), event);
            }
        }
        (bytes.len(), None)
    }

    /// The next bytes, up to where the state changes; at least one.
    fn step(&mut self, framing: &Framing, bytes: &[u8]) -> Option<Event> {
        match (framing, &self.state) {
            (Framing::Delimited(delimiters), State::Between { .. }) => self.seek(delimiters, bytes),
            (Framing::Delimited(delimiters), State::Inside { .. }) => self.inside(delimiters, bytes),
            (Framing::Counted(length), State::Prefix { .. }) => self.prefix(length, bytes),
            (Framing::Counted(_), State::Counted { .. }) => self.counted(bytes),
            (Framing::Delimited(_), State::Prefix { .. } | State::Counted { .. })
            | (Framing::Counted(_), State::Between { .. } | State::Inside { .. })
            | (_, State::Closed) => {
                self.at += bytes.len() as u64;
                None
            }
        }
    }

    /// The first byte that a fresh decoder would need.
    pub fn keep_from(&self) -> u64 {
        match &self.state {
            // Until a frame began, what came is kept: it may have to be refused as a whole.
            State::Between { from, .. } if !self.is_begun => *from,
            State::Between { matched, .. } => self.at - *matched as u64,
            State::Inside { from, .. } | State::Prefix { from, .. } | State::Counted { from, .. } => *from,
            State::Closed => self.at,
        }
    }

    /// Where the content of the frame at hand begins.
    pub fn content_start(&self) -> Option<u64> {
        match &self.state {
            State::Inside { start, .. } | State::Counted { start, .. } => Some(*start),
            State::Between { .. } | State::Prefix { .. } | State::Closed => None,
        }
    }

    /// Nothing more is looked at.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }

    /// No more bytes come.
    pub fn finish(&mut self) -> Leftover {
        let state = std::mem::replace(&mut self.state, State::Closed);
        let at = self.at;
        match state {
            State::Between { from, .. } if !self.is_begun && at > from => Leftover::NoStart,
            State::Between { matched, .. } if matched > 0 => Leftover::Broken,
            State::Inside { start, .. } if !self.framing.has_end() && at > start => {
                if at - start > self.frame_bytes_max {
                    return Leftover::TooLarge;
                }
                Leftover::Unended(Frame { start, len: at - start, start_inside: false })
            }
            State::Inside { from, .. } | State::Prefix { from, .. } | State::Counted { from, .. }
                if at > from =>
            {
                Leftover::Broken
            }
            State::Between { .. }
            | State::Inside { .. }
            | State::Prefix { .. }
            | State::Counted { .. }
            | State::Closed => Leftover::Nothing,
        }
    }

    /// Looks for a start.
    fn seek(&mut self, delimiters: &Delimiters, bytes: &[u8]) -> Option<Event> {
        let State::Between { from, mut matched } = self.state else { return None };
        let pattern = delimiters.start()?;
        let mut used = 0;
        while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty() && matched < pattern.len()) {
            let skipped = match matched {
                0 => memchr(pattern.first(), rest),
                _ => Some(0),
            };
            let Some(byte) = skipped.and_then(|skipped| rest.get(skipped)) else {
                used = bytes.len();
                break;
            };
            used += skipped.unwrap_or(0) + 1;
            matched = pattern.step(matched, *byte);
        }
        self.at += used as u64;
        let junk = self.at - from - matched as u64;
        if junk > JUNK_BYTES_MAX {
            return self.give_up(Event::NoStart);
        }
        if matched < pattern.len() {
            self.state = State::Between { from, matched };
            return None;
        }
        self.is_begun = true;
        self.state =
            State::Inside { from: self.at - matched as u64, start: self.at, progress: Progress::default() };
        (junk > 0).then_some(Event::Junk { at: from })
    }

    /// Goes through content up to what ends it.
    fn inside(&mut self, delimiters: &Delimiters, bytes: &[u8]) -> Option<Event> {
        let State::Inside { start, progress, .. } = &mut self.state else { return None };
        let start = *start;
        let (used, is_closed) = delimiters.advance(progress, bytes);
        let (closing, start_inside) = (progress.closing as u64, progress.start_inside);
        self.at += used as u64;
        let content = self.at - start - closing;
        let len = if is_closed && delimiters.keeps_end() { content + closing } else { content };
        if len > self.frame_bytes_max {
            return self.give_up(Event::TooLarge);
        }
        if !is_closed {
            return None;
        }
        self.state = match delimiters.has_end() {
            true => begin(delimiters, self.at),
            // The start of the next frame has ended this one.
            false => State::Inside { from: self.at - closing, start: self.at, progress: Progress::default() },
        };
        self.is_begun = true;
        Some(if content == 0 { Event::Empty } else { Event::Frame(Frame { start, len, start_inside }) })
    }

    /// Collects a length.
    fn prefix(&mut self, length: &Length, bytes: &[u8]) -> Option<Event> {
        let State::Prefix { from, written } = &mut self.state else { return None };
        let from = *from;
        let wanted = length.width().saturating_sub(written.len());
        let taken = bytes.get(..wanted).unwrap_or(bytes);
        written.extend_from_slice(taken);
        self.at += taken.len() as u64;
        if written.len() < length.width() {
            return None;
        }
        self.is_begun = true;
        match length.read(written) {
            None => self.give_up(Event::BadLength),
            Some(0) => {
                self.state = State::Prefix { from: self.at, written: Vec::new() };
                Some(Event::Empty)
            }
            Some(length) if length > self.frame_bytes_max => self.give_up(Event::TooLarge),
            Some(length) => {
                self.state = State::Counted { from, start: self.at, length };
                None
            }
        }
    }

    /// Passes over content of a known length.
    fn counted(&mut self, bytes: &[u8]) -> Option<Event> {
        let State::Counted { start, length, .. } = self.state else { return None };
        let end = start + length;
        self.at = end.min(self.at + bytes.len() as u64);
        if self.at < end {
            return None;
        }
        self.state = State::Prefix { from: end, written: Vec::new() };
        Some(Event::Frame(Frame { start, len: length, start_inside: false }))
    }

    fn give_up(&mut self, event: Event) -> Option<Event> {
        self.state = State::Closed;
        Some(event)
    }
}

/// Before a frame.
fn begin(delimiters: &Delimiters, at: u64) -> State {
    match delimiters.start() {
        Some(_) => State::Between { from: at, matched: 0 },
        None => State::Inside { from: at, start: at, progress: Progress::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FramingSettings;

    fn told(json: &str, chunks: &[&[u8]]) -> String {
        let settings: FramingSettings = portway_sdk::parse_settings(json).unwrap();
        let all = chunks.concat();
        let mut decoder = Decoder::new(Rc::new(settings.framing().unwrap()), 8, 0);
        let text = |frame: Frame| {
            let content = &all[frame.start as usize..(frame.start + frame.len) as usize];
            let doubt = if frame.start_inside { "?" } else { "" };
            format!("{}{doubt}", crate::shown(content, 99))
        };
        let mut told = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            loop {
                let (used, event) = decoder.take(rest);
                rest = &rest[used..];
                match event {
                    None => break assert!(rest.is_empty(), "all is used"),
                    Some(Event::Frame(frame)) => told.push(text(frame)),
                    Some(event) => told.push(format!("{event:?}")),
                }
            }
        }
        match decoder.finish() {
            Leftover::Nothing => {}
            Leftover::Unended(frame) => told.push(format!("unended {}", text(frame))),
            leftover => told.push(format!("{leftover:?}")),
        }
        told.join(" | ")
    }

    fn check(json: &str, stream: &[u8], expected: &str) {
        assert_eq!(told(json, &[stream]), expected, "{json} {stream:?}");
        assert_eq!(told(json, &stream.chunks(1).collect::<Vec<_>>()), expected, "{json} in single bytes");
        for at in 0..=stream.len() {
            assert_eq!(told(json, &[&stream[..at], &stream[at..]]), expected, "{json} cut at {at}");
        }
    }

    #[test]
    fn a_start_and_an_end_hold_a_message() {
        let json = r#"{"type":"delimiters","start":"<<","end":">>"}"#;
        check(json, b"<<a>><<b>b>>", "a | b>b");
        check(json, b"<<<a>>>", "<a");
        check(json, b"x<<a>>\r\n<<b>>!", "Junk { at: 0 } | a | Junk { at: 6 } | b");
        check(json, b"<<a<<b>>", "a<<b?");
        check(json, b"<<>><<a>>", "Empty | a");
        check(json, b"<<a>><<b", "a | Broken");
        check(json, b"<<a>><", "a | Broken");
        check(json, b"a>>", "NoStart");
        check(json, b"<<12345678>><<123456789>><<a>>", "12345678 | TooLarge");
        check(json, b"<<12345678>1>>", "TooLarge");
        check(json, b"", "");
    }

    #[test]
    fn an_end_alone_ends_a_message() {
        let json = r#"{"type":"delimiters","end":"aab"}"#;
        check(json, b"xaabaaabyaa", "x | a | Broken");
        check(json, b"aab", "Empty");
    }

    #[test]
    fn a_start_alone_begins_the_next_message() {
        let json = r#"{"type":"delimiters","start":"$$"}"#;
        check(json, b"$$a$$b$c", "a | unended b$c");
        check(json, b"z$$a$$$$", "Junk { at: 0 } | a | Empty | Broken");
        check(json, b"$$1234567$", "unended 1234567$");
        check(json, b"$$12345678$", "TooLarge");
    }

    #[test]
    fn lines_end_in_lf_or_crlf() {
        check(r#"{"type":"line"}"#, b"a\r\nb\n\nc", "a\\r | b | Empty | Broken");
        check(r#"{"type":"line","end":"crlf"}"#, b"a\nb\r\r\nc\r\n\r\n", "a\\nb\\r | c | Empty");
        check(
            r#"{"type":"line","end":"crlf","keep_end":true}"#,
            b"a\r\n\r\n123456\r\n1234567\r\n",
            "a\\r\\n | Empty | 123456\\r\\n | TooLarge",
        );
    }

    #[test]
    fn a_length_says_how_much_follows() {
        check(r#"{"type":"length","bytes":2}"#, b"\0\x02ab\0\0\0\x01c\0", "ab | Empty | c | Broken");
        check(
            r#"{"type":"length","bytes":4,"order":"little","counts_itself":true}"#,
            b"\x05\0\0\0a\x04\0\0\0\x03\0\0\0",
            "a | Empty | BadLength",
        );
        check(r#"{"type":"length","bytes":8}"#, b"\0\0\0\0\0\0\0\x09", "TooLarge");
        check(r#"{"type":"length","bytes":8}"#, &[0xFF; 9], "TooLarge");
        check(r#"{"type":"digits","digits":3}"#, b"002ab001c003de", "ab | c | Broken");
        check(r#"{"type":"digits","digits":3}"#, b"001a 02", "a | BadLength");
    }

    #[test]
    fn a_stream_without_a_start_is_given_up_at_a_limit() {
        let json = r#"{"type":"delimiters","start":"\\x02","end":"\\x03"}"#;
        let junk = vec![b'x'; JUNK_BYTES_MAX as usize];
        assert_eq!(told(json, &[&junk, b"\x02a\x03"]), "Junk { at: 0 } | a");
        assert_eq!(told(json, &[&junk, b"x\x02a\x03"]), "NoStart");
        assert_eq!(told(json, &[&[junk.as_slice(), b"x\x02a\x03"].concat()]), "NoStart");
    }
}
