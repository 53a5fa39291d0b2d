//! Durations as users write them: a whole number and a unit.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `"500ms"`, `"30s"`, `"10m"`, `"2h"` or `"30d"`.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(millis).map(Duration::from_millis)
}

/// In the largest unit that leaves no rest.
pub(crate) fn show(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let unit = UNITS.into_iter().find(|(_, size)| millis.is_multiple_of(u128::from(*size)));
    let (name, size) = unit.unwrap_or(("ms", 1));
    format!("{}{name}", millis / u128::from(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_show_the_same() {
        for text in ["0s", "500ms", "30s", "10m", "2h", "30d", "90s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
        assert_eq!(parse("60s"), parse("1m"));
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in
            ["", "s", "30", "1.5s", "-1s", "30 s", "30S", "99999999999999999999d", "9999999999999999d"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
