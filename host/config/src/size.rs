//! Sizes as users write them: a whole number and a unit that counts in 1,024s.

use std::fmt;

const UNITS: [(&str, u64); 4] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl ByteSize {
    pub const fn kb(count: u64) -> ByteSize {
        ByteSize(count << 10)
    }

    pub const fn mb(count: u64) -> ByteSize {
        ByteSize(count << 20)
    }

    /// For sizes of memory; what does not fit is the largest there is.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Reads `"512B"`, `"64KB"`, `"64MB"` or `"2GB"`; `KiB` and so on mean the same.
    pub(crate) fn parse(text: &str) -> Option<ByteSize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let unit = unit.replace("iB", "B");
        let (_, bytes) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        number.parse::<u64>().ok()?.checked_mul(bytes).map(ByteSize)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.into_iter().find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size));
        let (name, size) = unit.unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_show_the_same() {
        for text in ["0B", "1B", "1500B", "64KB", "64MB", "2GB"] {
            assert_eq!(ByteSize::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ByteSize::parse("64MiB"), Some(ByteSize::mb(64)));
    }

    #[test]
    fn what_is_no_size_is_none() {
        for text in ["", "MB", "64", "64 MB", "6.4MB", "-1B", "99999999999GB", "64mb"] {
            assert_eq!(ByteSize::parse(text), None, "{text}");
        }
    }
}
