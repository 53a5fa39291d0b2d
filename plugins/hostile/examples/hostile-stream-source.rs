//! A source of lines that misbehaves as its settings say. Each line is a message, answered
//! with `stored ID`, `duplicate ID` or `no CODE`.

use plugin_hostile::{Deed, Settings, act, endless_loop, trap};
use portway_sdk::{
    Attributes, Codec, Content, Context, Draft, Failure, Fate, FinishReason, Item, Receipt, Span, Step,
    StreamReply, StreamSource,
};

/// How much of a line is its ticket; a host takes 4 KiB.
const TICKET_BYTES_MAX: usize = 1024;

/// One interface's.
pub struct Hostile(Settings);

impl StreamSource for Hostile {
    type Settings = Settings;
    type Codec = Lines;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        settings.open()?;
        Ok(Hostile(settings))
    }

    fn accept(&mut self, _peer: &Attributes, first: u64) -> Result<Lines, Failure> {
        if self.0.deed == Deed::AcceptTraps {
            trap();
        }
        Ok(Lines { settings: self.0.clone(), line: Vec::new(), start: first })
    }

    fn settle(&mut self, receipts: Vec<Receipt>) -> Result<StreamReply, Failure> {
        let mut bytes = Vec::new();
        for receipt in receipts {
            match self.0.deed_for(&receipt.ticket) {
                Deed::SettleTraps => trap(),
                Deed::SettleLoops => endless_loop(),
                Deed::HugeReply => bytes.resize(48 << 20, b'x'),
                _ => {}
            }
            let answer = match receipt.fate {
                Fate::Stored(id) => format!("stored {id}\n"),
                Fate::Duplicate(id) => format!("duplicate {id}\n"),
                Fate::NotStored(later) => format!("no {}\n", later.failure.code),
                Fate::Noted => "noted\n".to_owned(),
            };
            bytes.extend_from_slice(answer.as_bytes());
        }
        Ok(StreamReply { bytes, close: false })
    }
}

/// One connection's.
pub struct Lines {
    settings: Settings,
    /// What of the current line was received.
    line: Vec<u8>,
    /// Where the current line begins.
    start: u64,
}

impl Codec for Lines {
    fn receive(&mut self, chunk: &[u8]) -> Result<Step, Failure> {
        let mut step = Step { items: Vec::new(), keep_from: self.start };
        for byte in chunk {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let start = self.start;
            self.start += line.len() as u64 + 1;
            step.keep_from = self.start;
            self.found(&line, start, &mut step);
        }
        Ok(step)
    }

    fn finish(&mut self, _reason: FinishReason) -> Result<Step, Failure> {
        if self.settings.deed == Deed::FinishTraps {
            trap();
        }
        Ok(Step { items: Vec::new(), keep_from: self.start + self.line.len() as u64 })
    }
}

impl Lines {
    fn found(&self, line: &[u8], start: u64, step: &mut Step) {
        let deed = self.settings.deed_for(line);
        act(deed);
        let len = u32::try_from(line.len()).unwrap_or(u32::MAX);
        let ticket = line.get(..TICKET_BYTES_MAX).unwrap_or(line).to_vec();
        let mut draft = Draft::of_span(start, len, ticket.clone());
        match deed {
            Deed::SpanBeforeKept => draft.content = span(0, len),
            Deed::SpanBehindInput => draft.content = span(start + 100_000, len),
            Deed::KeepFromGoingBack => step.keep_from = 0,
            Deed::KeepFromAhead => step.keep_from += 100_000,
            Deed::UndeclaredControl => step.items.push(Item::Control(ticket)),
            Deed::HugeTicket => draft.ticket = vec![b'x'; 1 << 20],
            Deed::PortwayAttribute => draft.attributes.push("portway.source", "forged"),
            _ => {}
        }
        step.items.push(Item::Message(draft));
    }
}

fn span(start: u64, len: u32) -> Content {
    Content::Spans(vec![Span { start, len }])
}

portway_sdk::export_stream_source!(Hostile);
