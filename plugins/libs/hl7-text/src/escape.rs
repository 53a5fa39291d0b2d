//! Escape sequences as text.
//!
//! How a text looks is left out; what cannot be told as text stays as it is written.

use portway_hl7::{
    Charset, Delimiters, Piece, Pieces,
    charset::latin1,
    escape::{Format, hex_bytes},
};
use portway_sdk::text;

/// Lines that one `\.sp99\` makes at most.
const SKIPPED_LINES_MAX: u16 = 100;

/// Hands over what a text says, piece by piece: UTF-8 without sequences. The text is UTF-8; the
/// character set is that of the message, since hexadecimal sequences are its bytes.
pub fn explain(text: &[u8], delimiters: &Delimiters, charset: Charset, mut push: impl FnMut(&[u8])) {
    let mut pieces = Pieces::new(text, delimiters).peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(raw) | Piece::Lone(raw) => push(raw),
            Piece::Delimiter { meant, .. } => push(&[meant]),
            Piece::Format { command: Format::Break | Format::Center, .. } => push(b"\n"),
            Piece::Format { command: Format::Skip(lines), .. } => {
                let lines = lines.unsigned_abs().min(SKIPPED_LINES_MAX);
                (0..lines).for_each(|_| push(b"\n"));
            }
            // Says how the text looks, not what it says.
            Piece::Format { .. } | Piece::Highlight { .. } => {}
            Piece::Charset { raw, .. } | Piece::Vendor { raw, .. } => push(raw),
            Piece::Hex { digits, raw } => {
                // A character may be written as one sequence a byte.
                let (mut bytes, mut written): (Vec<u8>, _) = (hex_bytes(digits).collect(), raw.to_vec());
                while let Some(Piece::Hex { digits, raw }) = pieces.peek() {
                    bytes.extend(hex_bytes(digits));
                    written.extend_from_slice(raw);
                    pieces.next();
                }
                match decode(&bytes, charset) {
                    Some(text) => push(text.as_bytes()),
                    None => push(&written),
                }
            }
        }
    }
}

/// The bytes of hexadecimal sequences are in the message's own character set.
fn decode(bytes: &[u8], charset: Charset) -> Option<String> {
    match charset {
        Charset::Utf8 | Charset::Wide | Charset::Unknown => String::from_utf8(bytes.to_vec()).ok(),
        Charset::Latin1 => Some(latin1(bytes)),
        Charset::Named(name) => text::decode(bytes, name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, charset: Charset) -> String {
        let mut said = Vec::new();
        explain(text.as_bytes(), &Delimiters::STANDARD, charset, |piece| said.extend_from_slice(piece));
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn sequences_become_what_they_stand_for() {
        let cases = [
            (r"a\F\b\S\c\T\d\R\e\E\f", r"a|b^c&d~e\f"),
            (r"one\.br\two\.sp2\three", "one\ntwo\n\nthree"),
            (r"\H\loud\N\ \.in+2\quiet", "loud quiet"),
            (r"C:\temp\file", r"C:\temp\file"),
            (r"\XC3\\XA9\", "é"),
            (r"\XC3\", r"\XC3\"),
            (r"\Zx\ \C2842\", r"\Zx\ \C2842\"),
        ];
        for (text, expected) in cases {
            assert_eq!(said(text, Charset::Utf8), expected, "{text}");
        }
        assert_eq!(said(r"\XE9\", Charset::Latin1), "é");
        assert_eq!(said(r"\.sp9999\", Charset::Utf8).len(), usize::from(SKIPPED_LINES_MAX));
    }
}
