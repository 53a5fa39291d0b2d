//! Points in time as the API writes them: RFC 3339 in UTC with milliseconds.

use std::borrow::Cow;
use std::fmt;

use portway_model::Timestamp;
use portway_model::time::civil_date;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// `2026-11-30T08:59:59.999Z`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Time {
        Time(timestamp)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl schemars::JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A point in time in UTC with milliseconds, such as `2026-11-30T08:59:59.999Z`."
        })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        parse(&text)
            .map(Time)
            .ok_or_else(|| de::Error::custom("not a time such as `2026-11-30T08:59:59.999Z`"))
    }
}

/// Exactly what `Display` writes.
fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (days_text, millis_text) = time.split_once('.')?;
    let mut date = date.split('-').map(|part| part.parse::<u64>().ok());
    let mut clock = days_text.split(':').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let millis = millis_text.parse::<u64>().ok()?;
    if date.next().is_some() || clock.next().is_some() || !(1970..=9999).contains(&year) {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    (hour < 24 && minute < 60 && second < 60 && millis < 1_000)
        .then(|| Timestamp(days * 86_400_000 + hour * 3_600_000 + minute * 60_000 + second * 1_000 + millis))
}

/// The inverse of `civil_date`; none if there is no such day. Counts from 1 March of the year 0.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year_from_march, month_from_march) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    (civil_date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_equal() {
        let days = (0..2_932_896).step_by(37);
        for millis in days.map(|day| day * 86_400_000 + day % 86_400_000).chain([0, 1_796_029_199_999]) {
            let time = Time(Timestamp(millis));
            let text = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_an_error() {
        for text in
            ["", "2026", "2026-02-30T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "9-9-9T1:1:1.1Z", "TZ"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
