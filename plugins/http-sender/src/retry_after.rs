//! `Retry-After`: seconds, or a date in one of the three forms of RFC 9110.

use std::time::{SystemTime, UNIX_EPOCH};

use portway_sdk::Response;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// In milliseconds from now; none: the server does not say, or nothing that can be read.
pub fn of(response: &Response) -> Option<u32> {
    let value = response.header("retry-after")?.trim();
    let seconds = match value.parse::<u64>() {
        Ok(seconds) => seconds,
        // By the server's own clock where it tells it: ours may differ.
        Err(_) => date(value)?.saturating_sub(response.header("date").and_then(date).unwrap_or_else(now)),
    };
    let millis = seconds.saturating_mul(1000).min(i32::MAX as u64);
    u32::try_from(millis).ok()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// In seconds since 1970.
fn date(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words.as_slice() {
        // `Sun, 06 Nov 1994 08:49:37 GMT` and `Sunday, 06-Nov-94 08:49:37 GMT`
        [_, day, month, year, time, "GMT"] => (day, month, year, time),
        // `Sun Nov  6 08:49:37 1994`
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let day: u64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year = match (year.len(), year.parse::<u64>().ok()?) {
        (2, year) if year < 70 => 2000 + year,
        (2, year) => 1900 + year,
        (4, year) => year,
        _ => return None,
    };
    let mut parts = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if hour > 23 || minute > 59 || second > 60 || year < 1970 {
        return None;
    }
    Some(days(year, month as u64 + 1, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1970 to a civil date, in years that begin in March so that the leap day is the
/// last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use portway_sdk::Body;

    use super::*;

    fn after(headers: &[(&str, &str)]) -> Option<u32> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        of(&Response { status: 429, headers, body: Body::from("") })
    }

    #[test]
    fn seconds_are_seconds() {
        assert_eq!(after(&[("Retry-After", " 120 ")]), Some(120_000));
        assert_eq!(after(&[("retry-after", "99999999999999999999")]), None);
        assert_eq!(after(&[("retry-after", "9999999999")]), Some(i32::MAX as u32));
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[("retry-after", "soon")]), None);
        assert_eq!(after(&[("retry-after", "-5")]), None);
    }

    #[test]
    fn a_date_counts_from_the_servers_clock() {
        let now = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(after(&[("retry-after", date), now]), Some(30_000), "{date}");
        }
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT"), now]), Some(0));
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(0));
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(19_782 * 86_400));
        assert_eq!(date("Fri, 01 Mar 2024 00:00:00 GMT"), Some(19_783 * 86_400));
        assert_eq!(date("Thu, 32 Feb 2024 00:00:00 GMT"), None);
    }
}
