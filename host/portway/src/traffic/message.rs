//! The message that test traffic consists of: a realistic laboratory result, about 1.7 KB.
//!
//! Its control id (MSH-10) is `KEY-SEQUENCE`, its patient id (PID-3.1) the key, and MSH-7 says
//! when it was sent, to the millisecond. All three survive raw delivery and `oru-to-json`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portway_model::Timestamp;
use portway_model::time::civil_date;

/// Which message of which key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub key: String,
    /// From 1.
    pub sequence: u64,
}

/// What can be read back from a delivered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub identity: Identity,
    pub sent_at: Option<Timestamp>,
}

/// Bytes of a message unless more are asked for.
pub const SIZE: usize = 1_700;

/// A message with places for what differs from one to the next.
#[derive(Clone, Debug)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Key,
    Sequence,
    /// When it is sent.
    Time,
    /// A result that changes from message to message, within its reference range.
    Result {
        lowest_tenths: u64,
        span: u64,
    },
}

/// `{k}` key, `{n}` sequence, `{t}` time, `{1}` to `{5}` results. Twelve segments.
const SEGMENTS: [&str; 11] = [
    "MSH|^~\\&|LABCORE|CENTRAL LABORATORY|WARDVIEW|GENERAL HOSPITAL|{t}||ORU^R01^ORU_R01|{k}-{n}|P|2.5.1||||||UNICODE UTF-8",
    "PID|1||{k}^^^GENERAL HOSPITAL^MR||Lindström^Ada^Maria^^^^L||19701231|F|||Harbour Street 17^^Newport^^NP1 2AB^GB^H||^PRN^PH^^44^1633^555017||en|M||{k}01",
    "PV1|1|I|MED3^312^B^GENERAL HOSPITAL^^N^MAIN^3||||1842^Okafor^Chidi^^^Dr^^^STAFF^L|2207^Hansen^Grete^^^Dr^^^STAFF^L||MED||||ADM|A0|||||||||||||||||||||||||||||20261128074500",
    "ORC|RE|ORD{n}^WARDVIEW|{k}-{n}^LABCORE||CM||||20261128080000|NURSE7^Meyer^Eva||1842^Okafor^Chidi^^^Dr",
    "OBR|1|ORD{n}^WARDVIEW|{k}-{n}^LABCORE|24323-8^Comprehensive metabolic panel^LN|||20261128081500|||PHLEB4^Ruiz^Ana|||fasting|20261128083000|SER^Serum^HL70487|1842^Okafor^Chidi^^^Dr||||||{t}||CH|F",
    "OBX|1|NM|2345-7^Glucose^LN||{1}|mg/dL^milligram per deciliter^UCUM|70-99|N|||F|||20261128081500||TECH2^Novak^Petr",
    "OBX|2|NM|2160-0^Creatinine^LN||{2}|umol/L^micromole per liter^UCUM|45-84|N|||F|||20261128081500||TECH2^Novak^Petr",
    "OBX|3|NM|2823-3^Potassium^LN||{3}|mmol/L^millimole per liter^UCUM|3.5-5.1|N|||F|||20261128081500||TECH2^Novak^Petr",
    "OBX|4|NM|2951-2^Sodium^LN||{4}|mmol/L^millimole per liter^UCUM|136-145|N|||F|||20261128081500||TECH2^Novak^Petr",
    "OBX|5|NM|1742-6^Alanine aminotransferase^LN||{5}|U/L^unit per liter^UCUM|7-56|N|||F|||20261128081500||TECH2^Novak^Petr",
    "OBX|6|ST|30954-2^Interpretation^LN||Within reference limits \\T\\ unchanged \\F\\ see comment||||||F|||20261128081500||TECH2^Novak^Petr",
];

/// The reference ranges of `{1}` to `{5}`: the lowest result and how many there are, in tenths.
const RANGES: [(&str, u64, u64); 5] =
    [("{1}", 700, 290), ("{2}", 450, 390), ("{3}", 35, 16), ("{4}", 1_360, 90), ("{5}", 70, 490)];

const FILLER: &str = "Sample received in good condition and measured twice; the second result is reported. ";

impl Template {
    /// A message of about this many bytes; never below what its segments need.
    pub fn new(size: usize) -> Template {
        let mut text = SEGMENTS.join("\r");
        text.push_str("\rNTE|1|L|");
        // Places are filled with about as many bytes as they are written with, but for the time.
        let wanted = size.saturating_sub(text.len() + 40);
        text.extend(FILLER.chars().cycle().take(wanted.max(20)));
        text.push('\r');
        Template { parts: split(&text) }
    }

    /// Appends one message.
    pub fn write(&self, into: &mut Vec<u8>, key: &str, sequence: u64, now: Timestamp) {
        let number = sequence.to_string();
        let time = hl7_time(now);
        let mut results = sequence;
        for part in &self.parts {
            match part {
                Part::Text(text) => into.extend_from_slice(text.as_bytes()),
                Part::Key => into.extend_from_slice(key.as_bytes()),
                Part::Sequence => into.extend_from_slice(number.as_bytes()),
                Part::Time => into.extend_from_slice(time.as_bytes()),
                Part::Result { lowest_tenths, span } => {
                    results = results.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let tenths = lowest_tenths + (results >> 33) % span;
                    into.extend_from_slice(format!("{}.{}", tenths / 10, tenths % 10).as_bytes());
                }
            }
        }
    }

    /// One message, for callers that are in no hurry.
    pub fn message(&self, key: &str, sequence: u64) -> Vec<u8> {
        let mut message = Vec::new();
        self.write(&mut message, key, sequence, now());
        message
    }
}

fn split(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, place) = rest.split_at(at);
        parts.push(Part::Text(before.to_owned()));
        let name = place.get(..3).unwrap_or_default();
        let range = RANGES.iter().find(|(written, ..)| *written == name);
        parts.extend(match (name, range) {
            ("{k}", _) => Some(Part::Key),
            ("{n}", _) => Some(Part::Sequence),
            ("{t}", _) => Some(Part::Time),
            (_, Some((_, lowest_tenths, span))) => {
                Some(Part::Result { lowest_tenths: *lowest_tenths, span: *span })
            }
            (_, None) => None,
        });
        rest = place.get(3..).unwrap_or_default();
    }
    parts.push(Part::Text(rest.to_owned()));
    parts
}

/// What a delivered message says of itself, raw or as `oru-to-json` writes it.
pub fn read(body: &[u8]) -> Option<Seen> {
    let body = body.trim_ascii_start();
    match body.first()? {
        b'{' | b'[' => read_json(body),
        _ => read_hl7(body),
    }
}

fn read_hl7(body: &[u8]) -> Option<Seen> {
    let header = body.split(|byte| *byte == b'\r' || *byte == b'\n').next()?;
    let rest = header.strip_prefix(b"MSH")?;
    let separator = *rest.first()?;
    // MSH-1 is the separator itself, so the field after the first separator is MSH-2.
    let mut fields = rest.get(1..)?.split(|byte| *byte == separator);
    let sent_at = std::str::from_utf8(fields.nth(5)?).ok()?;
    let control_id = std::str::from_utf8(fields.nth(2)?).ok()?;
    Some(Seen { identity: identity(control_id)?, sent_at: parse_hl7_time(sent_at) })
}

/// The first string of a JSON document that is one of our control ids, and the first that is a
/// time of ours. Searched by value: it does not depend on the shape of the document.
fn read_json(body: &[u8]) -> Option<Seen> {
    let (mut found, mut sent_at) = (None, None);
    for text in (Strings { rest: body }) {
        found = found.or_else(|| identity(text));
        sent_at = sent_at.or_else(|| parse_any_time(text));
        if found.is_some() && sent_at.is_some() {
            break;
        }
    }
    Some(Seen { identity: found?, sent_at })
}

/// The strings of a JSON text, names included, without their escapes undone: ours have none.
struct Strings<'b> {
    rest: &'b [u8],
}

impl<'b> Iterator for Strings<'b> {
    type Item = &'b str;

    fn next(&mut self) -> Option<&'b str> {
        loop {
            let start = self.rest.iter().position(|byte| *byte == b'"')? + 1;
            let inside = self.rest.get(start..)?;
            let mut escaped = false;
            let end = inside.iter().position(|byte| {
                let ends = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            })?;
            let (text, rest) = inside.split_at_checked(end)?;
            self.rest = rest.get(1..)?;
            if let Ok(text) = std::str::from_utf8(text) {
                return Some(text);
            }
        }
    }
}

/// Every key of ours begins with this; nothing else in the message does.
pub const KEY_PREFIX: &str = "PW";

/// Reads `KEY-SEQUENCE`.
fn identity(control_id: &str) -> Option<Identity> {
    let (key, sequence) = control_id.rsplit_once('-')?;
    let ours =
        key.starts_with(KEY_PREFIX) && !sequence.is_empty() && sequence.bytes().all(|b| b.is_ascii_digit());
    ours.then(|| Some(Identity { key: key.to_owned(), sequence: sequence.parse().ok()? }))?
}

/// A prefix of keys that no other run of this machine has: dedupe keys of an earlier run would
/// make ours duplicates.
pub fn new_run() -> String {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let mut number = now().0 ^ (u64::from(rand::random::<u16>()) << 48);
    let mut text = String::from(KEY_PREFIX);
    while number > 0 {
        text.extend(DIGITS.get((number % 32) as usize).map(|digit| char::from(*digit)));
        number /= 32;
    }
    text
}

/// Key number `at` of a run.
pub fn key(run: &str, at: usize) -> String {
    format!("{run}P{at}")
}

/// The wall clock.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp(0) + since
}

/// `20261130085959.123+0000`
fn hl7_time(at: Timestamp) -> String {
    let (year, month, day) = civil_date(at.0 / 86_400_000);
    let of_day = at.0 % 86_400_000;
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}.{:03}+0000", of_day % 1_000)
}

/// Exactly what [`hl7_time`] writes.
fn parse_hl7_time(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix("+0000")?;
    let (seconds, millis) = text.split_once('.')?;
    if seconds.len() != 14
        || millis.len() != 3
        || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    let part = |from: usize, to: usize| seconds.get(from..to).and_then(|digits| digits.parse::<u64>().ok());
    let date = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let clock =
        (part(8, 10)? * 3_600 + part(10, 12)? * 60 + part(12, 14)?) * 1_000 + millis.parse::<u64>().ok()?;
    // A message under way is young: today or one of the days before it.
    let today = now().0 / 86_400_000 + 1;
    let day = (today.saturating_sub(8)..=today).rev().find(|day| civil_date(*day) == date)?;
    Some(Timestamp(day * 86_400_000 + clock))
}

/// A time of ours as sent, or as RFC 3339.
fn parse_any_time(text: &str) -> Option<Timestamp> {
    let plain: String = match text.as_bytes().get(10) {
        Some(b'T') => {
            let text = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
            text.chars()
                .filter(|character| !matches!(character, '-' | ':' | 'T'))
                .chain("+0000".chars())
                .collect()
        }
        _ => text.to_owned(),
    };
    parse_hl7_time(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(size: usize) -> (Vec<u8>, Timestamp) {
        let (mut message, at) = (Vec::new(), now());
        Template::new(size).write(&mut message, "PW7P3", 12, at);
        (message, at)
    }

    #[test]
    fn a_message_has_twelve_segments_and_the_size_asked_for() {
        for size in [SIZE, 20_000, 2_000_000] {
            let (message, _) = sample(size);
            let message = String::from_utf8(message).unwrap();
            assert!(message.len().abs_diff(size) < 300, "{size}: {}", message.len());
            let segments: Vec<_> = message.split_terminator('\r').collect();
            assert_eq!(segments.len(), 12);
            assert_eq!(segments[0].split('|').nth(9), Some("PW7P3-12"));
            assert!(segments[1].starts_with("PID|1||PW7P3^^^"));
            assert!(!message.contains('{') && !message.contains('\n'));
            let potassium: f64 = segments[7].split('|').nth(5).unwrap().parse().unwrap();
            assert!((3.5..=5.1).contains(&potassium), "{potassium}");
        }
    }

    #[test]
    fn a_message_is_recognised_raw_and_in_json() {
        let (message, at) = sample(SIZE);
        let wanted = Seen { identity: Identity { key: "PW7P3".into(), sequence: 12 }, sent_at: Some(at) };
        assert_eq!(read(&message), Some(wanted.clone()));
        let time = hl7_time(at);
        let json =
            format!("{{\"header\": {{\"text\": \"a \\\" b\", \"time\": \"{time}\", \"id\": \"PW7P3-12\"}}}}");
        assert_eq!(read(json.as_bytes()), Some(wanted.clone()));
        for time in [at.to_string(), at.to_string().replace('Z', "+00:00")] {
            let json = format!("{{\"id\": \"PW7P3-12\", \"time\": \"{time}\"}}");
            assert_eq!(read(json.as_bytes()), Some(wanted.clone()));
        }
    }

    #[test]
    fn foreign_bytes_are_not_recognised() {
        for body in [
            &b""[..],
            b"MSH",
            b"MSH|^~\\&|a",
            b"{\"id\": \"X-1\"}",
            b"{\"id\": \"PW-",
            b"\xff\xfe",
            b"{\"PW-x\"}",
        ] {
            assert_eq!(read(body), None);
        }
    }

    #[test]
    fn runs_do_not_share_keys() {
        let runs: std::collections::BTreeSet<_> = (0..100).map(|_| new_run()).collect();
        assert!(runs.len() > 95 && runs.iter().all(|run| run.starts_with(KEY_PREFIX) && !run.contains('-')));
    }
}
