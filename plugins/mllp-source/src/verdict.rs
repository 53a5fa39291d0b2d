//! Judges what was cut: is it a message, a doubtful one, or none.
//!
//! Sees the first bytes of a frame and what was noticed while the rest passed.

use portway_hl7::{Message, ParseError, Segment, charset::looks_wide, search::find_either};
use portway_sdk::{Content, Draft, Failure, Item, Refusal, Span};

use crate::{
    Plan, Reason, Settings, Ticket,
    draft::{About, Head},
    notice::{MARK, Said},
    ticket::Header,
};

/// What was cut out of the input between two framing bytes.
pub(crate) struct Cut<'a> {
    /// Its first bytes.
    pub head: &'a [u8],
    pub start: u64,
    pub length: u64,
    /// MSH, FHS and BHS segments in all of it.
    pub headers: u32,
    /// Bytes of a message that are looked at.
    pub bytes_max: usize,
}

impl<'a> Cut<'a> {
    fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.length
    }

    /// The head without a line that is cut off: half a field must not become a key.
    fn whole_lines(&self) -> &'a [u8] {
        if self.is_whole() {
            return self.head;
        }
        let last = self.head.iter().rposition(|byte| matches!(byte, b'\r' | b'\n'));
        last.and_then(|last| self.head.get(..last)).unwrap_or(&[])
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.is_whole() && self.head.iter().all(u8::is_ascii_whitespace)
    }

    /// What an answer needs, as far as it is in sight.
    fn header(&self) -> Option<Header<'a>> {
        let segment = Message::parse(self.head).ok()?.header();
        if self.holds_header() {
            return Some(Header::of(&segment));
        }
        // The last field in sight may be half a field.
        let whole_fields = segment.raw().iter().rposition(|byte| *byte == segment.delimiters().field)?;
        Some(Header::of(&Segment::new(segment.raw().get(..whole_fields)?, *segment.delimiters())))
    }

    /// Whether the first segment's end is in sight.
    fn holds_header(&self) -> bool {
        let text = self.head.strip_prefix(MARK).unwrap_or(self.head);
        self.is_whole() || find_either(text.trim_ascii_start(), b'\r', b'\n').is_some()
    }

    fn span(&self) -> Option<Span> {
        let len = u32::try_from(self.length).ok().filter(|&len| len < 1 << 31)?;
        Some(Span { start: self.start, len })
    }
}

/// The item of a whole frame. With a doubt, a message in it is kept for a person.
pub(crate) fn frame(cut: &Cut<'_>, settings: &Settings, said: &mut Said, doubt: Option<Reason>) -> Item {
    let message = match parse(cut) {
        Ok(message) => message,
        Err(reason) => return refuse_cut(reason, cut),
    };
    let header = Header::of(&message.header());
    if cut.headers > 1 || !message.header().is("MSH") {
        return refuse(Reason::Batch, Some(header));
    }
    if header.is_acknowledgement() && !header.is_enhanced() {
        return refuse_silently(Reason::UnexpectedAck);
    }
    accept(cut, &header, settings, said, doubt)
}

/// A message: to be delivered, or kept for a person.
fn accept(
    cut: &Cut<'_>,
    header: &Header<'_>,
    settings: &Settings,
    said: &mut Said,
    doubt: Option<Reason>,
) -> Item {
    let plan = doubt.map_or(Plan::Answer, Plan::Doubt);
    let Some(ticket) = Ticket::new(plan, Some(*header)).to_bytes() else {
        return refuse(Reason::HeaderTooLong, Some(header.shortened()));
    };
    let Some(span) = cut.span() else { return refuse(Reason::TooLarge, Some(*header)) };
    if cut.head.starts_with(MARK) {
        said.mark_inside(cut.start);
    }
    let about = about(cut, header, settings, said).unwrap_or_default();
    Item::Message(Draft {
        content: Content::Spans(vec![span]),
        key: about.key,
        dedupe: about.dedupe,
        occurred_ms: about.occurred_ms,
        attributes: about.attributes,
        doubt: doubt.map(failure),
        ticket,
    })
}

fn about(cut: &Cut<'_>, header: &Header<'_>, settings: &Settings, said: &mut Said) -> Option<About> {
    let message = Message::parse(cut.whole_lines()).ok()?;
    let head = Head { message, is_whole: cut.is_whole(), bytes_max: cut.bytes_max };
    Some(About::of(&head, header, settings, said))
}

/// A part of a frame that holds a second start byte.
#[derive(Debug)]
pub(crate) struct Fragment {
    item: Item,
    /// The ticket that answers for the whole frame, where this part has a header.
    answer: Option<Vec<u8>>,
    is_wide: bool,
}

/// One more part, not answered by itself.
pub(crate) fn add_fragment(
    fragments: &mut Vec<Fragment>,
    cut: &Cut<'_>,
    settings: &Settings,
    said: &mut Said,
) {
    let header = cut.header();
    let about = header.as_ref().and_then(|header| about(cut, header, settings, said));
    if header.is_some() {
        // Only the last one answers.
        fragments.iter_mut().for_each(|fragment| fragment.answer = None);
    }
    fragments.push(Fragment {
        item: doubtful(cut, about.unwrap_or_default(), Reason::SecondStartByte),
        answer: header.map(|header| refusal_ticket(Plan::Doubt(Reason::SecondStartByte), Some(header))),
        is_wide: looks_wide(cut.head),
    });
}

/// The items of all parts of a frame. The peer sent one end and gets one answer: to the last part
/// that has a header.
pub(crate) fn joined(mut fragments: Vec<Fragment>) -> Vec<Item> {
    if fragments.first().is_some_and(|first| first.is_wide) {
        return vec![refuse(Reason::WideText, None)];
    }
    let answer = fragments.iter_mut().find_map(|fragment| fragment.answer.take());
    let Some(answer) = answer else { return vec![refuse(Reason::NotHl7, None)] };
    let mut items: Vec<Item> = fragments.into_iter().map(|fragment| fragment.item).collect();
    match items.last_mut() {
        Some(Item::Message(draft)) => draft.ticket = answer,
        Some(Item::Refused(refusal)) => refusal.ticket = answer,
        Some(Item::Control(_)) | None => {}
    }
    items
}

/// Bytes behind an end byte that ended a message.
pub(crate) fn tail(cut: &Cut<'_>) -> Item {
    doubtful(cut, About::default(), Reason::AfterEndByte)
}

/// Kept, not delivered, and not answered.
fn doubtful(cut: &Cut<'_>, about: About, reason: Reason) -> Item {
    let Some(span) = cut.span() else { return refuse_silently(Reason::TooLarge) };
    Item::Message(Draft {
        content: Content::Spans(vec![span]),
        // Two parts of one frame may repeat one name, and neither is the message that has it.
        dedupe: None,
        key: about.key,
        occurred_ms: about.occurred_ms,
        attributes: about.attributes,
        doubt: Some(failure(reason)),
        ticket: silence(),
    })
}

/// Refused, and the peer is told.
pub(crate) fn refuse(reason: Reason, header: Option<Header<'_>>) -> Item {
    Item::Refused(Refusal { failure: failure(reason), ticket: refusal_ticket(Plan::Refuse(reason), header) })
}

/// Refused, with what is known of the header.
pub(crate) fn refuse_cut(reason: Reason, cut: &Cut<'_>) -> Item {
    refuse(reason, cut.header())
}

/// Refused, and there is nothing to tell the peer.
pub(crate) fn refuse_silently(reason: Reason) -> Item {
    Item::Refused(Refusal { failure: failure(reason), ticket: silence() })
}

/// Refused, told, and the connection closed. A known header is answered, otherwise only TLS and HTTP
/// have a language of their own for it.
pub(crate) fn refuse_and_close(reason: Reason, cut: Option<&Cut<'_>>) -> Item {
    let header = cut.and_then(Cut::header);
    let answers = header.is_some() || matches!(reason, Reason::Tls | Reason::Http);
    let plan = if answers { Plan::Refuse(reason) } else { Plan::Silence };
    let ticket = Ticket::new(plan, header).and_close();
    let shortened = || Ticket::new(plan, header.map(|header| header.shortened())).and_close();
    let ticket = ticket.to_bytes().or_else(|| shortened().to_bytes()).unwrap_or_default();
    Item::Refused(Refusal { failure: failure(reason), ticket })
}

fn refusal_ticket(plan: Plan, header: Option<Header<'_>>) -> Vec<u8> {
    let whole = Ticket::new(plan, header).to_bytes();
    let shortened = || Ticket::new(plan, header.map(|header| header.shortened())).to_bytes();
    whole.or_else(shortened).unwrap_or_default()
}

fn silence() -> Vec<u8> {
    Ticket::new(Plan::Silence, None).to_bytes().unwrap_or_default()
}

fn failure(reason: Reason) -> Failure {
    Failure::new(reason.code(), reason.sentence())
}

fn parse<'a>(cut: &Cut<'a>) -> Result<Message<'a>, Reason> {
    if cut.is_blank() {
        return Err(Reason::EmptyFrame);
    }
    if looks_wide(cut.head) {
        return Err(Reason::WideText);
    }
    let message = Message::parse(cut.head).map_err(|error| match error {
        ParseError::Empty | ParseError::NoHeader => Reason::NotHl7,
        ParseError::Delimiters(_) => Reason::BadHeader,
    })?;
    if cut.holds_header() { Ok(message) } else { Err(Reason::HeaderTooLong) }
}
