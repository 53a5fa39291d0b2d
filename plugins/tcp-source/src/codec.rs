//! Items of what was cut: messages with their keys, refusals with their reasons.
//!
//! Where frames begin and end is `portway-framing`'s. What is decided here is decided at an event of
//! its, so that the same input gives the same items however it is cut into chunks.

use std::rc::Rc;

use portway_framing::{Decoder, Event, Frame, Framing, Leftover};
use portway_sdk::{Draft, Failure, FinishReason, Item, Refusal, Step};

use crate::{
    Reason, Settings,
    place::{Head, Place, Said},
    ticket::{Plan, Ticket},
};

/// Frames in a row that are refused or doubtful before the connection is given up.
pub const REFUSALS_IN_ROW_MAX: u32 = 256;

/// What all connections of a source share.
#[derive(Debug)]
pub struct Rules {
    framing: Rc<Framing>,
    frame_bytes_max: u32,
    key: Option<Place>,
    dedupe: Option<Place>,
    /// The first bytes of a message that are looked at.
    head_bytes_max: usize,
}

impl Rules {
    /// Fails where the settings do not make sense.
    pub fn new(settings: &Settings) -> Result<Rules, Failure> {
        settings.check()?;
        let framing = Rc::new(settings.framing.framing()?);
        let key = settings.key.as_ref().map(|place| Place::new(place, "key")).transpose()?;
        let dedupe = settings.dedupe.as_ref().map(|place| Place::new(place, "dedupe")).transpose()?;
        let head_bytes_max = key.iter().chain(&dedupe).map(Place::reach).max().unwrap_or(0);
        Ok(Rules { framing, frame_bytes_max: settings.frame_bytes_max, key, dedupe, head_bytes_max })
    }
}

/// The codec of one connection.
#[derive(Debug)]
pub struct FrameCodec {
    rules: Rc<Rules>,
    decoder: Decoder,
    /// The offset of the next byte that comes.
    at: u64,
    /// The first bytes of the message that is arriving, as far as they came in earlier chunks.
    head: Vec<u8>,
    refused_in_row: u32,
    said: Said,
}

impl FrameCodec {
    /// `first` is the offset of the first byte that will come.
    pub fn new(rules: Rc<Rules>, first: u64) -> FrameCodec {
        let decoder = Decoder::new(Rc::clone(&rules.framing), u64::from(rules.frame_bytes_max), first);
        FrameCodec { rules, decoder, at: first, head: Vec::new(), refused_in_row: 0, said: Said::default() }
    }

    /// The next bytes.
    pub fn cut(&mut self, chunk: &[u8]) -> Step {
        let mut items = Vec::new();
        let mut rest = chunk;
        loop {
            let (used, event) = self.decoder.take(rest);
            rest = rest.get(used..).unwrap_or(&[]);
            let Some(event) = event else { break };
            let Some(item) = self.item(event, chunk) else { continue };
            let is_fine = matches!(&item, Item::Message(draft) if draft.doubt.is_none());
            self.refused_in_row = if is_fine { 0 } else { self.refused_in_row + 1 };
            items.push(item);
            if self.refused_in_row > REFUSALS_IN_ROW_MAX {
                self.refused_in_row = 0;
                items.push(refuse(Reason::TooManyRefusals, Ticket::and_close(Plan::Silence)));
                self.decoder.close();
            }
        }
        self.remember(chunk);
        self.at += chunk.len() as u64;
        Step { items, keep_from: self.decoder.keep_from() }
    }

    /// No more bytes come.
    pub fn end(&mut self, why: &FinishReason) -> Step {
        let reason = Reason::of_finish(why, self.rules.frame_bytes_max);
        let item = match self.decoder.finish() {
            Leftover::Nothing => None,
            Leftover::NoStart => Some(refuse(Reason::NoStart, Ticket::new(Plan::Silence))),
            Leftover::TooLarge => {
                Some(refuse(Reason::TooLarge(self.rules.frame_bytes_max), Ticket::and_close(Plan::Refused)))
            }
            Leftover::Unended(frame) => Some(match why {
                FinishReason::TooLarge => refuse(reason, Ticket::and_close(Plan::Refused)),
                // Without an end, closing the connection is one.
                FinishReason::PeerClosed => self.message(frame, &[], None),
                FinishReason::Idle | FinishReason::Stopping | FinishReason::Other(_) => {
                    self.message(frame, &[], Some(Reason::EndUnknown))
                }
            }),
            Leftover::Broken => Some(match why {
                FinishReason::TooLarge => refuse(reason, Ticket::and_close(Plan::Refused)),
                _ => refuse(reason, Ticket::new(Plan::Silence)),
            }),
        };
        Step { items: item.into_iter().collect(), keep_from: self.at }
    }

    fn item(&mut self, event: Event, chunk: &[u8]) -> Option<Item> {
        Some(match event {
            Event::Frame(frame) => {
                let doubt = frame.start_inside.then_some(Reason::StartInside);
                self.message(frame, chunk, doubt)
            }
            Event::Empty => refuse(Reason::Empty, Ticket::new(Plan::Refused)),
            Event::TooLarge => {
                refuse(Reason::TooLarge(self.rules.frame_bytes_max), Ticket::and_close(Plan::Refused))
            }
            // What would be answered is not known to be a frame.
            Event::BadLength => refuse(Reason::BadLength, Ticket::and_close(Plan::Silence)),
            Event::NoStart => refuse(Reason::NoStart, Ticket::and_close(Plan::Silence)),
            Event::Junk { at } => {
                self.said.junk(at);
                return None;
            }
        })
    }

    /// A message, to be delivered or, with a doubt, kept for a person.
    fn message(&mut self, frame: Frame, chunk: &[u8], doubt: Option<Reason>) -> Item {
        let Ok(len) = u32::try_from(frame.len) else {
            return refuse(Reason::TooLarge(self.rules.frame_bytes_max), Ticket::and_close(Plan::Refused));
        };
        let plan = if doubt.is_some() { Plan::Doubt } else { Plan::Message };
        let mut draft = Draft::of_span(frame.start, len, Ticket::new(plan).to_bytes());
        let rules = Rc::clone(&self.rules);
        if rules.head_bytes_max > 0 {
            let mut head = std::mem::take(&mut self.head);
            if frame.start >= self.at {
                head.clear();
            }
            self.extend(&mut head, frame.start, chunk);
            head.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            let seen = Head { bytes: &head, is_whole: head.len() as u64 == frame.len };
            draft.key = rules.key.as_ref().and_then(|place| place.find(seen, &mut self.said));
            // Two parts of one message may repeat one name, and neither is the message that has it.
            let dedupe = rules.dedupe.as_ref().filter(|_| doubt.is_none());
            draft.dedupe = dedupe.and_then(|place| place.find(seen, &mut self.said));
            head.clear();
            self.head = head;
        }
        draft.doubt = doubt.map(Reason::failure);
        Item::Message(draft)
    }

    /// Adds what a chunk has of a message that begins at `start`, as far as it is looked at.
    fn extend(&self, head: &mut Vec<u8>, start: u64, chunk: &[u8]) {
        let from = usize::try_from(start.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let new = chunk.get(from..).unwrap_or(&[]);
        let room = self.rules.head_bytes_max.saturating_sub(head.len());
        head.extend_from_slice(new.get(..room).unwrap_or(new));
    }

    /// Keeps the first bytes of a message that is still arriving.
    fn remember(&mut self, chunk: &[u8]) {
        let start = self.decoder.content_start().filter(|_| self.rules.head_bytes_max > 0);
        let mut head = std::mem::take(&mut self.head);
        match start {
            None => head.clear(),
            Some(start) => {
                if start >= self.at {
                    head.clear();
                }
                self.extend(&mut head, start, chunk);
            }
        }
        self.head = head;
    }
}

fn refuse(reason: Reason, ticket: Ticket) -> Item {
    Item::Refused(Refusal { failure: reason.failure(), ticket: ticket.to_bytes() })
}
