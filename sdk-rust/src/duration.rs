//! Durations in settings, written as everywhere in a project: `500ms`, `30s`, `5m`, `1h`, `1d`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// For `#[serde(deserialize_with = "portway_sdk::duration")]`.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| {
        de::Error::custom(format!("`{text}` is no duration; write `500ms`, `30s`, `5m`, `1h` or `1d`"))
    })
}

fn parse(text: &str) -> Option<Duration> {
    let split = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().ok()?;
    let millis_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis_per_unit).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_are_a_duration() {
        assert_eq!(parse("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("2m"), Some(Duration::from_secs(120)));
        assert_eq!(parse("1d"), Some(Duration::from_secs(86_400)));
        for text in ["", "s", "5", "-5s", "5 s", "1.5s", "99999999999999999999d", "5w"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
