//! A host for the codec: feeds it, keeps what it must keep, resolves spans, settles, and writes down
//! what happened.

use std::{fmt::Write, rc::Rc};

use portway_mllp_source::{FrameCodec, Settings, answer::Answers};
use portway_sdk::{Attributes, Content, Fate, FinishReason, Item, Later, Receipt, Span, Step};

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The item in words.
    pub item: String,
    /// The message's bytes, if it is one.
    pub bytes: Option<Vec<u8>>,
    pub answer: Vec<u8>,
    pub close: bool,
}

/// What becomes of the messages.
#[derive(Clone, Copy, Debug)]
pub enum Store {
    Stores,
    Refuses(&'static str),
}

/// One connection, from the host's side.
pub struct Host {
    settings: Rc<Settings>,
    codec: FrameCodec,
    stream: Vec<u8>,
    keep_from: u64,
    answers: Answers,
    store: Store,
    pub told: Vec<Told>,
    /// The most that was kept at once.
    pub kept_max: usize,
}

impl Host {
    pub fn new(settings: &Settings, store: Store) -> Host {
        let settings = Rc::new(settings.clone());
        Host {
            codec: FrameCodec::new(Rc::clone(&settings), 0),
            settings,
            stream: Vec::new(),
            keep_from: 0,
            answers: Answers::default(),
            store,
            told: Vec::new(),
            kept_max: 0,
        }
    }

    pub fn feed(&mut self, chunk: &[u8]) {
        self.stream.extend_from_slice(chunk);
        let step = self.codec.cut(chunk);
        self.take(step);
    }

    pub fn finish(&mut self, reason: &FinishReason) {
        let step = self.codec.end(reason);
        self.take(step);
    }

    /// The instance is lost: a fresh codec is fed what was kept.
    pub fn restart(&mut self) {
        self.codec = FrameCodec::new(Rc::clone(&self.settings), self.keep_from);
        let kept = self.stream[self.keep_from as usize..].to_vec();
        let step = self.codec.cut(&kept);
        self.take(step);
    }

    fn take(&mut self, step: Step) {
        let fed = self.stream.len() as u64;
        assert!(step.keep_from >= self.keep_from, "keep-from only rises");
        assert!(step.keep_from <= fed, "keep-from is within what was fed");
        for item in step.items {
            self.settle(item);
        }
        self.keep_from = step.keep_from;
        self.kept_max = self.kept_max.max((fed - self.keep_from) as usize);
    }

    fn settle(&mut self, item: Item) {
        let mut text = String::new();
        let (bytes, ticket, fate) = match item {
            Item::Message(draft) => {
                let Content::Spans(spans) = &draft.content else { panic!("only spans are expected") };
                let bytes = self.resolve(spans);
                let doubt = draft.doubt.map(|failure| format!(", doubt {failure}")).unwrap_or_default();
                let pairs = [("key", &draft.key), ("dedupe", &draft.dedupe)];
                let keys: String = pairs
                    .iter()
                    .filter_map(|(name, key)| Some(format!(", {name} {}", key.as_ref()?)))
                    .collect();
                let occurred = draft.occurred_ms.map(|ms| format!(", occurred {ms}")).unwrap_or_default();
                write!(text, "message{keys}{occurred}{doubt}{}", attributes(&draft.attributes)).unwrap();
                (Some(bytes), draft.ticket, self.fate())
            }
            Item::Refused(refusal) => {
                write!(text, "refused {}", refusal.failure).unwrap();
                (None, refusal.ticket, Fate::Noted)
            }
            Item::Control(_) => panic!("no control items are expected"),
        };
        assert!(ticket.len() <= 4096, "a ticket of {} bytes", ticket.len());
        let reply = self.answers.settle(&[Receipt { fate, ticket }], 1_709_208_307_000).unwrap();
        self.told.push(Told { item: text, bytes, answer: reply.bytes, close: reply.close });
    }

    fn fate(&self) -> Fate {
        match self.store {
            Store::Stores => Fate::Stored(self.told.len() as u64 + 1),
            Store::Refuses(code) => Fate::NotStored(Later::new(code, "said by the host")),
        }
    }

    fn resolve(&self, spans: &[Span]) -> Vec<u8> {
        let part = |span: &Span| {
            assert!(span.start >= self.keep_from, "a span lies in what is kept");
            &self.stream[span.start as usize..span.start as usize + span.len as usize]
        };
        spans.iter().flat_map(part).copied().collect()
    }
}

fn attributes(attributes: &Attributes) -> String {
    attributes.iter().map(|(name, value)| format!("\n  {name}: {value}")).collect()
}

/// All of a stream in the given chunks.
pub fn run<'a>(
    settings: &Settings,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    reason: Option<&FinishReason>,
) -> Vec<Told> {
    portway_sdk::testing::reset();
    let mut host = Host::new(settings, Store::Stores);
    chunks.into_iter().for_each(|chunk| host.feed(chunk));
    if let Some(reason) = reason {
        host.finish(reason);
    }
    host.told
}

/// Bytes with what is not printable in angle brackets, and a line a segment.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\r' => text.push_str("<0D>\n    "),
            0x20..0x7F if byte != b'<' => text.push(char::from(byte)),
            _ => write!(text, "<{byte:02X}>").unwrap(),
        }
    }
    text.trim_end().to_owned()
}

/// The bytes that such a text means; line ends and blanks at the start of a line mean nothing.
pub fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim_start();
        while let Some((before, after)) = rest.split_once('<') {
            bytes.extend_from_slice(before.as_bytes());
            let (hex, after) = after.split_once('>').unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = after;
        }
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}
