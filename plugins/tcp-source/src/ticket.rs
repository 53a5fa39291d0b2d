//! Tickets: what the answer to a frame needs, beside the settings.
//!
//! A ticket is read by whichever instance answers, perhaps by a newer version; so it begins with a
//! version.

const VERSION: u8 = 1;

/// What the answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Says what became of the message.
    Message,
    /// Says that the message is kept but not accepted.
    Doubt,
    /// Says that the frame was refused.
    Refused,
    /// Says nothing.
    Silence,
}

/// The ticket of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub plan: Plan,
    /// Close the connection behind the answer.
    pub close: bool,
}

impl Ticket {
    pub(crate) fn new(plan: Plan) -> Ticket {
        Ticket { plan, close: false }
    }

    /// With the connection closed behind the answer.
    pub(crate) fn and_close(plan: Plan) -> Ticket {
        Ticket { plan, close: true }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let plan = match self.plan {
            Plan::Message => 0,
            Plan::Doubt => 1,
            Plan::Refused => 2,
            Plan::Silence => 3,
        };
        vec![VERSION, plan, u8::from(self.close)]
    }

    /// None: it is none of ours.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Ticket> {
        let &[VERSION, plan, close] = bytes else { return None };
        let plan = match plan {
            0 => Plan::Message,
            1 => Plan::Doubt,
            2 => Plan::Refused,
            3 => Plan::Silence,
            _ => return None,
        };
        Some(Ticket { plan, close: close != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_reads_back_and_no_other_bytes_do() {
        for plan in [Plan::Message, Plan::Doubt, Plan::Refused, Plan::Silence] {
            for ticket in [Ticket::new(plan), Ticket::and_close(plan)] {
                assert_eq!(Ticket::from_bytes(&ticket.to_bytes()), Some(ticket));
            }
        }
        for bytes in [&b""[..], &[1, 0], &[2, 0, 0], &[1, 9, 0], &[1, 0, 0, 0]] {
            assert_eq!(Ticket::from_bytes(bytes), None);
        }
    }
}
