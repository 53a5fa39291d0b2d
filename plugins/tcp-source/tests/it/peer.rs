//! A host for the codec: feeds it, keeps what it must keep, resolves spans, settles, and writes down
//! what happened.

use std::{fmt::Write, rc::Rc};

use portway_sdk::{Content, Fate, FinishReason, Item, Later, Receipt, Step};
use portway_tcp_source::{FrameCodec, Settings, answer::Answers, codec::Rules};

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

/// One connection, from the host's side. Once an answer closes it, nothing is fed any more.
pub struct Host {
    rules: Rc<Rules>,
    codec: FrameCodec,
    stream: Vec<u8>,
    keep_from: u64,
    answers: Answers,
    /// What the store says of messages; none: stored.
    refuses: Option<String>,
    pub told: Vec<Told>,
    /// The most that was kept at once.
    pub kept_max: usize,
}

impl Host {
    pub fn new(settings: &Settings, refuses: Option<&str>) -> Host {
        let rules = Rc::new(Rules::new(settings).unwrap());
        Host {
            codec: FrameCodec::new(Rc::clone(&rules), 0),
            rules,
            stream: Vec::new(),
            keep_from: 0,
            answers: Answers::new(settings),
            refuses: refuses.map(str::to_owned),
            told: Vec::new(),
            kept_max: 0,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.told.last().is_some_and(|told| told.close)
    }

    pub fn feed(&mut self, chunk: &[u8]) {
        if self.is_closed() {
            return;
        }
        self.stream.extend_from_slice(chunk);
        let step = self.codec.cut(chunk);
        self.take(step);
    }

    pub fn finish(&mut self, reason: &FinishReason) {
        if !self.is_closed() {
            let step = self.codec.end(reason);
            self.take(step);
        }
    }

    /// The instance is lost: a fresh codec is fed what was kept.
    pub fn restart(&mut self) {
        if self.is_closed() {
            return;
        }
        self.codec = FrameCodec::new(Rc::clone(&self.rules), self.keep_from);
        let kept = self.stream[self.keep_from as usize..].to_vec();
        let step = self.codec.cut(&kept);
        self.take(step);
    }

    fn take(&mut self, step: Step) {
        let fed = self.stream.len() as u64;
        assert!(step.keep_from >= self.keep_from, "keep-from only rises");
        assert!(step.keep_from <= fed, "keep-from is within what was fed");
        for item in step.items {
            if !self.is_closed() {
                self.settle(item);
            }
        }
        self.keep_from = step.keep_from;
        self.kept_max = self.kept_max.max((fed - self.keep_from) as usize);
    }

    fn settle(&mut self, item: Item) {
        let mut text = String::new();
        let (bytes, ticket, fate) = match item {
            Item::Message(draft) => {
                let Content::Spans(spans) = &draft.content else { panic!("only spans are expected") };
                let [span] = spans.as_slice() else { panic!("one span is expected") };
                assert!(span.start >= self.keep_from, "a span lies in what is kept");
                let bytes = self.stream[span.start as usize..][..span.len as usize].to_vec();
                text.push_str("message");
                for (name, key) in [("key", &draft.key), ("dedupe", &draft.dedupe)] {
                    if let Some(key) = key {
                        write!(text, ", {name} {key}").unwrap();
                    }
                }
                if let Some(doubt) = &draft.doubt {
                    write!(text, ", doubt {doubt}").unwrap();
                }
                let fate = match &self.refuses {
                    None => Fate::Stored(self.told.len() as u64 + 1),
                    Some(code) => Fate::NotStored(Later::new(code, "said by the host")),
                };
                (Some(bytes), draft.ticket, fate)
            }
            Item::Refused(refusal) => {
                write!(text, "refused {}", refusal.failure).unwrap();
                (None, refusal.ticket, Fate::Noted)
            }
            Item::Control(_) => panic!("no control items are expected"),
        };
        let reply = self.answers.settle(&[Receipt { fate, ticket }]).unwrap();
        self.told.push(Told { item: text, bytes, answer: reply.bytes, close: reply.close });
    }
}

/// All of a stream in the given chunks.
pub fn run<'a>(
    settings: &Settings,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    reason: &FinishReason,
) -> Vec<Told> {
    portway_sdk::testing::reset();
    let mut host = Host::new(settings, None);
    chunks.into_iter().for_each(|chunk| host.feed(chunk));
    host.finish(reason);
    host.told
}

/// The two parts of a stream with a lost instance between them.
pub fn run_with_restart(settings: &Settings, stream: &[u8], at: usize, reason: &FinishReason) -> Vec<Told> {
    portway_sdk::testing::reset();
    let mut host = Host::new(settings, None);
    host.feed(&stream[..at]);
    host.restart();
    host.feed(&stream[at..]);
    host.finish(reason);
    host.told
}
