//! Answers: from a ticket and a fate to the bytes for the peer.
//!
//! Original mode answers AA, AE or AR. In enhanced mode MSH-15 says when a commit acknowledgement
//! (CA, CE, CR) is wanted; where it is not, MSH-16 says when an application acknowledgement is. Both
//! are conditions on the outcome, so they are looked at here, when the outcome is known. There is at
//! most one answer to a frame.

use portway_hl7::Acknowledgement;
use portway_sdk::{Failure, Fate, Receipt, StreamReply};

use crate::{Plan, Reason, Ticket, reason::Outcome, ticket::Header};

const START: u8 = 0x0B;
const END: &[u8] = b"\x1C\r";
/// A fatal alert `handshake_failure`, the only sentence a TLS client understands.
const TLS_ALERT: &[u8] = &[0x15, 3, 1, 0, 2, 2, 40];

/// Makes the answers of one source, and its own control ids.
#[derive(Debug, Default)]
pub struct Answers {
    written: u64,
}

impl Answers {
    /// The bytes for these receipts, in their order.
    pub fn settle(&mut self, receipts: &[Receipt], now_ms: u64) -> Result<StreamReply, Failure> {
        let mut reply = StreamReply { bytes: Vec::with_capacity(receipts.len() * 160), close: false };
        for receipt in receipts {
            let ticket = Ticket::from_bytes(&receipt.ticket)
                .ok_or_else(|| Failure::new("bad-ticket", "a ticket was not written by this plugin"))?;
            self.answer(&ticket, &receipt.fate, now_ms, &mut reply.bytes);
            reply.close |= ticket.close;
        }
        Ok(reply)
    }

    fn answer(&mut self, ticket: &Ticket<'_>, fate: &Fate, now_ms: u64, out: &mut Vec<u8>) {
        let reason = match (ticket.plan, fate) {
            (Plan::Silence, _) => return,
            (Plan::Refuse(Reason::Tls), _) => return out.extend_from_slice(TLS_ALERT),
            (Plan::Refuse(Reason::Http), _) => return write_http(out),
            (_, Fate::NotStored(later)) => Some(Reason::of_not_stored(&later.failure.code)),
            (Plan::Refuse(reason) | Plan::Doubt(reason), _) => Some(reason),
            (Plan::Answer, Fate::Stored(_) | Fate::Duplicate(_)) => None,
            // A message is never merely noted; whoever says so does not get an AA for it.
            (Plan::Answer, Fate::Noted) => Some(Reason::NotStored),
        };
        let outcome = reason.map_or(Outcome::Accepted, Reason::outcome);
        let Some(code) = code(ticket.header.as_ref(), outcome) else { return };
        let own_id = self.own_id(fate, now_ms);
        let repeated = ticket.header.map_or_else(Acknowledgement::default, |header| header.repeated);
        let error = reason.map(Reason::detail);
        out.push(START);
        Acknowledgement { code, own_id: &own_id, now_ms, error, ..repeated }.write(out);
        out.extend_from_slice(END);
    }

    /// At most 20 bytes, as MSH-10 was for long. The number of the message, where there is one, so
    /// that a peer's log leads to it.
    fn own_id(&mut self, fate: &Fate, now_ms: u64) -> String {
        match fate {
            Fate::Stored(id) | Fate::Duplicate(id) => format!("PW{id}"),
            Fate::NotStored(_) | Fate::Noted => {
                self.written = self.written.wrapping_add(1);
                format!("PN{now_ms}.{}", self.written % 1000)
            }
        }
    }
}

/// MSA-1, or None where the peer wants no answer to this outcome.
fn code(header: Option<&Header<'_>>, outcome: Outcome) -> Option<&'static str> {
    let application_code = match outcome {
        Outcome::Accepted => "AA",
        Outcome::Error => "AE",
        Outcome::Rejected => "AR",
    };
    let Some(header) = header.filter(|header| header.is_enhanced()) else { return Some(application_code) };
    if is_wanted(header.accept, outcome, Otherwise::Silence) {
        return Some(match outcome {
            Outcome::Accepted => "CA",
            Outcome::Error => "CE",
            Outcome::Rejected => "CR",
        });
    }
    // An acknowledgement is never acknowledged by an application.
    let application =
        !header.is_acknowledgement() && is_wanted(header.application, outcome, Otherwise::Answer);
    application.then_some(application_code)
}

/// What an absent or unknown condition means.
#[derive(Clone, Copy)]
enum Otherwise {
    Answer,
    Silence,
}

/// Table 0155.
fn is_wanted(condition: &[u8], outcome: Outcome, otherwise: Otherwise) -> bool {
    match condition.to_ascii_uppercase().as_slice() {
        b"AL" => true,
        b"NE" => false,
        b"SU" => outcome == Outcome::Accepted,
        b"ER" => outcome != Outcome::Accepted,
        _ => matches!(otherwise, Otherwise::Answer),
    }
}

fn write_http(out: &mut Vec<u8>) {
    let sentence = Reason::Http.sentence();
    let head =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: ";
    out.extend_from_slice(format!("{head}{}\r\n\r\n{sentence}\n", sentence.len() + 1).as_bytes());
}

#[cfg(test)]
mod tests {
    use portway_hl7::Message;
    use portway_sdk::Later;

    use super::*;

    fn answer(msh: &str, plan: Plan, fate: Fate) -> String {
        let header = Header::of(&Message::parse(msh.as_bytes()).unwrap().header());
        let ticket = Ticket::new(plan, Some(header)).to_bytes().unwrap();
        let reply = Answers::default().settle(&[Receipt { fate, ticket }], 0).unwrap();
        String::from_utf8(reply.bytes).unwrap()
    }

    /// MSA-1 for a message with these two conditions, `-` for silence.
    fn told(accept: &str, application: &str, message_type: &str, fate: Fate) -> String {
        let msh = format!("MSH|^~\\&|A||B||7||{message_type}|id|P|2.5|||{accept}|{application}\r");
        let text = answer(&msh, Plan::Answer, fate);
        text.split("MSA|").nth(1).map_or("-".into(), |msa| msa[..2].to_owned())
    }

    fn fates() -> [Fate; 3] {
        let not_stored = |code: &str| Fate::NotStored(Later::new(code, ""));
        [Fate::Stored(7), not_stored("busy"), not_stored("too-large")]
    }

    #[test]
    fn conditions_are_evaluated_after_the_outcome() {
        let table = [
            ("", "", "AA AE AR"),
            ("AL", "", "CA CE CR"),
            ("AL", "AL", "CA CE CR"),
            ("AL", "NE", "CA CE CR"),
            ("ER", "", "AA CE CR"),
            ("ER", "NE", "- CE CR"),
            ("SU", "", "CA AE AR"),
            ("SU", "NE", "CA - -"),
            ("NE", "", "AA AE AR"),
            ("NE", "NE", "- - -"),
            ("NE", "AL", "AA AE AR"),
            ("", "AL", "AA AE AR"),
            ("", "NE", "- - -"),
            ("", "ER", "- AE AR"),
            ("", "SU", "AA - -"),
            ("al", "", "CA CE CR"),
            ("\"\"", "", "AA AE AR"),
            ("Y", "", "AA AE AR"),
        ];
        for (accept, application, expected) in table {
            let answers = fates().map(|fate| told(accept, application, "ADT^A01", fate));
            assert_eq!(answers.join(" "), expected, "MSH-15 {accept}, MSH-16 {application}");
        }
    }

    #[test]
    fn an_acknowledgement_gets_no_application_acknowledgement() {
        assert_eq!(told("AL", "AL", "ACK^A01", Fate::Stored(7)), "CA");
        assert_eq!(told("NE", "AL", "ACK", Fate::Stored(7)), "-");
    }

    #[test]
    fn every_fate_has_its_code() {
        let not_stored = |code: &str| told("", "", "ADT", Fate::NotStored(Later::new(code, "")));
        assert_eq!(["busy", "full", "stopped", "other"].map(not_stored), ["AE"; 4]);
        assert_eq!(["too-large", "invalid"].map(not_stored), ["AR"; 2]);
        assert_eq!(told("", "", "ADT", Fate::Duplicate(7)), "AA");
        assert_eq!(told("", "", "ADT", Fate::Noted), "AE");
    }

    #[test]
    fn a_doubtful_message_is_never_accepted() {
        for fate in [Fate::Stored(1), Fate::Duplicate(1), Fate::Noted] {
            assert!(
                answer("MSH|^~\\&||||||||id", Plan::Doubt(Reason::SecondStartByte), fate)
                    .contains("MSA|AR|id|")
            );
        }
    }

    #[test]
    fn the_control_id_is_repeated_byte_for_byte() {
        let msh = "MSH|^~\\&|A||||||ADT| i\\F\\d^~ \u{e9} |P|2.5";
        assert!(answer(msh, Plan::Answer, Fate::Stored(7)).contains("\rMSA|AA| i\\F\\d^~ \u{e9} \r\u{1c}\r"));
    }

    #[test]
    fn answers_come_in_the_order_of_the_receipts() {
        let ticket = |id: &str| {
            let msh = format!("MSH|^~\\&||||||||{id}");
            let header = Header::of(&Message::parse(msh.as_bytes()).unwrap().header());
            Ticket::new(Plan::Answer, Some(header)).to_bytes().unwrap()
        };
        let receipts = ["1", "2"].map(|id| Receipt { fate: Fate::Stored(1), ticket: ticket(id) });
        let reply = Answers::default().settle(&receipts, 0).unwrap();
        let text = String::from_utf8(reply.bytes).unwrap();
        assert!(text.find("MSA|AA|1").unwrap() < text.find("MSA|AA|2").unwrap());
        assert!(!reply.close);
    }

    #[test]
    fn a_ticket_of_another_plugin_is_an_error() {
        let receipt = Receipt { fate: Fate::Stored(1), ticket: b"?".to_vec() };
        assert!(Answers::default().settle(&[receipt], 0).is_err());
    }
}
