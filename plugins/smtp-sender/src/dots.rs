//! Dots: a line that begins with one gets another, so that none ends the mail early.

/// Writes a mail in pieces.
pub(crate) struct Dots {
    at_line_start: bool,
}

impl Dots {
    pub fn new() -> Self {
        Dots { at_line_start: true }
    }

    /// Adds a piece of the mail as it is written.
    pub fn push(&mut self, piece: &[u8], into: &mut Vec<u8>) {
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.at_line_start && line.first() == Some(&b'.') {
                into.push(b'.');
            }
            into.extend_from_slice(line);
            self.at_line_start = line.last() == Some(&b'\n');
        }
    }

    /// Ends the mail.
    pub fn finish(self, into: &mut Vec<u8>) {
        if !self.at_line_start {
            into.extend_from_slice(b"\r\n");
        }
        into.extend_from_slice(b".\r\n");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut dots, mut bytes) = (Dots::new(), Vec::new());
        pieces.iter().for_each(|piece| dots.push(piece, &mut bytes));
        dots.finish(&mut bytes);
        bytes
    }

    /// As a server reads it.
    fn read(bytes: &[u8]) -> Vec<u8> {
        let mut mail = Vec::new();
        let mut rest = bytes;
        loop {
            let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
            let (line, after) = rest.split_at(end);
            if line == b".\r\n" {
                assert!(after.is_empty(), "the mail ended early");
                return mail;
            }
            mail.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            rest = after;
        }
    }

    #[test]
    fn a_dot_at_the_start_of_a_line_is_written_twice() {
        assert_eq!(written(&[b".\r\n..a\r\nb.\r\n"]), b"..\r\n...a\r\nb.\r\n.\r\n");
        assert_eq!(written(&[b"a\r\n", b".", b".b"]), b"a\r\n...b\r\n.\r\n");
        assert_eq!(written(&[]), b".\r\n");
    }

    proptest! {
        #[test]
        fn a_server_reads_what_was_written(lines in prop::collection::vec("[.a]{0,4}", 0..8), cut in 0..40_usize) {
            let mail: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            let (first, second) = mail.as_bytes().split_at(cut.min(mail.len()));
            prop_assert_eq!(read(&written(&[first, second])), mail.as_bytes());
        }
    }
}
