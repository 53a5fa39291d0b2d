//! Bytes without a start byte: junk, other protocols, and what follows an end byte.

use portway_hl7::search::find_either;

use super::{BARE_BYTES_MAX, EB, FrameCodec, GREETING_BYTES_MAX, SB, State};
use crate::{
    Reason,
    greeting::{Greeting, recognise},
    run::{Input, Kind, Run},
    verdict,
};

impl FrameCodec {
    /// The same for bytes without a start byte.
    pub(super) fn outside(&mut self, input: &mut Input<'_>, run: Run) -> State {
        let mut rest = input.rest();
        if run.kind == Kind::Bare {
            let length = input.offset() - run.start;
            if length >= BARE_BYTES_MAX {
                input.items.push(verdict::refuse_and_close(Reason::NoStartByte, None));
                return State::Closed;
            }
            if run.start == 0
                && let Some(state) = self.greet(input, &run)
            {
                return state.unwrap_or(State::Inside(run));
            }
            let room = usize::try_from(BARE_BYTES_MAX - length).unwrap_or(usize::MAX);
            rest = rest.get(..room).unwrap_or(rest);
        }
        let found = find_either(rest, SB, EB);
        input.position += found.unwrap_or(rest.len());
        match input.peek().filter(|_| found.is_some()) {
            Some(SB) => self.start_byte(input, run),
            Some(_) => self.end_byte(input, run),
            None => State::Inside(run),
        }
    }

    /// Looks at a connection's first bytes, one by one until they are known. None: they are no
    /// greeting. `Some(None)`: not known yet.
    fn greet(&mut self, input: &mut Input<'_>, run: &Run) -> Option<Option<State>> {
        let end = input.offset() + 1;
        if end - run.start > GREETING_BYTES_MAX {
            return None;
        }
        let start = [self.head.as_slice(), input.content_to(end)].concat();
        let reason = match recognise(&start) {
            Greeting::Unknown => return None,
            Greeting::Undecided => {
                input.position += 1;
                return Some(None);
            }
            Greeting::Tls => Reason::Tls,
            Greeting::Http => Reason::Http,
        };
        input.items.push(verdict::refuse_and_close(reason, None));
        Some(Some(State::Closed))
    }
}
