//! A length before the message.

use crate::Order;

/// How a length is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    width: usize,
    form: Form,
    /// Whether the length counts its own bytes.
    counts_itself: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Binary(Order),
    Digits,
}

impl Length {
    /// In 1, 2, 4 or 8 bytes.
    pub(crate) fn binary(width: usize, order: Order, counts_itself: bool) -> Result<Length, String> {
        match width {
            1 | 2 | 4 | 8 => Ok(Length { width, form: Form::Binary(order), counts_itself }),
            _ => Err(format!("a length has 1, 2, 4 or 8 bytes, not {width}")),
        }
    }

    /// In decimal digits of ASCII.
    pub(crate) fn digits(width: usize, counts_itself: bool) -> Result<Length, String> {
        match width {
            1..=18 => Ok(Length { width, form: Form::Digits, counts_itself }),
            _ => Err(format!("a length has 1 to 18 digits, not {width}")),
        }
    }

    /// Its bytes.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The length of the content; None: it is none.
    pub(crate) fn read(&self, written: &[u8]) -> Option<u64> {
        let number = match self.form {
            Form::Binary(Order::Big) => {
                written.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
            }
            Form::Binary(Order::Little) => {
                written.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
            }
            Form::Digits => written.iter().try_fold(0_u64, |number, byte| {
                let digit = byte.is_ascii_digit().then_some(u64::from(byte.wrapping_sub(b'0')))?;
                number.checked_mul(10)?.checked_add(digit)
            })?,
        };
        if self.counts_itself { number.checked_sub(self.width as u64) } else { Some(number) }
    }

    /// The length before content of so many bytes; None: it does not fit.
    pub(crate) fn write(&self, length: u64) -> Option<Vec<u8>> {
        let itself = if self.counts_itself { self.width as u64 } else { 0 };
        let number = length.checked_add(itself)?;
        match self.form {
            Form::Digits => {
                let digits = format!("{number:0width$}", width = self.width);
                (digits.len() == self.width).then(|| digits.into_bytes())
            }
            Form::Binary(order) => {
                let all = number.to_be_bytes();
                let (high, low) = all.split_at_checked(all.len().checked_sub(self.width)?)?;
                let fits = high.iter().all(|byte| *byte == 0);
                let mut bytes = low.to_vec();
                if order == Order::Little {
                    bytes.reverse();
                }
                fits.then_some(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_written_and_read_in_every_form() {
        let table: [(Length, u64, &[u8]); 6] = [
            (Length::binary(1, Order::Big, false).unwrap(), 255, b"\xFF"),
            (Length::binary(2, Order::Big, false).unwrap(), 258, b"\x01\x02"),
            (Length::binary(4, Order::Little, false).unwrap(), 258, b"\x02\x01\0\0"),
            (Length::binary(8, Order::Big, true).unwrap(), 2, b"\0\0\0\0\0\0\0\x0A"),
            (Length::digits(5, false).unwrap(), 42, b"00042"),
            (Length::digits(3, true).unwrap(), 42, b"045"),
        ];
        for (length, number, written) in table {
            assert_eq!(length.write(number).as_deref(), Some(written));
            assert_eq!(length.read(written), Some(number));
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written_and_what_is_none_not_read() {
        assert_eq!(Length::binary(1, Order::Big, true).unwrap().write(255), None);
        assert_eq!(Length::binary(2, Order::Little, false).unwrap().write(65_536), None);
        assert_eq!(Length::digits(2, false).unwrap().write(100), None);
        let digits = Length::digits(3, true).unwrap();
        for written in [b"  7", b"-01", b"0x1", b"002"] {
            assert_eq!(digits.read(written), None, "{written:?}");
        }
        assert_eq!(digits.read(b"003"), Some(0));
        assert!(Length::binary(3, Order::Big, false).is_err() && Length::digits(0, false).is_err());
        assert!(Length::digits(19, false).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(number: u64, width in 1_usize..19, itself: bool, little: bool) {
            let order = if little { Order::Little } else { Order::Big };
            for length in [Length::digits(width, itself), Length::binary(width, order, itself)] {
                let Ok(length) = length else { continue };
                if let Some(written) = length.write(number) {
                    prop_assert_eq!(written.len(), width);
                    prop_assert_eq!(length.read(&written), Some(number));
                }
            }
        }
    }
}
