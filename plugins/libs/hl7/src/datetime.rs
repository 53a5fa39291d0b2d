//! Dates and times: `YYYY[MM[DD[HH[MM[SS[.S[S[S[S]]]]]]]]][+/-ZZZZ]`.
//!
//! The precision is the length that was written, and where no offset is written there is none: the
//! sender's zone is not known here and not invented. So a date of birth never becomes an instant.

/// A point in time as precise as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime<'a> {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    /// The digits behind the point, one to four.
    pub fraction: &'a [u8],
    /// Minutes east of UTC, where written.
    pub offset_minutes: Option<i16>,
    pub precision: Precision,
}

/// How far the digits go. Parts beyond it hold their least value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Fraction,
}

impl<'a> DateTime<'a> {
    /// None if the text is no date: wrong length, no digits, or a day that does not exist.
    pub fn parse(text: &'a [u8]) -> Option<DateTime<'a>> {
        let (main, offset_minutes) = split_offset(text)?;
        let (digits, fraction) = match main.iter().position(|&byte| byte == b'.') {
            Some(point) => (main.get(..point)?, Some(main.get(point + 1..)?)),
            None => (main, None),
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let two = |at: usize| digits.get(at..at + 2).map(number);
        let date = DateTime {
            year: number(digits.get(..4)?),
            month: two(4).map_or(Some(1), to_u8)?,
            day: two(6).map_or(Some(1), to_u8)?,
            hour: two(8).map_or(Some(0), to_u8)?,
            minute: two(10).map_or(Some(0), to_u8)?,
            second: two(12).map_or(Some(0), to_u8)?,
            fraction: fraction.unwrap_or(&[]),
            offset_minutes,
            precision: precision(digits.len(), fraction)?,
        };
        date.exists().then_some(date)
    }

    fn exists(&self) -> bool {
        let days = match self.month {
            2 if is_leap(self.year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        // A leap second is written as 60.
        self.year > 0
            && (1..=12).contains(&self.month)
            && (1..=days).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second <= 60
    }

    /// Appends it as ISO 8601, exactly as precise as it was written.
    pub fn write_iso(&self, out: &mut Vec<u8>) {
        self.iso(|byte| out.push(byte));
    }

    /// The same, a byte at a time; at most 29.
    #[inline]
    pub fn iso(&self, mut push: impl FnMut(u8)) {
        let year = self.year.min(9999);
        two((year / 100) as u8).into_iter().for_each(&mut push);
        two((year % 100) as u8).into_iter().for_each(&mut push);
        let parts = [
            (Precision::Month, b'-', self.month),
            (Precision::Day, b'-', self.day),
            (Precision::Hour, b'T', self.hour),
            (Precision::Minute, b':', self.minute),
            (Precision::Second, b':', self.second),
        ];
        for (precision, separator, value) in parts {
            if self.precision >= precision {
                push(separator);
                two(value).into_iter().for_each(&mut push);
            }
        }
        if self.precision == Precision::Fraction {
            push(b'.');
            self.fraction.iter().for_each(|digit| push(*digit));
        }
        if let Some(offset) = self.offset_minutes {
            let minutes = offset.unsigned_abs();
            push(if offset < 0 { b'-' } else { b'+' });
            two((minutes / 60 % 100) as u8).into_iter().for_each(&mut push);
            push(b':');
            two((minutes % 60) as u8).into_iter().for_each(&mut push);
        }
    }

    /// Milliseconds since 1970, only where the offset was written and the time is precise to the
    /// minute or better.
    pub fn unix_ms(&self) -> Option<i64> {
        let offset = self.offset_minutes.filter(|_| self.precision >= Precision::Minute)?;
        let minutes = days_since_1970(self) * 1440 + i64::from(self.hour) * 60 + i64::from(self.minute);
        let seconds = (minutes - i64::from(offset)) * 60 + i64::from(self.second);
        let places = [100, 10, 1];
        let fraction = self.fraction.iter().zip(places).map(|(digit, place)| i64::from(digit - b'0') * place);
        Some(seconds * 1000 + fraction.sum::<i64>())
    }
}

fn split_offset(text: &[u8]) -> Option<(&[u8], Option<i16>)> {
    let Some(sign) = text.iter().position(|byte| matches!(byte, b'+' | b'-')) else {
        return Some((text, None));
    };
    let (main, offset) = text.split_at_checked(sign)?;
    let (&sign, digits) = offset.split_first()?;
    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (hours, minutes) = (number(digits.get(..2)?), number(digits.get(2..)?));
    if hours > 14 || minutes > 59 {
        return None;
    }
    let east = i16::try_from(hours * 60 + minutes).ok()?;
    Some((main, Some(if sign == b'-' { -east } else { east })))
}

fn precision(digits: usize, fraction: Option<&[u8]>) -> Option<Precision> {
    match (digits, fraction) {
        (4, None) => Some(Precision::Year),
        (6, None) => Some(Precision::Month),
        (8, None) => Some(Precision::Day),
        (10, None) => Some(Precision::Hour),
        (12, None) => Some(Precision::Minute),
        (14, None) => Some(Precision::Second),
        (14, Some(fraction)) => {
            let right = (1..=4).contains(&fraction.len()) && fraction.iter().all(u8::is_ascii_digit);
            right.then_some(Precision::Fraction)
        }
        _ => None,
    }
}

/// At most four digits.
fn number(digits: &[u8]) -> u16 {
    digits
        .iter()
        .fold(0, |sum: u16, digit| sum.wrapping_mul(10).wrapping_add(u16::from(digit.wrapping_sub(b'0'))))
}

fn to_u8(value: u16) -> Option<u8> {
    u8::try_from(value).ok()
}

fn two(value: u8) -> [u8; 2] {
    [b'0' + value / 10 % 10, b'0' + value % 10]
}

fn is_leap(year: u16) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

/// Howard Hinnant's count of days in the proleptic Gregorian calendar.
fn days_since_1970(date: &DateTime<'_>) -> i64 {
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Appends an instant as HL7 writes it, in UTC and saying so: `20261129174500+0000`.
pub fn write_utc(out: &mut Vec<u8>, unix_ms: u64) {
    let seconds = unix_ms / 1000;
    let (days, of_day) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = (year_of_era + era * 400 + i64::from(month <= 2)).clamp(0, 9999);
    let parts = [year / 100, year % 100, month, day];
    parts.into_iter().for_each(|part| out.extend_from_slice(&two(part as u8)));
    let parts = [of_day / 3600, of_day / 60 % 60, of_day % 60];
    parts.into_iter().for_each(|part| out.extend_from_slice(&two(part as u8)));
    out.extend_from_slice(b"+0000");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn iso(text: &str) -> String {
        let mut out = Vec::new();
        match DateTime::parse(text.as_bytes()) {
            Some(date) => date.write_iso(&mut out),
            None => out.extend_from_slice(b"no date"),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn precision_is_the_length_and_no_zone_is_invented() {
        let cases = [
            ("2024", "2024"),
            ("202402", "2024-02"),
            ("20240229", "2024-02-29"),
            ("2024022913", "2024-02-29T13"),
            ("202402291305", "2024-02-29T13:05"),
            ("20240229130507", "2024-02-29T13:05:07"),
            ("20240229130507.1", "2024-02-29T13:05:07.1"),
            ("20240229130507.1234+0530", "2024-02-29T13:05:07.1234+05:30"),
            ("202402291305-0800", "2024-02-29T13:05-08:00"),
            ("20240229+0000", "2024-02-29+00:00"),
        ];
        for (text, expected) in cases {
            assert_eq!(iso(text), expected, "{text}");
        }
    }

    #[test]
    fn what_does_not_exist_is_no_date() {
        for text in [
            "",
            "0000",
            "20230229",
            "20241301",
            "2024022",
            "20240229256000",
            "2024022913.5",
            "20240229130507.",
            "20240229130507.12345",
            "20240229+1",
            "20240229+9900",
            "2024-02-29",
            "20240229T13",
            "abcd",
        ] {
            assert_eq!(iso(text), "no date", "{text}");
        }
    }

    #[test]
    fn an_instant_needs_an_offset() {
        let ms = |text: &'static str| DateTime::parse(text.as_bytes()).unwrap().unix_ms();
        assert_eq!(ms("19700101000000+0000"), Some(0));
        assert_eq!(ms("20240229130507.25+0100"), Some(1_709_208_307_250));
        assert_eq!(ms("202402291305+0100"), Some(1_709_208_300_000));
        assert_eq!(ms("20240229130507"), None);
        assert_eq!(ms("20240229+0100"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(prop_oneof![5 => b'0'..=b'9', 1 => any::<u8>()], 0..26)) {
            if let Some(date) = DateTime::parse(&text) {
                date.write_iso(&mut Vec::new());
                date.unix_ms();
            }
        }

        #[test]
        fn an_instant_reads_back(seconds in 0_u64..253_402_300_800) {
            let mut written = Vec::new();
            write_utc(&mut written, seconds * 1000);
            let read = DateTime::parse(&written).unwrap().unix_ms();
            prop_assert_eq!(read, Some((seconds * 1000) as i64));
        }
    }
}
