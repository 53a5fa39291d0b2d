//! Sequences of bytes before and behind a message.

use memchr::{memchr, memchr2};

use crate::Pattern;

/// What begins a frame, what ends it, or both.
#[derive(Clone, Debug)]
pub struct Delimiters {
    ends: Ends,
    /// Whether the end is a part of the message.
    keep_end: bool,
}

#[derive(Clone, Debug)]
enum Ends {
    Start(Pattern),
    End(Pattern),
    Both { start: Pattern, end: Pattern },
}

/// How far the content of a frame was gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How much of what ends the frame the last bytes are.
    pub closing: usize,
    /// How much of a start they are, where that is something else.
    opening: usize,
    /// A start stood inside.
    pub start_inside: bool,
}

impl Delimiters {
    /// Fails with a sentence where frames could not be told apart.
    pub(crate) fn new(start: Option<Pattern>, end: Option<Pattern>, keep_end: bool) -> Result<Self, String> {
        let holds = |one: &Pattern, other: &Pattern| {
            one.bytes().windows(other.len()).any(|window| window == other.bytes())
        };
        let ends = match (start, end) {
            (None, None) => return Err("`start`, `end` or both say how frames are told apart".to_owned()),
            (Some(start), Some(end)) if holds(&start, &end) || holds(&end, &start) => {
                return Err("of `start` and `end` none may be a part of the other".to_owned());
            }
            (Some(start), Some(end)) => Ends::Both { start, end },
            (Some(start), None) => Ends::Start(start),
            (None, Some(end)) => Ends::End(end),
        };
        Ok(Delimiters { ends, keep_end })
    }

    pub(crate) fn has_end(&self) -> bool {
        self.end().is_some()
    }

    pub(crate) fn keeps_end(&self) -> bool {
        self.keep_end
    }

    pub(crate) fn start(&self) -> Option<&Pattern> {
        match &self.ends {
            Ends::Start(start) | Ends::Both { start, .. } => Some(start),
            Ends::End(_) => None,
        }
    }

    pub(crate) fn end(&self) -> Option<&Pattern> {
        match &self.ends {
            Ends::End(end) | Ends::Both { end, .. } => Some(end),
            Ends::Start(_) => None,
        }
    }

    /// What the content of a frame ends at: its end, or the start of the next frame.
    pub(crate) fn closing(&self) -> &Pattern {
        match &self.ends {
            Ends::Start(closing) | Ends::End(closing) | Ends::Both { end: closing, .. } => closing,
        }
    }

    /// Goes through content up to the byte that completes what ends it: how many bytes that were, and
    /// whether it was completed.
    pub(crate) fn advance(&self, progress: &mut Progress, bytes: &[u8]) -> (usize, bool) {
        let closing = self.closing();
        let opening = match &self.ends {
            Ends::Both { start, .. } => Some(start),
            Ends::Start(_) | Ends::End(_) => None,
        };
        let mut used = 0;
        while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
            let mut skipped = 0;
            if progress.closing == 0 && progress.opening == 0 {
                let next = match opening {
                    None => memchr(closing.first(), rest),
                    Some(opening) => memchr2(closing.first(), opening.first(), rest),
                };
                let Some(next) = next else { return (bytes.len(), false) };
                skipped = next;
            }
            let Some(&byte) = rest.get(skipped) else { break };
            used += skipped + 1;
            progress.closing = closing.step(progress.closing, byte);
            if progress.closing == closing.len() {
                return (used, true);
            }
            if let Some(opening) = opening {
                progress.opening = opening.step(progress.opening, byte);
                if progress.opening == opening.len() {
                    progress.start_inside = true;
                    progress.opening = 0;
                }
            }
        }
        (used, false)
    }
}
