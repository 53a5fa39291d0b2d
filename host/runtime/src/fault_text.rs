//! Making text of a guest's fit to be shown: escaped and cut.

use std::fmt::Write;

/// Bytes of a name that is repeated in a message of ours.
const NAME_BYTES_MAX: usize = 128;

/// Cuts to so many bytes at a character's edge.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// A name from outside, escaped and short enough for a sentence.
pub(crate) fn shortened(name: &str) -> String {
    escape(cut(name, NAME_BYTES_MAX), Lines::One)
}

/// Whether line ends stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    One,
    Many,
}

/// Shows control characters and what turns the direction of text as escapes, so that a guest
/// cannot write into a terminal what it did not say.
pub(crate) fn escape(text: &str, lines: Lines) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let stays = character == '\t' || (lines == Lines::Many && character == '\n');
        let turns =
            matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (character.is_control() && !stays) || turns {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_is_shown_escaped() {
        assert_eq!(escape("a\u{1b}[2J\r\nb\tc", Lines::One), "a\\u{1b}[2J\\r\\nb\tc");
        assert_eq!(escape("a\nb\u{202e}c\u{85}", Lines::Many), "a\nb\\u{202e}c\\u{85}");
    }

    #[test]
    fn a_cut_keeps_characters_whole() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }
}
