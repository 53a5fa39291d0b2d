//! Counts the header segments of a frame as it passes.
//!
//! A second MSH, or an FHS or BHS, means more than one message, wherever it stands; so every line's
//! first letters are looked at, however the input is cut into chunks.

/// What is known of the line at hand and of those before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// The line's first bytes behind blanks.
    start: [u8; 3],
    /// How many of them are there; [`PASSED`] once the line is known.
    length: u8,
    headers: u32,
}

const PASSED: u8 = u8::MAX;

impl Lines {
    /// MSH, FHS and BHS segments so far.
    pub(crate) fn headers(&self) -> u32 {
        self.headers
    }

    /// Whether the next byte of the line matters.
    pub(crate) fn is_looking(&self) -> bool {
        self.length != PASSED
    }

    /// A segment ended.
    pub(crate) fn start_line(&mut self) {
        self.length = 0;
    }

    /// The next byte of a line that is still looked at.
    pub(crate) fn push(&mut self, byte: u8) {
        // A byte order mark before the first header counts as blank.
        let is_blank = matches!(byte, b' ' | b'\t' | 0xEF | 0xBB | 0xBF);
        if self.length == 0 && is_blank {
            return;
        }
        if let Some(slot) = self.start.get_mut(usize::from(self.length)) {
            *slot = byte.to_ascii_uppercase();
            self.length += 1;
            return;
        }
        let is_separator = !byte.is_ascii_alphanumeric() && !byte.is_ascii_control() && byte != b' ';
        if is_separator && matches!(&self.start, b"MSH" | b"FHS" | b"BHS") {
            self.headers = self.headers.saturating_add(1);
        }
        self.length = PASSED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &[u8]) -> u32 {
        let mut lines = Lines::default();
        for &byte in text {
            match byte {
                b'\r' | b'\n' => lines.start_line(),
                byte if lines.is_looking() => lines.push(byte),
                _ => {}
            }
        }
        lines.headers()
    }

    #[test]
    fn headers_are_counted_at_the_start_of_lines_only() {
        assert_eq!(headers(b"MSH|^~\\&|x\rPID|MSH|\r"), 1);
        assert_eq!(headers(b"\xEF\xBB\xBFmsh|x\n\tMSH#\r\nBHS|"), 3);
        assert_eq!(headers(b"FHS|\rBHS|\rMSH|\rBTS|1\rFTS"), 3);
        assert_eq!(headers(b"MSH|\rMSHX|\rMSH\rMSH is text\rMS|H"), 1);
    }
}
