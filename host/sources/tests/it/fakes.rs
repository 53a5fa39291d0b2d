//! A codec with MLLP's frames whose messages say what it shall do, and an intake that waits
//! for the test's word.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use portway_model::{Attributes, Draft, Failure, Later, MessageId};
use portway_sources::ports::{
    Arrival, Codec, CodecConnection, CodecError, Fate, Finish, Intake, Item, Receipt, Reply,
};
use tokio::sync::watch;

/// Bytes of an answer to a message that begins with `big`.
pub const BIG: usize = 1 << 20;

pub struct FakeCodec;

#[derive(Default)]
pub struct FakeConnection {
    kept: BytesMut,
    /// So many of the kept bytes hold no end of a frame.
    searched: usize,
    failed: Option<CodecError>,
}

pub fn frame(body: &str) -> Vec<u8> {
    [b"\x0b", body.as_bytes(), b"\x1c\r"].concat()
}

fn ticket(body: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&body[..body.len().min(32)])
}

fn item(body: Bytes) -> Result<Item, CodecError> {
    let ticket = ticket(&body);
    Ok(match &ticket[..] {
        b"fault" => return Err(CodecError::Fault("wasm trap: as asked".into())),
        b"away" => return Err(CodecError::Unavailable("no instance".into())),
        b"hopeless" => return Err(CodecError::Refused(Failure::new("not-mllp", "as asked"))),
        b"refuse" => Item::Refused { failure: Failure::new("no-msh", "as asked"), ticket },
        b"control" => Item::Control { ticket },
        _ => Item::Message {
            draft: Draft {
                body,
                key: None,
                dedupe: None,
                occurred_at: None,
                attributes: Attributes::default(),
                doubt: None,
            },
            ticket,
        },
    })
}

impl Codec for FakeCodec {
    type Connection = FakeConnection;

    async fn accept(&self, peer: Attributes, first: u64) -> Result<FakeConnection, CodecError> {
        assert_eq!(first, 0);
        assert!(peer.get("address").is_some() && peer.get("port").is_some());
        Ok(FakeConnection::default())
    }

    async fn settle(&self, receipts: Vec<Receipt>) -> Result<Reply, CodecError> {
        let mut reply = Vec::new();
        let mut close = false;
        for Receipt { fate, ticket } in receipts {
            let ticket = String::from_utf8_lossy(&ticket).into_owned();
            if ticket == "settle-fault" {
                return Err(CodecError::Fault("wasm trap: in settle".into()));
            }
            close |= ticket == "close";
            let said = match fate {
                Fate::Stored { .. } => format!("AA {ticket}"),
                Fate::Duplicate(id) => format!("AA {ticket} again {id}"),
                Fate::NotStored(later) => format!("AE {ticket} {}", later.failure.code),
                Fate::Noted => format!("AR {ticket}"),
            };
            let padding = if ticket.starts_with("big") { BIG } else { 0 };
            reply.extend(frame(&format!("{said}{}", " ".repeat(padding))));
        }
        Ok(Reply { bytes: reply.into(), close })
    }
}

impl CodecConnection for FakeConnection {
    async fn receive(&mut self, chunk: Bytes) -> Result<Vec<Item>, CodecError> {
        assert!(chunk.len() <= 64 << 10);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.kept.extend_from_slice(&chunk);
        let mut items = Vec::new();
        while let Some(found) = self.kept[self.searched..].windows(2).position(|window| window == b"\x1c\r") {
            let end = self.searched + found;
            self.searched = 0;
            let mut body = self.kept.split_to(end + 2).freeze();
            body.truncate(end);
            match item(body.slice(1..)) {
                Ok(item) => items.push(item),
                Err(error) if items.is_empty() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    return Ok(items);
                }
            }
        }
        self.searched = self.kept.len().saturating_sub(1);
        Ok(items)
    }

    async fn finish(&mut self, why: Finish) -> Result<Vec<Item>, CodecError> {
        let half = !std::mem::take(&mut self.kept).is_empty();
        let refused = || Item::Refused {
            failure: Failure::new("half", "a frame did not end"),
            ticket: why.as_str().into(),
        };
        Ok(half.then(refused).into_iter().collect())
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.len() as u64
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}

/// Bodies that were stored, in order; waits while it is held.
#[derive(Clone)]
pub struct FakeIntake {
    inner: Arc<Inner>,
}

struct Inner {
    held: watch::Sender<bool>,
    submissions: AtomicUsize,
    submitted: AtomicUsize,
    stored: Mutex<Vec<Bytes>>,
    refuse_with: Mutex<Option<&'static str>>,
    ids: AtomicU64,
}

impl FakeIntake {
    pub fn new() -> FakeIntake {
        let inner = Inner {
            held: watch::channel(false).0,
            submissions: AtomicUsize::default(),
            submitted: AtomicUsize::default(),
            stored: Mutex::default(),
            refuse_with: Mutex::default(),
            ids: AtomicU64::default(),
        };
        FakeIntake { inner: Arc::new(inner) }
    }

    pub fn hold(&self) {
        self.inner.held.send_replace(true);
    }

    pub fn release(&self) {
        self.inner.held.send_replace(false);
    }

    pub fn refuse_with(&self, code: Option<&'static str>) {
        *self.inner.refuse_with.lock().unwrap() = code;
    }

    pub fn submissions(&self) -> usize {
        self.inner.submissions.load(Ordering::SeqCst)
    }

    /// Messages handed over, whether stored yet or not.
    pub fn submitted(&self) -> usize {
        self.inner.submitted.load(Ordering::SeqCst)
    }

    pub fn stored(&self) -> Vec<String> {
        let stored = self.inner.stored.lock().unwrap();
        stored.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
    }
}

impl Intake for FakeIntake {
    async fn submit(&self, arrival: Arrival, drafts: Vec<Draft>) -> Vec<Fate> {
        assert!(arrival.at.0 > 0 && !drafts.is_empty());
        self.inner.submissions.fetch_add(1, Ordering::SeqCst);
        self.inner.submitted.fetch_add(drafts.len(), Ordering::SeqCst);
        self.inner.held.subscribe().wait_for(|held| !held).await.unwrap();
        let refuse_with = *self.inner.refuse_with.lock().unwrap();
        let fate = |draft: Draft| {
            if let Some(code) = refuse_with {
                let failure = Failure::new(code, "as asked");
                return Fate::NotStored(Later { failure, after_ms: None });
            }
            let id = MessageId(self.inner.ids.fetch_add(1, Ordering::SeqCst) + 1);
            let mut stored = self.inner.stored.lock().unwrap();
            if draft.body.starts_with(b"again") && stored.contains(&draft.body) {
                return Fate::Duplicate(MessageId(1));
            }
            stored.push(draft.body);
            Fate::Stored { id, conflict: false }
        };
        drafts.into_iter().map(fate).collect()
    }
}
