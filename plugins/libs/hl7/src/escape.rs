//! Escape sequences: what a text says, piece by piece, with nothing lost.
//!
//! Every piece keeps its raw bytes, and the raw bytes of all pieces are the text again. What is
//! between two escape characters and no known sequence is text, so that `C:\temp\file` survives:
//! its first escape character stands for itself, and reading goes on behind it.

use crate::{Delimiters, search::find_byte};

/// One piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Nothing special.
    Text(&'a [u8]),
    /// `\F\ \S\ \T\ \R\ \E\ \P\`: the delimiter that is meant.
    Delimiter { meant: u8, raw: &'a [u8] },
    /// `\X0D0A\`: an even number of hexadecimal digits.
    Hex { digits: &'a [u8], raw: &'a [u8] },
    /// `\.br\ \.sp+2\ \.in-1\ …`: a formatting command with its number, where it has one.
    Format { command: Format, raw: &'a [u8] },
    /// `\H\` (true) and `\N\` (false).
    Highlight { on: bool, raw: &'a [u8] },
    /// `\C..\` and `\M..\`: a switch of the character set, as hexadecimal digits.
    Charset { digits: &'a [u8], raw: &'a [u8] },
    /// `\Z..\`: means something between two vendors.
    Vendor { content: &'a [u8], raw: &'a [u8] },
    /// An escape character that begins nothing.
    Lone(&'a [u8]),
}

/// A formatting command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.br`
    Break,
    /// `.sp`, lines to skip; 1 where no number is given.
    Skip(i16),
    /// `.in`
    Indent(i16),
    /// `.ti`
    TemporaryIndent(i16),
    /// `.fi`
    Fill,
    /// `.nf`
    NoFill,
    /// `.ce`
    Center,
}

impl<'a> Piece<'a> {
    /// The bytes as written, escape characters included.
    pub fn raw(&self) -> &'a [u8] {
        match self {
            Piece::Text(raw)
            | Piece::Lone(raw)
            | Piece::Delimiter { raw, .. }
            | Piece::Hex { raw, .. }
            | Piece::Format { raw, .. }
            | Piece::Highlight { raw, .. }
            | Piece::Charset { raw, .. }
            | Piece::Vendor { raw, .. } => raw,
        }
    }
}

/// The bytes that hexadecimal digits stand for; a digit without a partner is left out.
pub fn hex_bytes(digits: &[u8]) -> impl Iterator<Item = u8> + use<'_> {
    digits.as_chunks::<2>().0.iter().map(|&[high, low]| (hex_value(high) << 4) | hex_value(low))
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

/// The pieces of a text in order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    rest: &'a [u8],
    delimiters: Option<Delimiters>,
}

impl<'a> Pieces<'a> {
    pub fn new(text: &'a [u8], delimiters: &Delimiters) -> Self {
        Pieces { rest: text, delimiters: Some(*delimiters) }
    }

    /// Without delimiters the whole is text.
    pub(crate) fn of(text: &'a [u8], delimiters: Option<Delimiters>) -> Self {
        Pieces { rest: text, delimiters }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let escape = self.delimiters.and_then(|delimiters| delimiters.escape);
        let (Some(delimiters), Some(escape)) = (self.delimiters, escape) else {
            return self.take(self.rest.len()).map(Piece::Text);
        };
        let start = find_byte(self.rest, escape).unwrap_or(self.rest.len());
        if start > 0 {
            return self.take(start).map(Piece::Text);
        }
        let after = self.rest.get(1..)?;
        let sequence = find_byte(after, escape).and_then(|length| {
            let raw = self.rest.get(..length + 2)?;
            explain(after.get(..length)?, raw, &delimiters)
        });
        match sequence {
            Some(piece) => self.take(piece.raw().len()).map(|_| piece),
            None => self.take(1).map(Piece::Lone),
        }
    }
}

/// What stands between two escape characters, if it is a known sequence.
fn explain<'a>(content: &'a [u8], raw: &'a [u8], delimiters: &Delimiters) -> Option<Piece<'a>> {
    let (&family, body) = content.split_first()?;
    let delimiter = |meant: Option<u8>| {
        let meant = meant.filter(|_| body.is_empty())?;
        Some(Piece::Delimiter { meant, raw })
    };
    match family {
        b'F' => delimiter(Some(delimiters.field)),
        b'S' => delimiter(delimiters.component),
        b'T' => delimiter(delimiters.subcomponent),
        b'R' => delimiter(delimiters.repetition),
        b'E' => delimiter(delimiters.escape),
        b'P' => delimiter(delimiters.truncation),
        b'H' | b'N' if body.is_empty() => Some(Piece::Highlight { on: family == b'H', raw }),
        b'X' if is_hex(body) => Some(Piece::Hex { digits: body, raw }),
        b'C' | b'M' if is_hex(body) => Some(Piece::Charset { digits: body, raw }),
        b'Z' => Some(Piece::Vendor { content: body, raw }),
        b'.' => format(body).map(|command| Piece::Format { command, raw }),
        _ => None,
    }
}

fn is_hex(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit)
}

fn format(body: &[u8]) -> Option<Format> {
    let (name, number) = body.split_first_chunk::<2>()?;
    match (&name.map(|byte| byte.to_ascii_lowercase()), number) {
        (b"br", b"") => Some(Format::Break),
        (b"fi", b"") => Some(Format::Fill),
        (b"nf", b"") => Some(Format::NoFill),
        (b"ce", b"") => Some(Format::Center),
        (b"sp", b"") => Some(Format::Skip(1)),
        (b"sp", _) => signed(number).map(Format::Skip),
        (b"in", _) => signed(number).map(Format::Indent),
        (b"ti", _) => signed(number).map(Format::TemporaryIndent),
        _ => None,
    }
}

/// At most four digits, so that no counter made of it can grow without limit.
fn signed(number: &[u8]) -> Option<i16> {
    let text = std::str::from_utf8(number).ok().filter(|text| text.len() <= 5)?;
    text.trim_start().parse().ok().filter(|number: &i16| number.unsigned_abs() < 10_000)
}

/// Appends `text` so that it reads back as itself. CR and LF, which would end the segment, become
/// hexadecimal; without an escape character what cannot be written becomes a blank.
pub fn escape_into(out: &mut Vec<u8>, text: &[u8], delimiters: &Delimiters) {
    for &byte in text {
        let must = delimiters.contains(byte) || byte < 0x20;
        match (must, delimiters.escape) {
            (false, _) => out.push(byte),
            (true, None) => out.push(b' '),
            (true, Some(escape)) => {
                out.push(escape);
                push_name(out, byte, delimiters);
                out.push(escape);
            }
        }
    }
}

fn push_name(out: &mut Vec<u8>, byte: u8, delimiters: &Delimiters) {
    let letter = match Some(byte) {
        found if found == Some(delimiters.field) => b'F',
        found if found == delimiters.component => b'S',
        found if found == delimiters.subcomponent => b'T',
        found if found == delimiters.repetition => b'R',
        found if found == delimiters.escape => b'E',
        found if found == delimiters.truncation => b'P',
        _ => {
            let digit = |value: u8| if value < 10 { b'0' + value } else { b'A' + value - 10 };
            out.extend_from_slice(&[b'X', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.push(letter);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIVE: Delimiters = Delimiters { truncation: Some(b'#'), ..Delimiters::STANDARD };

    fn pieces(text: &[u8]) -> Vec<Piece<'_>> {
        Pieces::new(text, &FIVE).collect()
    }

    /// A short way to write what came out: delimiters and bytes decoded, the rest in angle brackets.
    fn told(text: &str) -> String {
        let parts = pieces(text.as_bytes()).into_iter().map(|piece| match piece {
            Piece::Text(raw) => String::from_utf8_lossy(raw).into_owned(),
            Piece::Delimiter { meant, .. } => format!("<{}>", char::from(meant)),
            Piece::Hex { digits, .. } => format!("<{:?}>", hex_bytes(digits).collect::<Vec<_>>()),
            Piece::Format { command, .. } => format!("<{command:?}>"),
            Piece::Highlight { on, .. } => format!("<highlight {on}>"),
            Piece::Charset { digits, .. } => format!("<charset {}>", String::from_utf8_lossy(digits)),
            Piece::Vendor { content, .. } => format!("<vendor {}>", String::from_utf8_lossy(content)),
            Piece::Lone(_) => "<lone>".into(),
        });
        parts.collect()
    }

    #[test]
    fn every_family_is_known() {
        assert_eq!(told(r"a\F\b\S\c\T\d\R\e\E\f\P\"), r"a<|>b<^>c<&>d<~>e<\>f<#>");
        assert_eq!(told(r"\X0D0a\x"), "<[13, 10]>x");
        assert_eq!(
            told(r"\.br\\.sp\\.sp+3\\.in-2\\.ti4\\.fi\\.nf\\.ce\"),
            "<Break><Skip(1)><Skip(3)><Indent(-2)><TemporaryIndent(4)><Fill><NoFill><Center>"
        );
        assert_eq!(told(r"\H\loud\N\"), "<highlight true>loud<highlight false>");
        assert_eq!(told(r"\C2842\\M244A42\"), r"<charset 2842>".to_owned() + "<charset 244A42>");
        assert_eq!(told(r"\Zany thing\"), "<vendor any thing>");
    }

    #[test]
    fn a_lone_escape_character_is_text() {
        assert_eq!(told(r"C:\temp\file"), "C:<lone>temp<lone>file");
        assert_eq!(told(r"50\ of \F\"), "50<lone> of <|>");
        assert_eq!(told(r"\X0\ \XZZ\ \X\"), "<lone>X0<lone> <lone>XZZ<lone> <lone>X<lone>");
        assert_eq!(told(r"\\T\\"), "<lone><&><lone>");
        assert_eq!(told(r"\.xx\ \.in\ \.sp99999\"), "<lone>.xx<lone> <lone>.in<lone> <lone>.sp99999<lone>");
    }

    #[test]
    fn without_an_escape_character_all_is_text() {
        let delimiters = Delimiters { escape: None, ..FIVE };
        assert_eq!(Pieces::new(br"a\F\b", &delimiters).collect::<Vec<_>>(), [Piece::Text(br"a\F\b")]);
    }

    proptest! {
        #[test]
        fn the_raw_pieces_are_the_text(text in proptest::collection::vec(
            prop_oneof![3 => prop::sample::select(b"\\FSTREPXCMZHN.brsp+-019aA".to_vec()), 1 => any::<u8>()], 0..80)) {
            let raw: Vec<u8> = pieces(&text).iter().flat_map(|piece| piece.raw().to_vec()).collect();
            prop_assert_eq!(raw, text);
        }

        #[test]
        fn what_is_escaped_reads_back(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut written = Vec::new();
            escape_into(&mut written, &text, &FIVE);
            let mut read = Vec::new();
            for piece in pieces(&written) {
                match piece {
                    Piece::Text(raw) => read.extend_from_slice(raw),
                    Piece::Delimiter { meant, .. } => read.push(meant),
                    Piece::Hex { digits, .. } => read.extend(hex_bytes(digits)),
                    other => prop_assert!(false, "unexpected {other:?}"),
                }
            }
            prop_assert_eq!(read, text);
        }
    }
}
