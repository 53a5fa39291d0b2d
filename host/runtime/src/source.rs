//! What all kinds of sources share: items as a source hands them over, checked and with their
//! bytes, and what becomes of them.
//!
//! A message's spans lie within the input that is kept and was fed, rising and apart: bytes of
//! a message are the peer's, byte for byte.

use bytes::{Bytes, BytesMut};
use portway_bindings::portway::plugin::types as wit;
use portway_model::{Draft, Failure, Later, MessageId, Timestamp};

use crate::convert::{Lie, attributes_in, blob_in, failure_in, key_in, number_in, ticket_in};
use crate::fault::{CallError, Fault};
use crate::guest::Guest;
use crate::kept::Kept;

/// Items of one step may name bytes more than once, but not without end.
const NAMED_TIMES_MAX: usize = 4;
/// What may be named in any case.
const NAMED_BYTES_MIN: usize = 1 << 20;

/// What a source found, in the order it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceItem {
    Message {
        draft: Draft,
        ticket: Bytes,
    },
    /// Input that became no message.
    Refused {
        failure: Failure,
        ticket: Bytes,
    },
    /// A part of the protocol that carries no message but wants an answer.
    Control {
        ticket: Bytes,
    },
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub fate: Fate,
    pub ticket: Bytes,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Stored(MessageId),
    /// The message it repeats.
    Duplicate(MessageId),
    NotStored(Later),
    /// It was a refusal or a control item.
    Noted,
}

/// Why a connection or a request does not go on, or why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The plugin refused the connection, its bytes or the request.
    #[error("the source refused: {0}")]
    Refused(Failure),
    #[error("the source refused its settings: {0}")]
    Open(Failure),
    #[error("{0}")]
    Fault(Box<Fault>),
    #[error("no instance of the source became free in time")]
    Busy,
    /// It ended with an earlier call.
    #[error("the connection has ended")]
    Closed,
}

/// Reads the items of a step that was given input up to `fed`.
pub(crate) fn items_in(
    guest: &mut Guest,
    kept: &Kept,
    fed: u64,
    control: bool,
    items: Vec<wit::Item>,
) -> Result<Vec<SourceItem>, Lie> {
    let mut named_left = kept.len().saturating_mul(NAMED_TIMES_MAX).max(NAMED_BYTES_MIN);
    let mut read = Vec::with_capacity(items.len());
    for (n, item) in items.into_iter().enumerate() {
        let item = match item {
            wit::Item::Message(draft) => message_in(guest, kept, fed, &mut named_left, draft),
            wit::Item::Refused(refusal) => ticket_in(refusal.ticket)
                .map(|ticket| SourceItem::Refused { failure: failure_in(refusal.failure), ticket }),
            wit::Item::Control(_) if !control => {
                Err("`control` without `control = true` in the manifest".into())
            }
            wit::Item::Control(ticket) => ticket_in(ticket).map(|ticket| SourceItem::Control { ticket }),
        };
        read.push(item.map_err(|lie| format!("item {n}: {lie}"))?);
    }
    Ok(read)
}

fn message_in(
    guest: &mut Guest,
    kept: &Kept,
    fed: u64,
    named_left: &mut usize,
    draft: wit::Draft,
) -> Result<SourceItem, Lie> {
    let body = match draft.content {
        wit::Content::Spans(spans) => spans_in(kept, fed, named_left, &spans)?,
        wit::Content::Inline(bytes) => bytes.into(),
        wit::Content::Blob(blob) => blob_in(guest, &blob)?,
    };
    let occurred_at = match draft.occurred_ms {
        Some(ms) => Some(Timestamp(number_in(ms, "occurred-ms")?)),
        None => None,
    };
    let message = Draft {
        body,
        key: key_in(draft.key, "a key")?,
        dedupe: key_in(draft.dedupe, "a dedupe key")?,
        occurred_at,
        attributes: attributes_in(&guest.facts, draft.attributes)?,
        doubt: draft.doubt.map(failure_in),
    };
    Ok(SourceItem::Message { draft: message, ticket: ticket_in(draft.ticket)? })
}

fn spans_in(kept: &Kept, fed: u64, named_left: &mut usize, spans: &[wit::Span]) -> Result<Bytes, Lie> {
    let mut end = kept.first();
    let mut total = 0_usize;
    for span in spans {
        let after = span.start.saturating_add(u64::from(span.len));
        if span.start < end || after > fed {
            return Err(format!("span {} + {} is not within {end} to {fed}", span.start, span.len));
        }
        end = after;
        total = total.saturating_add(span.len as usize);
    }
    let Some(left) = named_left.checked_sub(total) else {
        return Err("the same input is named too often".into());
    };
    *named_left = left;
    let cut = |span: &wit::Span| {
        kept.cut(span.start, span.len as usize).ok_or_else(|| "a span of what is not kept".to_owned())
    };
    if let [span] = spans {
        return cut(span);
    }
    let mut body = BytesMut::with_capacity(total);
    for span in spans {
        body.extend_from_slice(&cut(span)?);
    }
    Ok(body.freeze())
}

/// As a guest sees them.
pub(crate) fn receipts_of(receipts: Vec<Receipt>) -> Vec<wit::Receipt> {
    receipts.into_iter().map(receipt_of).collect()
}

fn receipt_of(receipt: Receipt) -> wit::Receipt {
    let fate = match receipt.fate {
        Fate::Stored(id) => wit::Fate::Stored(id.0),
        Fate::Duplicate(id) => wit::Fate::Duplicate(id.0),
        Fate::NotStored(later) => wit::Fate::NotStored(wit::Later {
            failure: wit::Failure { code: later.failure.code, text: later.failure.text },
            after_ms: later.after_ms,
        }),
        Fate::Noted => wit::Fate::Noted,
    };
    wit::Receipt { fate, ticket: receipt.ticket.into() }
}

impl From<CallError> for SourceError {
    fn from(error: CallError) -> SourceError {
        match error {
            CallError::Open(failure) => SourceError::Open(failure),
            CallError::Fault(fault) => SourceError::Fault(fault),
            CallError::Busy => SourceError::Busy,
            // A source has no way to say it while it is opened.
            CallError::Trouble(_) => SourceError::Closed,
        }
    }
}
