//! Tickets: all that the answer to a frame needs, in at most 4 KiB.
//!
//! A ticket is written where the frame is cut and read by whichever instance answers it, perhaps
//! after a restart or by a newer version; so it begins with a version, and the parts of the header
//! in it are copies of the bytes that came.

use portway_hl7::{Acknowledgement, Segment, Split};

use crate::Reason;

/// Bytes in a ticket, by the contract.
const TICKET_BYTES_MAX: usize = 4096;
const VERSION: u8 = 1;

/// What the answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Says what became of the message.
    Answer,
    /// Says that the message is kept but not accepted.
    Doubt(Reason),
    /// Says why the frame was refused.
    Refuse(Reason),
    /// Says nothing.
    Silence,
}

/// The ticket of one item.
#[derive(Clone, Copy, Debug)]
pub struct Ticket<'a> {
    pub plan: Plan,
    /// Close the connection behind the answer.
    pub close: bool,
    pub header: Option<Header<'a>>,
}

/// The parts of a header that an answer repeats or obeys.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    pub repeated: Acknowledgement<'a>,
    /// MSH-15: when a C-code is wanted.
    pub accept: &'a [u8],
    /// MSH-16: when an A-code is wanted.
    pub application: &'a [u8],
}

impl<'a> Header<'a> {
    /// From an MSH, FHS or BHS segment; the latter two have their control id in field 11.
    pub(crate) fn of(segment: &Segment<'a>) -> Header<'a> {
        let mut header =
            Header { repeated: Acknowledgement::to_header(segment), accept: &[], application: &[] };
        let raw = |number| segment.field(number).map_or(&b""[..], |field| field.raw());
        if segment.is("MSH") {
            header.accept = raw(15);
            header.application = raw(16);
        } else {
            header.repeated = Acknowledgement {
                control_id: raw(11),
                message_type: &[],
                processing_id: &[],
                version: &[],
                charset: &[],
                ..header.repeated
            };
        }
        header
    }

    /// Keeps what the peer needs to know which message is meant, where the whole is too long.
    pub(crate) fn shortened(&self) -> Header<'a> {
        let keep = |bytes: &'a [u8], max: usize| if bytes.len() <= max { bytes } else { &[] };
        let repeated = &self.repeated;
        Header {
            repeated: Acknowledgement {
                delimiters: keep(repeated.delimiters, 16),
                control_id: keep(repeated.control_id, 2048),
                version: keep(repeated.version, 64),
                ..Acknowledgement::default()
            },
            accept: keep(self.accept, 16),
            application: keep(self.application, 16),
        }
    }

    /// Whether the message is itself an acknowledgement.
    pub(crate) fn is_acknowledgement(&self) -> bool {
        let component = self.repeated.parsed_delimiters().component;
        Split::new(self.repeated.message_type, component)
            .next()
            .is_some_and(|code| code.eq_ignore_ascii_case(b"ACK"))
    }

    /// Enhanced mode: one of the two is written.
    pub(crate) fn is_enhanced(&self) -> bool {
        [self.accept, self.application].iter().any(|field| !field.is_empty() && *field != b"\"\"")
    }

    fn fields(&self) -> [&'a [u8]; 12] {
        let repeated = &self.repeated;
        [
            repeated.delimiters,
            repeated.sending_application,
            repeated.sending_facility,
            repeated.receiving_application,
            repeated.receiving_facility,
            repeated.message_type,
            repeated.control_id,
            repeated.processing_id,
            repeated.version,
            repeated.charset,
            self.accept,
            self.application,
        ]
    }
}

impl<'a> Ticket<'a> {
    pub fn new(plan: Plan, header: Option<Header<'a>>) -> Ticket<'a> {
        Ticket { plan, close: false, header }
    }

    /// With the connection closed behind the answer.
    pub fn and_close(mut self) -> Ticket<'a> {
        self.close = true;
        self
    }

    /// As it travels; None: longer than a ticket may be.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let (plan, reason) = match self.plan {
            Plan::Answer => (0, 0),
            Plan::Doubt(reason) => (1, reason as u8),
            Plan::Refuse(reason) => (2, reason as u8),
            Plan::Silence => (3, 0),
        };
        let fields = self.header.as_ref().map(Header::fields);
        let fields = fields.as_ref().map_or(&[][..], |fields| fields.as_slice());
        let length = 4 + fields.iter().map(|field| field.len() + 2).sum::<usize>();
        if length > TICKET_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&[VERSION, plan, reason, u8::from(self.close)]);
        for field in fields {
            bytes.extend_from_slice(&u16::try_from(field.len()).ok()?.to_le_bytes());
            bytes.extend_from_slice(field);
        }
        Some(bytes)
    }

    /// Reads it back; None: it is none of ours.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Ticket<'a>> {
        let (&[version, plan, reason, close], mut rest) = bytes.split_first_chunk::<4>()?;
        let plan = match (plan, Reason::from_number(reason)) {
            (0, _) => Plan::Answer,
            (1, Some(reason)) => Plan::Doubt(reason),
            (2, Some(reason)) => Plan::Refuse(reason),
            (3, _) => Plan::Silence,
            _ => return None,
        };
        let header = if rest.is_empty() { None } else { Some(take_header(&mut rest)?) };
        let whole = version == VERSION && rest.is_empty();
        whole.then_some(Ticket { plan, close: close != 0, header })
    }
}

fn take_header<'a>(rest: &mut &'a [u8]) -> Option<Header<'a>> {
    let mut take = || {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (field, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        *rest = after;
        Some(field)
    };
    // In the order of `Header::fields`.
    let repeated = Acknowledgement {
        delimiters: take()?,
        sending_application: take()?,
        sending_facility: take()?,
        receiving_application: take()?,
        receiving_facility: take()?,
        message_type: take()?,
        control_id: take()?,
        processing_id: take()?,
        version: take()?,
        charset: take()?,
        ..Acknowledgement::default()
    };
    Some(Header { repeated, accept: take()?, application: take()? })
}

#[cfg(test)]
mod tests {
    use portway_hl7::Message;
    use proptest::prelude::*;

    use super::*;

    fn header(message: &[u8]) -> Header<'_> {
        Header::of(&Message::parse(message).unwrap().header())
    }

    #[test]
    fn a_ticket_reads_back() {
        let header = header(b"MSH|^~\\&|A|B|C|D|7||ADT^A01|id|P|2.5|||AL|NE||8859/1");
        for plan in
            [Plan::Answer, Plan::Doubt(Reason::EndByteInside), Plan::Refuse(Reason::Batch), Plan::Silence]
        {
            let bytes = Ticket::new(plan, Some(header)).and_close().to_bytes().unwrap();
            let ticket = Ticket::from_bytes(&bytes).unwrap();
            assert_eq!((ticket.plan, ticket.close), (plan, true));
            assert_eq!(ticket.header.unwrap().fields(), header.fields());
        }
    }

    #[test]
    fn one_that_is_too_long_is_not_written_but_can_be_shortened() {
        let long = format!("MSH|^~\\&|{}|||||||id|P|2.5\r", "x".repeat(5000));
        let header = header(long.as_bytes());
        assert_eq!(Ticket::new(Plan::Answer, Some(header)).to_bytes(), None);
        let bytes =
            Ticket::new(Plan::Refuse(Reason::HeaderTooLong), Some(header.shortened())).to_bytes().unwrap();
        assert_eq!(Ticket::from_bytes(&bytes).unwrap().header.unwrap().repeated.control_id, b"id");
    }

    #[test]
    fn a_batch_header_has_its_control_id_elsewhere() {
        assert_eq!(header(b"BHS|^~\\&|A|B|C|D|7|s|n|c|id|r").repeated.control_id, b"id");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..64)) {
            Ticket::from_bytes(&bytes);
        }
    }
}
