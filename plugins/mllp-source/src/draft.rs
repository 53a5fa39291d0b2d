//! What is told about a message beside its bytes: attributes, keys, the time it happened.
//!
//! Texts are as written in the message, escapes included, with bytes beyond ASCII read under the
//! character set of MSH-18, and one character a byte where that fails. They name and sort messages;
//! who needs the exact bytes has the message.

use portway_hl7::{Charset, DateTime, Field, Message, Path, Split, charset::latin1};
use portway_sdk::{Attributes, text};

use crate::{Settings, notice::Said, ticket::Header};

/// Bytes in a key, by the contract.
const KEY_BYTES_MAX: usize = 256;
/// Bytes in an attribute's value here; the contract has room for 4 KiB.
const VALUE_BYTES_MAX: usize = 1024;

/// What a draft says of its message.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub key: Option<String>,
    pub dedupe: Option<String>,
    pub occurred_ms: Option<u64>,
    pub attributes: Attributes,
}

/// The start of a message, and whether that is all of it.
pub(crate) struct Head<'a> {
    pub message: Message<'a>,
    pub is_whole: bool,
    pub bytes_max: usize,
}

impl About {
    pub(crate) fn of(head: &Head<'_>, header: &Header<'_>, settings: &Settings, said: &mut Said) -> About {
        let delimiters = *head.message.delimiters();
        let charset = Charset::of_field(&Field::new(header.repeated.charset, delimiters));
        let mut find = |path: &Option<Path>| key(path.as_ref()?, head, charset, said);
        About {
            key: find(&settings.key),
            dedupe: find(&settings.dedupe),
            occurred_ms: occurred_ms(&head.message),
            attributes: if settings.attributes {
                attributes(header, delimiters.component, charset)
            } else {
                Attributes::new()
            },
        }
    }
}

fn key(path: &Path, head: &Head<'_>, charset: Charset, said: &mut Said) -> Option<String> {
    let Some(bytes) = head.message.get(path) else {
        if !head.is_whole {
            said.key_out_of_reach(path, head.bytes_max);
        }
        return None;
    };
    if bytes.is_empty() || bytes == b"\"\"" {
        return None;
    }
    let mut text = text_of(bytes, charset);
    if text.len() > KEY_BYTES_MAX {
        // The rest still tells keys apart.
        let digest = fnv1a(text.as_bytes());
        text.truncate(text.floor_char_boundary(KEY_BYTES_MAX - 33));
        text.push_str(&format!("#{digest:032x}"));
    }
    Some(text)
}

fn fnv1a(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// MSH-7, where it says which instant it means.
fn occurred_ms(message: &Message<'_>) -> Option<u64> {
    let written = message.header().field(7)?.component(1)?.raw();
    u64::try_from(DateTime::parse(written)?.unix_ms()?).ok()
}

fn attributes(header: &Header<'_>, component: Option<u8>, charset: Charset) -> Attributes {
    let first = |field| Split::new(field, component).next().unwrap_or(&[]);
    let repeated = &header.repeated;
    let mut pairs = Vec::with_capacity(6);
    let mut push = |name: &str, value: &[u8]| {
        if !value.is_empty() {
            let mut text = text_of(value, charset);
            text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
            pairs.push((name.to_owned(), text));
        }
    };
    push("hl7.type", &message_type(repeated.message_type, component));
    push("hl7.control-id", repeated.control_id);
    push("hl7.sender", first(repeated.sending_application));
    push("hl7.facility", first(repeated.sending_facility));
    push("hl7.version", first(repeated.version));
    push("hl7.charset", repeated.charset);
    Attributes::from(pairs)
}

/// Code and event, joined as everybody writes them, whatever the message's own separator is.
fn message_type(field: &[u8], component: Option<u8>) -> Vec<u8> {
    let mut parts = Split::new(field, component);
    let mut written = parts.next().unwrap_or(&[]).to_vec();
    if let Some(event) = parts.next().filter(|event| !event.is_empty()) {
        written.push(b'^');
        written.extend_from_slice(event);
    }
    written
}

fn text_of(bytes: &[u8], charset: Charset) -> String {
    if let Ok(text) = charset.decode(bytes) {
        return text.into_owned();
    }
    if let Charset::Named(name) = charset
        && let Ok(text) = text::decode(bytes, name)
    {
        return text;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => latin1(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(bytes: &[u8], settings: &str) -> About {
        let message = Message::parse(bytes).unwrap();
        let head = Head { message, is_whole: true, bytes_max: 100 };
        let settings = portway_sdk::parse_settings(settings).unwrap();
        About::of(&head, &Header::of(&message.header()), &settings, &mut Said::default())
    }

    #[test]
    fn a_message_is_told_by_its_header() {
        let about = about(
            b"MSH#*~\\&#LAB*1#H*2#EHR##20240229130507+0100##ORU*R01*ORU_R01#17#P#2.5*DE######8859/1\r",
            "{}",
        );
        let told: Vec<String> =
            about.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            told,
            [
                "hl7.type=ORU^R01",
                "hl7.control-id=17",
                "hl7.sender=LAB",
                "hl7.facility=H",
                "hl7.version=2.5",
                "hl7.charset=8859/1"
            ]
        );
        assert_eq!(about.occurred_ms, Some(1_709_208_307_000));
    }

    #[test]
    fn keys_come_from_their_paths_and_null_is_none() {
        let bytes = b"MSH|^~\\&|||||20240229||A|9|P|2.5||||||8859/1\rPID|1||M\xFCller^x||\"\"\r";
        let found = about(bytes, r#"{"key":"PID-3.1","dedupe":"MSH-10","attributes":false}"#);
        assert_eq!((found.key.as_deref(), found.dedupe.as_deref()), (Some("Müller"), Some("9")));
        assert!(found.attributes.is_empty());
        assert_eq!(found.occurred_ms, None);
        let none = about(bytes, r#"{"key":"PID-5","dedupe":"PID-2"}"#);
        assert_eq!((none.key, none.dedupe), (None, None));
    }

    #[test]
    fn a_long_key_is_cut_but_still_tells_apart() {
        let key = |last: &str| {
            let bytes = format!("MSH|^~\\&|{}{last}", "ü".repeat(300));
            about(bytes.as_bytes(), r#"{"key":"MSH-3"}"#).key.unwrap()
        };
        assert!(key("a").len() <= KEY_BYTES_MAX);
        assert_ne!(key("a"), key("b"));
        assert_eq!(key("a"), key("a"));
    }
}
