//! Cuts frames: `0x0B` payload `0x1C 0x0D`, and what real senders make of it.
//!
//! Every decision is made at a byte, never at the end of a chunk, so that the same input gives the
//! same items however it is cut into chunks, and a fresh codec that is fed from `keep_from` goes on as
//! the old one would have. What a frame holds is judged in `verdict`; what the peer is told is decided
//! in `answer`.
//!
//! Two rules for input that is not as the standard says:
//! - FS behind a line end ends a frame at once, since a sender that leaves CR out waits for its answer.
//!   FS in the middle of a line ends one only if what follows says so; otherwise the message is
//!   doubtful.
//! - Nothing that may be part of a message is dropped: parts around a second start byte, and bytes
//!   directly behind an end byte, become doubtful messages.

mod ending;
mod unframed;

use std::rc::Rc;

use portway_hl7::search::find_control;
use portway_sdk::{FinishReason, Step};

use crate::{
    Reason, Settings,
    notice::{self, MARK, Said},
    run::{Input, Kind, Run},
    verdict,
};

const SB: u8 = 0x0B;
const EB: u8 = 0x1C;
const CR: u8 = b'\r';
const LF: u8 = b'\n';

/// The first bytes of a message, in which its header must end.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;
/// The first bytes of a message in which a key is looked for.
pub const KEY_BYTES_MAX: usize = 64 * 1024;
/// Bytes without a start byte before the connection is given up.
pub const BARE_BYTES_MAX: u64 = 64 * 1024;
/// Parts that one frame is cut into by start bytes inside it; further ones are taken as content.
pub const FRAGMENTS_MAX: usize = 8;
/// Frames in a row that are refused or doubtful before the connection is given up. A tiny frame costs
/// a peer two bytes and gets an answer of a hundred.
pub const REFUSALS_IN_ROW_MAX: u32 = 256;
/// Bytes behind an end byte that are taken for a part of a message. Fewer are the second byte of some
/// other framing.
const TAIL_BYTES_MIN: u64 = 4;
/// Bytes that tell TLS and HTTP from anything else.
const GREETING_BYTES_MAX: u64 = 16;

/// The codec of one connection.
#[derive(Debug)]
pub struct FrameCodec {
    settings: Rc<Settings>,
    /// The offset of the next byte that comes.
    at: u64,
    state: State,
    /// The first bytes of what is being cut, as far as they came in earlier chunks.
    head: Vec<u8>,
    head_bytes_max: usize,
    refused_in_row: u32,
    said: Said,
}

#[derive(Debug, Default)]
enum State {
    /// Outside a frame.
    #[default]
    Between,
    /// An end byte at this offset has done its work; CR should follow.
    AfterEnd {
        end: u64,
    },
    Inside(Run),
    /// An end byte at this offset, and the next byte decides whether it is one.
    AtEnd {
        run: Run,
        end: u64,
    },
    /// The peer is given up; what comes is not looked at.
    Closed,
}

impl FrameCodec {
    /// `first` is the offset of the first byte that will come.
    pub fn new(settings: Rc<Settings>, first: u64) -> FrameCodec {
        let is_far =
            |path: &Option<portway_hl7::Path>| path.as_ref().is_some_and(|path| !path.is_in_header());
        let key_is_far = is_far(&settings.key) || is_far(&settings.dedupe);
        FrameCodec {
            settings,
            at: first,
            state: State::Between,
            head: Vec::new(),
            head_bytes_max: if key_is_far { KEY_BYTES_MAX } else { HEADER_BYTES_MAX },
            refused_in_row: 0,
            said: Said::default(),
        }
    }

    /// The next bytes.
    pub fn cut(&mut self, chunk: &[u8]) -> Step {
        let mut input = Input::new(chunk, self.at);
        while let Some(byte) = input.peek() {
            self.state = match std::mem::take(&mut self.state) {
                State::Between => self.between(&mut input, byte),
                State::AfterEnd { end } => self.after_end(&mut input, byte, end),
                State::Inside(run) => self.inside(&mut input, run),
                State::AtEnd { run, end } => self.at_end(&mut input, byte, run, end),
                State::Closed => {
                    input.position = chunk.len();
                    State::Closed
                }
            };
            if self.refused_in_row > REFUSALS_IN_ROW_MAX {
                self.refused_in_row = 0;
                input.items.push(verdict::refuse_and_close(Reason::TooManyRefusals, None));
                self.state = State::Closed;
            }
        }
        self.remember(&input);
        self.at += chunk.len() as u64;
        Step { items: input.items, keep_from: self.keep_from() }
    }

    /// No more bytes come.
    pub fn end(&mut self, reason: &FinishReason) -> Step {
        let mut input = Input::new(&[], self.at);
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Between | State::AfterEnd { .. } | State::Closed => {}
            State::AtEnd { run, end } if self.settings.strict_end => {
                self.refuse_unended(&mut input, &run, end)
            }
            State::AtEnd { run, end } => {
                notice::end_without_cr();
                self.complete(&mut input, run, end);
            }
            State::Inside(run) => self.break_off(&mut input, &run, reason),
        }
        Step { items: input.items, keep_from: self.at }
    }

    fn keep_from(&self) -> u64 {
        match &self.state {
            State::Between | State::Closed => self.at,
            State::AfterEnd { end } => *end,
            State::Inside(run) | State::AtEnd { run, .. } => run.keep_from,
        }
    }

    /// Keeps the first bytes of what is not finished.
    fn remember(&mut self, input: &Input<'_>) {
        let (State::Inside(run) | State::AtEnd { run, .. }) = &mut self.state else {
            self.head.clear();
            self.head.shrink_to(HEADER_BYTES_MAX);
            return;
        };
        let content = input.chunk.get(input.content_from..).unwrap_or(&[]);
        run.last = content.last().copied().unwrap_or(run.last);
        let room = self.head_bytes_max.saturating_sub(self.head.len());
        self.head.extend_from_slice(content.get(..room).unwrap_or(content));
        let unframed = run.kind != Kind::Framed && !MARK.starts_with(&self.head);
        if unframed {
            self.said.junk(run.start, &self.head);
        }
    }

    /// Outside a frame.
    fn between(&mut self, input: &mut Input<'_>, byte: u8) -> State {
        let offset = input.offset();
        match byte {
            SB => self.enter(input, Run::new(Kind::Framed, offset, offset + 1)),
            EB => {
                input.position += 1;
                self.said.filler(offset);
                State::AfterEnd { end: offset }
            }
            byte if is_filler(byte) => {
                input.position += 1;
                self.said.filler(offset);
                State::Between
            }
            _ => self.enter(input, Run::new(Kind::Bare, offset, offset)),
        }
    }

    /// Behind an end byte that ended something.
    fn after_end(&mut self, input: &mut Input<'_>, byte: u8, end: u64) -> State {
        let offset = input.offset();
        match byte {
            CR => {
                input.position += 1;
                State::Between
            }
            LF => {
                notice::end_in_lf();
                input.position += 1;
                State::Between
            }
            SB => {
                notice::end_without_cr();
                State::Between
            }
            EB => {
                input.position += 1;
                State::AfterEnd { end: offset }
            }
            byte if is_filler(byte) => {
                notice::end_without_cr();
                input.position += 1;
                State::Between
            }
            _ => self.enter(input, Run::new(Kind::Tail, end, offset)),
        }
    }

    /// Inside a run, up to the byte that ends it or to the end of the chunk.
    fn inside(&mut self, input: &mut Input<'_>, mut run: Run) -> State {
        if run.kind != Kind::Framed {
            return self.outside(input, run);
        }
        loop {
            while run.lines.is_looking()
                && let Some(byte) = input.peek().filter(|byte| !matches!(*byte, SB | EB | CR | LF))
            {
                run.lines.push(byte);
                input.position += 1;
            }
            let Some(found) = find_control(input.rest()) else {
                input.position = input.chunk.len();
                return State::Inside(run);
            };
            input.position += found;
            match input.peek() {
                Some(SB) => return self.start_byte(input, run),
                Some(EB) => return self.end_byte(input, run),
                Some(CR | LF) => run.lines.start_line(),
                _ => {}
            }
            input.position += 1;
        }
    }

    fn enter(&mut self, input: &mut Input<'_>, run: Run) -> State {
        input.enter(&run);
        self.head.clear();
        State::Inside(run)
    }
}

/// What may stand between frames without being worth more than a count.
fn is_filler(byte: u8) -> bool {
    matches!(byte, 0 | b' ' | b'\t' | 0x0C | CR | LF)
}
