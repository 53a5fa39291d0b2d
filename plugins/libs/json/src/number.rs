//! What is a number: in JSON, and where nobody can lose a digit of it.

/// Decimal digits that a double certainly holds.
pub const DIGITS_MAX: usize = 15;

/// Whether a text is a number as JSON writes one.
pub fn is_number(text: &str) -> bool {
    number_end(text.as_bytes()) == Some(text.len())
}

/// Whether a text is a number that every reader of JSON takes for the same and can write again: no
/// exponent, no zero with a sign, at most [`DIGITS_MAX`] digits.
pub fn is_plain_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let has_exponent = text.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    let is_negative_zero =
        text.starts_with('-') && !text.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0');
    digits <= DIGITS_MAX && !has_exponent && !is_negative_zero && is_number(text)
}

/// Where the number at the start ends; none: there is none, or it breaks off.
pub(crate) fn number_end(bytes: &[u8]) -> Option<usize> {
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    at += match bytes.get(at)? {
        b'0' => 1,
        b'1'..=b'9' => digits(bytes, at),
        _ => return None,
    };
    if bytes.get(at) == Some(&b'.') {
        at += 1 + some_digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at += some_digits(bytes, at)?;
    }
    Some(at)
}

fn digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn some_digits(bytes: &[u8], at: usize) -> Option<usize> {
    Some(digits(bytes, at)).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_json_says() {
        for text in ["0", "-0", "10", "1.50", "-0.5", "1e5", "1E+05", "12345678901234567890.1"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "1 ", " 1", "0x1", "1,5", "NaN", "1_0"] {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn a_plain_number_is_one_that_nobody_changes() {
        for text in ["0", "10", "-3", "1.50", "0.001", "123456789012345"] {
            assert!(is_plain_number(text), "{text}");
        }
        for text in ["007", "+7", "-0", "-0.00", "1e5", "1234567890123456", "0.1234567890123456", "1.", ""] {
            assert!(!is_plain_number(text), "{text}");
        }
    }
}
