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
    /// All of these as they were written, and the least where they were not.
    digits: [u8; 14],
    /// The digits behind the point, one to four.
    pub fraction: &'a [u8],
    /// Minutes east of UTC, where written.
    pub offset_minutes: Option<i16>,
    pub precision: Precision,
}

const LEAST: [u8; 14] = *b"00000101000000";

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
        // What is left out holds its least value.
        let mut filled = LEAST;
        match text.len() {
            14 => filled = *text.first_chunk()?,
            12 => *filled.first_chunk_mut::<12>()? = *text.first_chunk()?,
            8 => *filled.first_chunk_mut::<8>()? = *text.first_chunk()?,
            _ => return DateTime::parse_parts(text),
        }
        if are_digits(&filled) {
            return DateTime::of_digits(filled, precision(text.len(), None)?, &[], None);
        }
        DateTime::parse_parts(text)
    }

    /// The same for every length and with everything that may follow.
    fn parse_parts(text: &'a [u8]) -> Option<DateTime<'a>> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = text.split_at_checked(digits)?;
        let (fraction, rest) = match rest.split_first() {
            Some((b'.', rest)) => {
                let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (fraction, rest) = rest.split_at_checked(length)?;
                (Some(fraction), rest)
            }
            _ => (None, rest),
        };
        let precision = precision(digits.len(), fraction)?;
        let offset_minutes = if rest.is_empty() { None } else { Some(offset(rest)?) };
        let mut filled = LEAST;
        filled.get_mut(..digits.len())?.copy_from_slice(digits);
        DateTime::of_digits(filled, precision, fraction.unwrap_or(&[]), offset_minutes)
    }

    fn of_digits(
        digits: [u8; 14],
        precision: Precision,
        fraction: &'a [u8],
        offset_minutes: Option<i16>,
    ) -> Option<DateTime<'a>> {
        let [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, i1, i2, s1, s2] =
            digits.map(|digit| digit.wrapping_sub(b'0'));
        let date = DateTime {
            year: u16::from(y1 * 10 + y2) * 100 + u16::from(y3 * 10 + y4),
            month: m1 * 10 + m2,
            day: d1 * 10 + d2,
            hour: h1 * 10 + h2,
            minute: i1 * 10 + i2,
            second: s1 * 10 + s2,
            digits,
            fraction,
            offset_minutes,
            precision,
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
        let (bytes, count) = self.iso();
        out.extend_from_slice(bytes.get(..count).unwrap_or(&bytes));
    }

    /// The same as bytes, of which so many count.
    pub fn iso(&self) -> ([u8; 32], usize) {
        let [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, i1, i2, s1, s2] = self.digits;
        let mut bytes = [
            y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', i1, i2, b':', s1, s2, b'.', 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let mut count = match self.precision {
            Precision::Year => 4,
            Precision::Month => 7,
            Precision::Day => 10,
            Precision::Hour => 13,
            Precision::Minute => 16,
            Precision::Second => 19,
            Precision::Fraction => 20,
        };
        if self.precision != Precision::Fraction && self.offset_minutes.is_none() {
            return (bytes, count);
        }
        let mut push = |byte: u8| {
            if let Some(slot) = bytes.get_mut(count) {
                *slot = byte;
                count += 1;
            }
        };
        if self.precision == Precision::Fraction {
            self.fraction.iter().for_each(|digit| push(*digit));
        }
        if let Some(offset) = self.offset_minutes {
            let minutes = offset.unsigned_abs();
            push(if offset < 0 { b'-' } else { b'+' });
            two((minutes / 60 % 100) as u8).into_iter().for_each(&mut push);
            push(b':');
            two((minutes % 60) as u8).into_iter().for_each(&mut push);
        }
        (bytes, count)
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

fn are_digits(text: &[u8; 14]) -> bool {
    let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) else { return false };
    [first, last].into_iter().all(|word| {
        // A digit without its upper half is at most nine.
        let values = u64::from_le_bytes(*word) ^ 0x3030_3030_3030_3030;
        (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080 == 0
    })
}

/// `+0530` and the like, in minutes.
fn offset(text: &[u8]) -> Option<i16> {
    let &[sign, h1, h2, m1, m2] = text else { return None };
    let digits = [h1, h2, m1, m2];
    if !matches!(sign, b'+' | b'-') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let [h1, h2, m1, m2] = digits.map(|digit| i16::from(digit - b'0'));
    let (hours, minutes) = (h1 * 10 + h2, m1 * 10 + m2);
    if hours > 14 || minutes > 59 {
        return None;
    }
    let east = hours * 60 + minutes;
    Some(if sign == b'-' { -east } else { east })
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
