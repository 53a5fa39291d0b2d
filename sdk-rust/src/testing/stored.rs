//! What a host keeps of the messages that a source found, and how tests show items.

use std::fmt::Write;

use crate::{Attributes, Body, Content, Draft, Failure, Item, Span, blobs};

/// A message as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub id: u64,
    pub bytes: Vec<u8>,
    /// The bytes came as a blob.
    pub is_blob: bool,
    pub key: Option<String>,
    pub dedupe: Option<String>,
    pub occurred_ms: Option<u64>,
    pub attributes: Attributes,
    pub doubt: Option<Failure>,
}

impl Stored {
    /// Stores a draft; `input` is what its spans are cut from.
    pub(crate) fn of(draft: Draft, id: u64, input: Option<&Body>) -> Stored {
        check(&draft);
        let is_blob = matches!(draft.content, Content::Blob(_));
        Stored {
            id,
            bytes: bytes_of(draft.content, input),
            is_blob,
            key: draft.key,
            dedupe: draft.dedupe,
            occurred_ms: draft.occurred_ms,
            attributes: draft.attributes,
            doubt: draft.doubt,
        }
    }

    /// A few lines, with bytes that are not printable escaped.
    pub fn describe(&self) -> String {
        let mut text = format!("message {}", self.id);
        for (name, value) in [("key", &self.key), ("dedupe", &self.dedupe)] {
            if let Some(value) = value {
                let _ = write!(text, ", {name} {value}");
            }
        }
        if let Some(ms) = self.occurred_ms {
            let _ = write!(text, ", occurred {ms}");
        }
        if let Some(doubt) = &self.doubt {
            let _ = write!(text, ", doubt {doubt}");
        }
        text.push('\n');
        for (name, value) in self.attributes.iter() {
            let _ = writeln!(text, "  {name}: {value}");
        }
        let _ = match std::str::from_utf8(&self.bytes) {
            Ok(shown) => writeln!(text, "  {}", shown.escape_debug()),
            Err(_) => writeln!(text, "  {}", self.bytes.escape_ascii()),
        };
        text
    }
}

/// The limits of the contract.
fn check(draft: &Draft) {
    let short = |text: &Option<String>| text.as_ref().is_none_or(|text| text.len() <= 256);
    assert!(short(&draft.key) && short(&draft.dedupe), "a key has at most 256 bytes: {draft:?}");
    assert!(draft.attributes.len() <= 64, "a message has at most 64 attributes: {draft:?}");
    for (name, value) in draft.attributes.iter() {
        let right = name.len() <= 64 && value.len() <= 4096 && name == name.to_lowercase();
        assert!(right, "no attribute: {name}: {value}");
    }
    assert!(draft.ticket.len() <= 4096, "a ticket has at most 4 KiB: {draft:?}");
}

fn bytes_of(content: Content, input: Option<&Body>) -> Vec<u8> {
    match content {
        Content::Inline(bytes) => {
            assert!(bytes.len() <= crate::INLINE_BYTES_MAX, "a longer body is a blob");
            bytes
        }
        Content::Blob(blob) => readable(blob.read_all()),
        Content::Spans(spans) => spans.into_iter().flat_map(|span| cut(input, span)).collect(),
    }
}

fn cut(input: Option<&Body>, span: Span) -> Vec<u8> {
    let all = input.map(|body| readable(body.bytes()).into_owned()).unwrap_or_default();
    let start = usize::try_from(span.start).unwrap_or(usize::MAX);
    let part = all.get(start..).and_then(|rest| rest.get(..span.len as usize));
    assert!(part.is_some(), "{span:?} lies outside the input");
    part.unwrap_or_default().to_vec()
}

fn readable<T: Default>(bytes: Result<T, blobs::Error>) -> T {
    assert!(bytes.is_ok(), "a blob cannot be read: {:?}", bytes.as_ref().err());
    bytes.unwrap_or_default()
}

/// Bytes of an item that count towards a limit.
pub(crate) fn size_of(item: &Item) -> u64 {
    match item {
        Item::Message(draft) => match &draft.content {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::Blob(blob) => blob.size(),
            Content::Spans(spans) => spans.iter().map(|span| u64::from(span.len)).sum(),
        },
        Item::Refused(_) | Item::Control(_) => 0,
    }
}
