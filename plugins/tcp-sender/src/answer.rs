//! What an answer says of the message that was sent.

use portway_framing::shown;
use portway_sdk::{Answer, Failure, Problem};
use regex_lite::{Regex, RegexBuilder};

use crate::{PatternSettings, settings::unfit};

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an answer that are shown to people.
const SHOWN_BYTES_MAX: usize = 200;

/// Which answers mean what.
#[derive(Debug)]
pub(crate) struct Meaning {
    pub success: Pattern,
    pub retry: Option<Pattern>,
}

/// What an answer is compared with.
#[derive(Debug)]
pub(crate) enum Pattern {
    Equals(Vec<u8>),
    BeginsWith(Vec<u8>),
    Matches(Regex),
}

impl Pattern {
    /// `name` is the setting's, for a failure.
    pub(crate) fn new(settings: &PatternSettings, name: &str) -> Result<Pattern, Failure> {
        match (&settings.equals, &settings.begins_with, &settings.matches) {
            (Some(bytes), None, None) => Ok(Pattern::Equals(bytes.0.clone())),
            (None, Some(bytes), None) if bytes.0.is_empty() => {
                Err(unfit(name, "every answer begins with nothing"))
            }
            (None, Some(bytes), None) => Ok(Pattern::BeginsWith(bytes.0.clone())),
            (None, None, Some(pattern)) => {
                let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
                let unusable = |error| unfit(name, &format!("`{pattern}` is no usable pattern: {error}"));
                built.map(Pattern::Matches).map_err(unusable)
            }
            _ => Err(unfit(name, "write one of `equals`, `begins_with` and `matches`")),
        }
    }

    fn holds(&self, answer: &[u8]) -> bool {
        match self {
            Pattern::Equals(bytes) => answer == bytes,
            Pattern::BeginsWith(bytes) => answer.starts_with(bytes),
            Pattern::Matches(pattern) => match std::str::from_utf8(answer) {
                Ok(text) => pattern.is_match(text),
                // One character a byte.
                Err(_) => pattern.is_match(&answer.iter().map(|byte| char::from(*byte)).collect::<String>()),
            },
        }
    }
}

impl Meaning {
    /// What became of the message.
    pub(crate) fn judge(&self, answer: &[u8]) -> Result<Answer, Problem> {
        let said = shown(answer, SHOWN_BYTES_MAX);
        if self.success.holds(answer) {
            return Ok(Answer::new("answered", said));
        }
        if self.retry.as_ref().is_some_and(|retry| retry.holds(answer)) {
            return Err(Problem::retry("not-now", format!("the peer answered `{said}`")));
        }
        Err(Problem::quarantine("rejected", format!("the peer answered `{said}`, which is no success")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(json: &str) -> Result<Pattern, String> {
        let settings = portway_sdk::parse_settings(json).map_err(|failure| failure.text)?;
        Pattern::new(&settings, "answer.success").map_err(|failure| failure.text)
    }

    #[test]
    fn an_answer_is_compared_as_a_whole_by_its_beginning_or_with_a_pattern() {
        let table: [(&str, &[u8], bool); 8] = [
            (r#"{"equals":"\\x06"}"#, b"\x06", true),
            (r#"{"equals":"\\x06"}"#, b"\x06\r", false),
            (r#"{"equals":""}"#, b"", true),
            (r#"{"begins_with":"OK"}"#, b"OK 17", true),
            (r#"{"begins_with":"OK"}"#, b"NOT OK", false),
            (r#"{"matches":"^(OK|ACK)\\b"}"#, b"ACK 7", true),
            (r#"{"matches":"^.K$"}"#, b"\xFCK", true),
            (r#"{"matches":"^OK$"}"#, b"OKAY", false),
        ];
        for (json, answer, expected) in table {
            assert_eq!(pattern(json).unwrap().holds(answer), expected, "{json} {answer:?}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_or_every_answers_is_refused() {
        assert!(pattern("{}").unwrap_err().contains("write one of"));
        assert!(pattern(r#"{"equals":"a","matches":"b"}"#).unwrap_err().contains("write one of"));
        assert!(pattern(r#"{"begins_with":""}"#).unwrap_err().contains("every answer"));
        assert!(pattern(r#"{"matches":"("}"#).unwrap_err().contains("no usable pattern"));
    }

    #[test]
    fn a_long_answer_is_shown_in_part() {
        let meaning = Meaning { success: Pattern::Equals(b"A".to_vec()), retry: None };
        let Err(Problem::Quarantine(failure)) = meaning.judge(&[b'x'; 5000]) else { panic!("quarantined") };
        assert!(failure.text.len() < 300);
    }
}
