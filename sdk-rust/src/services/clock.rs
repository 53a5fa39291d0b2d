//! The wall clock. It may be set back or forward at any time; in tests it stands where
//! `testing::set_time` put it.

use crate::host;

/// Milliseconds since 1970, in UTC.
pub fn now_ms() -> u64 {
    host::clock_now_ms()
}

/// An instant as RFC 3339 writes it: `2026-02-28T23:59:59.123Z`.
pub fn rfc3339(ms: u64) -> String {
    let (date, seconds) = (date(ms), ms / 1000 % 86_400);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// `2026-02-28`, UTC.
pub(crate) fn date(ms: u64) -> String {
    // Days to a civil date, in years that begin in March so that the leap day is the last.
    let days = ms / 86_400_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn dates_are_right_around_leap_days() {
        let days =
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (19_782, "2024-02-29")];
        for (day, expected) in days {
            assert_eq!(date(day * 86_400_000), expected);
        }
        assert_eq!(rfc3339(1_772_323_199_012), "2026-02-28T23:59:59.012Z");
    }

    #[test]
    fn a_test_says_what_time_it_is() {
        testing::set_time(5);
        assert_eq!(now_ms(), 5);
        testing::reset();
        assert!(now_ms() > 1_700_000_000_000);
    }
}
