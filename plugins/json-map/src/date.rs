//! Dates from one form to another. Nothing is moved to another time zone.
//!
//! Forms are those of the `time` crate, such as `[year]-[month]-[day] [hour]:[minute]`. Whether one can
//! be made of the other is found out once, with a date that shows it.

use time::format_description::{OwnedFormatItem, parse_owned};
use time::{Date, OffsetDateTime, PrimitiveDateTime};

/// What a form says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    DateTimeOffset,
    DateTime,
    Date,
}

/// How a date is read and written.
#[derive(Debug)]
pub(crate) struct Reformat {
    from: OwnedFormatItem,
    to: OwnedFormatItem,
    holds: Holds,
}

impl Reformat {
    /// The two forms, or why the one cannot become the other.
    pub(crate) fn new(from: &str, to: &str) -> Result<Reformat, String> {
        let read = |form: &str| parse_owned::<2>(form).map_err(|error| format!("`{form}`: {error}"));
        let (from_form, to_form) = (read(from)?, read(to)?);
        let sample = OffsetDateTime::UNIX_EPOCH;
        let shown = sample.format(&from_form).map_err(|error| format!("`{from}`: {error}"))?;
        let all = [Holds::DateTimeOffset, Holds::DateTime, Holds::Date];
        let holds = all.into_iter().find(|holds| reformat(&shown, &from_form, *holds, &from_form).is_some());
        let holds = holds.ok_or_else(|| format!("`{from}` does not say year, month and day"))?;
        let reformat_both = Reformat { from: from_form, to: to_form, holds };
        match reformat_both.apply(&shown) {
            Some(_) => Ok(reformat_both),
            None => Err(format!("`{to}` says more than `{from}`")),
        }
    }

    /// None: the text is no such date.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        reformat(text, &self.from, self.holds, &self.to)
    }
}

fn reformat(text: &str, from: &OwnedFormatItem, holds: Holds, to: &OwnedFormatItem) -> Option<String> {
    match holds {
        Holds::DateTimeOffset => OffsetDateTime::parse(text, from).ok()?.format(to).ok(),
        Holds::DateTime => PrimitiveDateTime::parse(text, from).ok()?.format(to).ok(),
        Holds::Date => Date::parse(text, from).ok()?.format(to).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reformatted(from: &str, to: &str, text: &str) -> Result<String, String> {
        Reformat::new(from, to)?.apply(text).ok_or_else(|| "no such date".into())
    }

    #[test]
    fn dates_change_their_form() {
        let cases = [
            ("[year][month][day]", "[year]-[month]-[day]", "20240229", Ok("2024-02-29")),
            ("[day].[month].[year]", "[year][month][day]", "01.02.1970", Ok("19700201")),
            (
                "[year][month][day][hour][minute]",
                "[year]-[month]-[day]T[hour]:[minute]",
                "202402291330",
                Ok("2024-02-29T13:30"),
            ),
            (
                "[year]-[month]-[day]T[hour]:[minute]:[second][offset_hour sign:mandatory]:[offset_minute]",
                "[day].[month].[year] [hour]:[minute]",
                "2024-02-29T23:30:00+02:00",
                Ok("29.02.2024 23:30"),
            ),
            ("[year][month][day]", "[year]-[month]-[day]", "20230229", Err("no such date")),
            ("[year][month][day]", "[year]-[month]-[day]", "2024022", Err("no such date")),
        ];
        for (from, to, text, expected) in cases {
            assert_eq!(
                reformatted(from, to, text).as_deref(),
                expected.map_err(str::to_owned).as_ref().map(|s| *s),
                "{text}"
            );
        }
    }

    #[test]
    fn a_form_that_cannot_work_is_refused_before() {
        let refused = |from, to| Reformat::new(from, to).map(|_| ()).unwrap_err();
        assert!(refused("[yaer]", "[year]").starts_with("`[yaer]`: "));
        assert!(refused("[hour]:[minute]", "[hour]").contains("does not say year, month and day"));
        let text = refused("[year][month][day]", "[year]-[month]-[day] [hour]");
        assert_eq!(text, "`[year]-[month]-[day] [hour]` says more than `[year][month][day]`");
    }
}
