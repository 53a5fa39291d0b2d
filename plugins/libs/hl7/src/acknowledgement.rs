//! Acknowledgements, written under the sender's own delimiters.
//!
//! What is repeated from the message (control id, applications, version, …) is copied byte for byte:
//! it was written under these delimiters and is right as it stands. Only our own sentence is escaped.

use crate::{Delimiters, Message, Segment, datetime::write_utc, escape::escape_into, search::find_byte};

/// What an answer to one message says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acknowledgement<'a> {
    /// The field separator and MSH-2 of the sender, in this order; empty: the standard ones.
    pub delimiters: &'a [u8],
    /// MSH-3 to MSH-6 as received; they change places.
    pub sending_application: &'a [u8],
    pub sending_facility: &'a [u8],
    pub receiving_application: &'a [u8],
    pub receiving_facility: &'a [u8],
    /// MSH-9 as received.
    pub message_type: &'a [u8],
    /// MSH-10 as received, which becomes MSA-2.
    pub control_id: &'a [u8],
    /// MSH-11 as received.
    pub processing_id: &'a [u8],
    /// MSH-12 as received.
    pub version: &'a [u8],
    /// MSH-18 as received.
    pub charset: &'a [u8],
    /// MSA-1: AA, AE, AR, CA, CE or CR.
    pub code: &'a str,
    /// Our own control id.
    pub own_id: &'a str,
    pub now_ms: u64,
    /// MSA-3, and ERR where the version has it.
    pub error: Option<ErrorDetail<'a>>,
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorDetail<'a> {
    /// A code of table 0357 with its text, such as `207` and `Application internal error`.
    pub condition: (&'a str, &'a str),
    /// One ASCII sentence.
    pub text: &'a str,
}

impl<'a> Acknowledgement<'a> {
    /// Takes from a header what an answer repeats.
    pub fn to(message: &Message<'a>) -> Acknowledgement<'a> {
        Acknowledgement::to_header(&message.header())
    }

    /// As [`Acknowledgement::to`], from the header segment.
    pub fn to_header(header: &Segment<'a>) -> Acknowledgement<'a> {
        let mut answer = Acknowledgement {
            delimiters: header.raw().get(3..).map_or(&[], delimiters_as_written),
            ..Acknowledgement::default()
        };
        for (number, field) in header.fields() {
            match number {
                3 => answer.sending_application = field.raw(),
                4 => answer.sending_facility = field.raw(),
                5 => answer.receiving_application = field.raw(),
                6 => answer.receiving_facility = field.raw(),
                9 => answer.message_type = field.raw(),
                10 => answer.control_id = field.raw(),
                11 => answer.processing_id = field.raw(),
                12 => answer.version = field.raw(),
                18 => answer.charset = field.raw(),
                _ => {}
            }
        }
        answer
    }

    /// Appends the message: MSH, MSA and, for an error from version 2.5 on, ERR.
    pub fn write(&self, out: &mut Vec<u8>) {
        let delimiters = self.parsed_delimiters();
        self.write_header(out, &delimiters);
        let separator = delimiters.field;
        out.extend_from_slice(b"MSA");
        push_field(out, separator, self.code.as_bytes());
        push_field(out, separator, self.control_id);
        if let Some(error) = self.error {
            out.push(separator);
            escape_into(out, error.text.as_bytes(), &delimiters);
        }
        out.push(b'\r');
        if let Some(error) = self.error.filter(|_| has_error_segment(self.version)) {
            write_error(out, error, &delimiters);
        }
    }

    /// The delimiters it is written under.
    pub fn parsed_delimiters(&self) -> Delimiters {
        Delimiters::as_written(self.delimiters).unwrap_or(Delimiters::STANDARD)
    }

    fn write_header(&self, out: &mut Vec<u8>, delimiters: &Delimiters) {
        let separator = delimiters.field;
        out.extend_from_slice(b"MSH");
        // A sender that leaves MSH-2 empty gets the standard characters, which it must mean.
        match self.delimiters {
            [] | [_] => {
                out.push(separator);
                out.extend_from_slice(b"^~\\&");
            }
            written => out.extend_from_slice(written),
        }
        push_field(out, separator, self.receiving_application);
        push_field(out, separator, self.receiving_facility);
        push_field(out, separator, self.sending_application);
        push_field(out, separator, self.sending_facility);
        out.push(separator);
        write_utc(out, self.now_ms);
        out.push(separator);
        out.push(separator);
        self.write_type(out, delimiters);
        push_field(out, separator, self.own_id.as_bytes());
        push_field(out, separator, or(self.processing_id, b"P"));
        push_field(out, separator, or(self.version, b"2.5"));
        if !self.charset.is_empty() {
            out.extend_from_slice(&[separator; 5]);
            push_field(out, separator, self.charset);
        }
        out.push(b'\r');
    }

    /// `ACK`, with the event and the structure where the message gives its own.
    fn write_type(&self, out: &mut Vec<u8>, delimiters: &Delimiters) {
        out.extend_from_slice(b"ACK");
        let Some(component) = delimiters.component else { return };
        let mut parts = self.message_type.split(|&byte| byte == component).skip(1);
        let Some(event) = parts.next().filter(|event| !event.is_empty()) else { return };
        push_field(out, component, event);
        if parts.next().is_some_and(|structure| !structure.is_empty()) {
            push_field(out, component, b"ACK");
        }
    }
}

fn write_error(out: &mut Vec<u8>, error: ErrorDetail<'_>, delimiters: &Delimiters) {
    let separator = delimiters.field;
    let (code, meaning) = error.condition;
    out.extend_from_slice(b"ERR");
    // ERR-1 and ERR-2 stay empty: the whole message is meant.
    out.extend_from_slice(&[separator; 3]);
    match delimiters.component {
        Some(component) => {
            out.extend_from_slice(code.as_bytes());
            out.push(component);
            escape_into(out, meaning.as_bytes(), delimiters);
            push_field(out, component, b"HL70357");
        }
        None => out.extend_from_slice(code.as_bytes()),
    }
    push_field(out, separator, b"E");
    out.extend_from_slice(&[separator; 4]);
    escape_into(out, error.text.as_bytes(), delimiters);
    out.push(b'\r');
}

/// The field separator and MSH-2, from behind the header's name.
fn delimiters_as_written(rest: &[u8]) -> &[u8] {
    let Some((&field, after)) = rest.split_first() else { return &[] };
    let end = find_byte(after, field).unwrap_or(after.len());
    rest.get(..=end).unwrap_or(rest)
}

fn push_field(out: &mut Vec<u8>, separator: u8, bytes: &[u8]) {
    out.push(separator);
    out.extend_from_slice(bytes);
}

fn or<'a>(written: &'a [u8], otherwise: &'a [u8]) -> &'a [u8] {
    if written.is_empty() { otherwise } else { written }
}

/// ERR in this shape came with version 2.5; where no version is written, ours is 2.5.
fn has_error_segment(version: &[u8]) -> bool {
    let Some(minor) = version.strip_prefix(b"2.") else { return version.is_empty() };
    minor.first().is_some_and(|digit| (b'5'..=b'9').contains(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &[u8], code: &str, text: Option<&str>) -> String {
        let message = Message::parse(message).unwrap();
        let error = text.map(|text| ErrorDetail { condition: ("207", "Application internal error"), text });
        let mut out = Vec::new();
        Acknowledgement {
            code,
            own_id: "PW7",
            now_ms: 1_709_208_307_000,
            error,
            ..Acknowledgement::to(&message)
        }
        .write(&mut out);
        String::from_utf8(out).unwrap().replace('\r', "\n")
    }

    #[test]
    fn an_acceptance_repeats_what_it_must() {
        expect_test::expect![[r"
            MSH|^~\&|EHR|HOSP|LAB|L1|20240229120507+0000||ACK^R01^ACK|PW7|P|2.5.1||||||UNICODE UTF-8
            MSA|AA|MSG 1^x~
        "]]
        .assert_eq(&answer(
            b"MSH|^~\\&|LAB|L1|EHR|HOSP|20240101||ORU^R01^ORU_R01|MSG 1^x~|P|2.5.1||||||UNICODE UTF-8\rPID|1",
            "AA",
            None,
        ));
    }

    #[test]
    fn the_senders_delimiters_are_used_and_our_sentence_escaped() {
        expect_test::expect![[r"
            MSH#*+!%#EHR##LAB##20240229120507+0000##ACK*A01#PW7#T#2.7
            MSA#AE#id\F\9 #disk !F!1 is full!S! 100!T!
            ERR###207*Application internal error*HL70357#E####disk !F!1 is full!S! 100!T!
        "]]
        .assert_eq(&answer(
            b"MSH#*+!%#LAB##EHR##20240101##ADT*A01#id\\F\\9 #T#2.7\r",
            "AE",
            Some("disk #1 is full* 100%"),
        ));
    }

    #[test]
    fn an_old_version_gets_no_error_segment_and_a_bare_header_an_answer() {
        expect_test::expect![[r"
            MSH|^~\&|||||20240229120507+0000||ACK|PW7|P|2.3
            MSA|AR||no
        "]]
        .assert_eq(&answer(b"MSH|^~\\&||||||||||2.3", "AR", Some("no")));
        assert!(answer(b"MSH||", "AA", None).starts_with("MSH|^~\\&|||||"));
    }

    #[test]
    fn five_delimiters_are_repeated() {
        assert!(answer(b"MSH|^~\\&#|LAB", "AA", None).starts_with("MSH|^~\\&#|||LAB||"));
    }
}
