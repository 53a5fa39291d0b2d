//! Whether fields in quotes end as they must.
//!
//! `csv-core` takes a file that was cut off inside a field for a whole one, and
//! forgets a quote with text behind it. Both mean that a record is not what its writer meant.

use std::fmt;

use portway_search::{Block, find_byte, find_in_blocks};

use crate::text::line_of;

/// What is wrong with a field in quotes, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotingError {
    /// The text ends inside it.
    Open { line: usize },
    /// Between its last quote and the delimiter stands something else.
    TextBehind { line: usize },
}

impl fmt::Display for QuotingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotingError::Open { line } => {
                write!(f, "a field in quotes that begins in line {line} does not end")
            }
            QuotingError::TextBehind { line } => {
                write!(f, "a field in quotes that begins in line {line} has text behind its last quote")
            }
        }
    }
}

impl std::error::Error for QuotingError {}

/// Looks at all fields. A quote counts where a field begins with it.
pub(crate) fn check(text: &[u8], delimiter: u8, quote: u8) -> Result<(), QuotingError> {
    if find_byte(text, quote).is_none() {
        return Ok(());
    }
    let is_end = |byte: u8| byte == delimiter || matches!(byte, b'\r' | b'\n');
    let ends = |block: Block| block.equal(delimiter) | block.equal(b'\r') | block.equal(b'\n');
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        if rest.first() == Some(&quote) {
            let end = closing(rest, quote).ok_or_else(|| QuotingError::Open { line: line_of(text, at) })?;
            match rest.get(end + 1) {
                None => return Ok(()),
                Some(byte) if is_end(*byte) => at += end + 2,
                Some(_) => return Err(QuotingError::TextBehind { line: line_of(text, at) }),
            }
        } else {
            let Some(end) = find_in_blocks(rest, ends) else { return Ok(()) };
            at += end + 1;
        }
    }
    Ok(())
}

/// Where the quote stands that ends a field which begins with one.
fn closing(field: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        at += find_byte(field.get(at..)?, quote)?;
        if field.get(at + 1) != Some(&quote) {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_with_their_quote() {
        let good = [
            "",
            "a,b\n",
            "\"a\"",
            "\"a\",b\r\n\"c\"\n",
            "\"a\"\"b\n\",c",
            "a\"b,5\" pipe\n",
            "\"\"",
            "\"\"\"\"",
        ];
        for text in good {
            assert_eq!(check(text.as_bytes(), b',', b'"'), Ok(()), "{text}");
        }
        let bad = [
            ("\"a", QuotingError::Open { line: 1 }),
            ("a,b\nc,\"d\ne,f\n", QuotingError::Open { line: 2 }),
            ("\"a\"\"", QuotingError::Open { line: 1 }),
            ("a\r\n\"b\"c,d", QuotingError::TextBehind { line: 2 }),
            ("\"a\" ,b", QuotingError::TextBehind { line: 1 }),
        ];
        for (text, error) in bad {
            assert_eq!(check(text.as_bytes(), b',', b'"'), Err(error), "{text}");
        }
    }
}
