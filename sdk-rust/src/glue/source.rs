//! What all kinds of sources convert.

use crate::glue::convert;
use crate::glue::services::portway::plugin::types as wit;
use crate::{Content, Draft, Fate, Item, Receipt};

pub fn item(item: Item) -> wit::Item {
    match item {
        Item::Message(message) => wit::Item::Message(draft(message)),
        Item::Refused(refusal) => wit::Item::Refused(wit::Refusal {
            failure: convert::failure(refusal.failure),
            ticket: refusal.ticket,
        }),
        Item::Control(ticket) => wit::Item::Control(ticket),
    }
}

fn draft(draft: Draft) -> wit::Draft {
    wit::Draft {
        content: content(draft.content),
        key: draft.key,
        dedupe: draft.dedupe,
        occurred_ms: draft.occurred_ms,
        attributes: draft.attributes.into_pairs(),
        doubt: draft.doubt.map(convert::failure),
        ticket: draft.ticket,
    }
}

fn content(content: Content) -> wit::Content {
    match content {
        Content::Spans(spans) => {
            let spans = spans.into_iter().map(|span| wit::Span { start: span.start, len: span.len });
            wit::Content::Spans(spans.collect())
        }
        Content::Inline(bytes) => wit::Content::Inline(bytes),
        Content::Blob(blob) => wit::Content::Blob(blob.0.0),
    }
}

pub fn receipt(receipt: wit::Receipt) -> Receipt {
    let fate = match receipt.fate {
        wit::Fate::Stored(id) => Fate::Stored(id),
        wit::Fate::Duplicate(id) => Fate::Duplicate(id),
        wit::Fate::NotStored(later) => Fate::NotStored(convert::later_in(later)),
        wit::Fate::Noted => Fate::Noted,
    };
    Receipt { fate, ticket: receipt.ticket }
}
