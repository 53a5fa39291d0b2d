//! Where something ends: start and end bytes inside a run, and the end of the input.

use portway_sdk::{FinishReason, Item};

use super::{CR, EB, FRAGMENTS_MAX, FrameCodec, LF, SB, State, TAIL_BYTES_MIN};
use crate::{
    Reason, notice,
    run::{Input, Kind, Run, cut},
    verdict,
};

impl FrameCodec {
    /// A start byte inside a run.
    pub(super) fn start_byte(&mut self, input: &mut Input<'_>, mut run: Run) -> State {
        if run.kind != Kind::Framed {
            self.leave_unframed(input, &run);
            return State::Between;
        }
        if run.fragments.len() + 1 >= FRAGMENTS_MAX {
            input.position += 1;
            return State::Inside(run);
        }
        let offset = input.offset();
        let cut = cut(&mut self.head, self.head_bytes_max, input, &run, offset);
        if cut.is_blank() {
            notice::start_repeated();
        } else {
            verdict::add_fragment(&mut run.fragments, &cut, &self.settings, &mut self.said);
        }
        let keep_from = if run.fragments.is_empty() { offset } else { run.keep_from };
        let fragments = run.fragments;
        self.enter(input, Run { fragments, ..Run::new(Kind::Framed, keep_from, offset + 1) })
    }

    /// An end byte inside a run.
    pub(super) fn end_byte(&mut self, input: &mut Input<'_>, run: Run) -> State {
        let end = input.offset();
        match run.kind {
            Kind::Framed => {
                let previous = input.previous(&run);
                input.position += 1;
                let ends_line = previous.is_none_or(|byte| byte == CR || byte == LF);
                if self.settings.strict_end || !ends_line {
                    return State::AtEnd { run, end };
                }
                self.complete(input, run, end);
            }
            Kind::Bare => {
                let cut = cut(&mut self.head, self.head_bytes_max, input, &run, end);
                self.said.junk(run.start, cut.head);
                let item = verdict::refuse_cut(Reason::NoStartByte, &cut);
                input.position += 1;
                self.push(input, item);
            }
            Kind::Tail => {
                self.leave_unframed(input, &run);
                input.position += 1;
            }
        }
        State::AfterEnd { end }
    }

    /// Bytes without a start byte end where a frame begins or another end byte stands. Those behind an
    /// end byte may be the rest of a message that was answered, so they are kept.
    fn leave_unframed(&mut self, input: &mut Input<'_>, run: &Run) {
        let cut = cut(&mut self.head, self.head_bytes_max, input, run, input.offset());
        self.said.junk(run.start, cut.head);
        if run.kind == Kind::Tail && cut.length >= TAIL_BYTES_MIN {
            let item = verdict::tail(&cut);
            self.push(input, item);
        }
    }

    /// Behind an end byte in the middle of a line.
    pub(super) fn at_end(&mut self, input: &mut Input<'_>, byte: u8, mut run: Run, end: u64) -> State {
        match byte {
            CR => {
                input.position += 1;
                self.complete(input, run, end);
                State::Between
            }
            _ if self.settings.strict_end => {
                self.refuse_unended(input, &run, end);
                State::Between
            }
            LF => {
                notice::end_in_lf();
                input.position += 1;
                self.complete(input, run, end);
                State::Between
            }
            SB | 0 => {
                notice::end_without_cr();
                self.complete(input, run, end);
                State::Between
            }
            EB => {
                let end = input.offset();
                input.position += 1;
                run.end_inside = true;
                State::AtEnd { run, end }
            }
            _ => {
                run.end_inside = true;
                State::Inside(run)
            }
        }
    }

    /// A frame is whole.
    pub(super) fn complete(&mut self, input: &mut Input<'_>, mut run: Run, end: u64) {
        let cut = cut(&mut self.head, self.head_bytes_max, input, &run, end);
        if run.fragments.is_empty() {
            let doubt = run.end_inside.then_some(Reason::EndByteInside);
            let item = verdict::frame(&cut, &self.settings, &mut self.said, doubt);
            self.push(input, item);
            return;
        }
        if !cut.is_blank() {
            verdict::add_fragment(&mut run.fragments, &cut, &self.settings, &mut self.said);
        }
        for item in verdict::joined(run.fragments) {
            self.push(input, item);
        }
    }

    /// A frame whose end is not as strictly as the settings ask for.
    pub(super) fn refuse_unended(&mut self, input: &mut Input<'_>, run: &Run, end: u64) {
        let cut = cut(&mut self.head, self.head_bytes_max, input, run, end);
        let item = verdict::refuse_cut(Reason::EndWithoutCr, &cut);
        self.push(input, item);
    }

    /// The input ends inside a run.
    pub(super) fn break_off(&mut self, input: &mut Input<'_>, run: &Run, reason: &FinishReason) {
        if run.kind == Kind::Tail {
            return self.leave_unframed(input, run);
        }
        let cut = cut(&mut self.head, self.head_bytes_max, input, run, self.at);
        let item = match (run.kind, reason) {
            (Kind::Bare | Kind::Tail, _) => {
                self.said.junk(run.start, cut.head);
                verdict::refuse_silently(Reason::NoStartByte)
            }
            (Kind::Framed, FinishReason::TooLarge) => verdict::refuse_and_close(Reason::TooLarge, Some(&cut)),
            (Kind::Framed, FinishReason::Idle) => verdict::refuse_silently(Reason::IdleInFrame),
            (Kind::Framed, FinishReason::Stopping) => verdict::refuse_silently(Reason::StoppedInFrame),
            (Kind::Framed, FinishReason::PeerClosed | FinishReason::Other(_)) => {
                verdict::refuse_silently(Reason::ClosedInFrame)
            }
        };
        input.items.push(item);
    }

    pub(super) fn push(&mut self, input: &mut Input<'_>, item: Item) {
        let is_fine = matches!(&item, Item::Message(draft) if draft.doubt.is_none());
        self.refused_in_row = if is_fine { 0 } else { self.refused_in_row + 1 };
        input.items.push(item);
    }
}
