//! Replies: from tickets and fates to the bytes for the peer.
//!
//! A reply belongs to the message whose turn it is. So nothing is said behind a message that has no
//! reply of its own for being refused: the connection is closed there instead, lest the reply to a
//! later message be taken for its.

use portway_sdk::{Failure, Fate, Receipt, StreamReply};

use crate::{
    Settings,
    ticket::{Plan, Ticket},
};

/// The replies of one source.
#[derive(Clone, Debug)]
pub struct Answers {
    stored: Vec<u8>,
    not_stored: Vec<u8>,
}

impl Answers {
    pub fn new(settings: &Settings) -> Answers {
        Answers { stored: settings.stored_reply.0.clone(), not_stored: settings.not_stored_reply.0.clone() }
    }

    /// The bytes for these receipts, in their order.
    pub fn settle(&self, receipts: &[Receipt]) -> Result<StreamReply, Failure> {
        let mut reply = StreamReply::default();
        for receipt in receipts {
            let ticket = Ticket::from_bytes(&receipt.ticket)
                .ok_or_else(|| Failure::new("bad-ticket", "a ticket was not written by this plugin"))?;
            let is_stored = matches!(receipt.fate, Fate::Stored(_) | Fate::Duplicate(_));
            match ticket.plan {
                Plan::Message if is_stored => reply.bytes.extend_from_slice(&self.stored),
                // A message is never merely noted; whoever says so has not stored it.
                Plan::Message | Plan::Doubt if !is_stored => {
                    reply.bytes.extend_from_slice(&self.not_stored);
                    reply.close |= self.not_stored.is_empty();
                }
                Plan::Doubt | Plan::Refused => reply.bytes.extend_from_slice(&self.not_stored),
                Plan::Message | Plan::Silence => {}
            }
            reply.close |= ticket.close;
            if reply.close {
                break;
            }
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use portway_sdk::Later;

    use super::*;

    fn told(stored: &str, not_stored: &str, receipts: &[(Ticket, Fate)]) -> (String, bool) {
        let answers = Answers { stored: stored.into(), not_stored: not_stored.into() };
        let receipts: Vec<Receipt> = receipts
            .iter()
            .map(|(ticket, fate)| Receipt { fate: fate.clone(), ticket: ticket.to_bytes() })
            .collect();
        let reply = answers.settle(&receipts).unwrap();
        (String::from_utf8(reply.bytes).unwrap(), reply.close)
    }

    fn busy() -> Fate {
        Fate::NotStored(Later::new("busy", ""))
    }

    #[test]
    fn every_plan_and_fate_has_its_reply() {
        let table = [
            (Plan::Message, Fate::Stored(1), "A", false),
            (Plan::Message, Fate::Duplicate(1), "A", false),
            (Plan::Message, busy(), "N", false),
            (Plan::Message, Fate::Noted, "N", false),
            (Plan::Doubt, Fate::Stored(1), "N", false),
            (Plan::Doubt, busy(), "N", false),
            (Plan::Refused, Fate::Noted, "N", false),
            (Plan::Silence, Fate::Noted, "", false),
        ];
        for (plan, fate, bytes, close) in table {
            assert_eq!(told("A", "N", &[(Ticket::new(plan), fate)]), (bytes.into(), close), "{plan:?}");
        }
    }

    #[test]
    fn without_a_reply_for_it_a_message_that_is_not_stored_closes_the_connection() {
        let message = Ticket::new(Plan::Message);
        let receipts = [(message, Fate::Stored(1)), (message, busy()), (message, Fate::Stored(2))];
        assert_eq!(told("A", "", &receipts), ("A".into(), true), "no reply behind it");
        assert_eq!(told("", "", &receipts), (String::new(), true));
        assert_eq!(told("A", "N", &receipts), ("ANA".into(), false));
        assert_eq!(told("A", "", &[(Ticket::new(Plan::Doubt), busy())]), (String::new(), true));
        assert_eq!(told("A", "", &[(Ticket::new(Plan::Refused), Fate::Noted)]), (String::new(), false));
    }

    #[test]
    fn nothing_is_said_behind_a_close() {
        let receipts =
            [(Ticket::and_close(Plan::Refused), Fate::Noted), (Ticket::new(Plan::Message), Fate::Stored(1))];
        assert_eq!(told("A", "N", &receipts), ("N".into(), true));
    }

    #[test]
    fn a_ticket_of_another_plugin_is_an_error() {
        let answers = Answers { stored: Vec::new(), not_stored: Vec::new() };
        let receipt = Receipt { fate: Fate::Stored(1), ticket: b"?".to_vec() };
        assert_eq!(answers.settle(&[receipt]).unwrap_err().code, "bad-ticket");
    }
}
