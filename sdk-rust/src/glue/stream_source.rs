//! Stream sources.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::glue::convert;
use crate::glue::services::portway::plugin::types as wit;
use crate::{Attributes, Codec, Content, Draft, Fate, Item, Receipt, Step, StreamSource};
use bindings::exports::portway::plugin::stream_source as exported;

pub mod bindings {
    //! Generated.

    wit_bindgen::generate!({
        path: "../wit",
        world: "portway:plugin/stream-source-plugin@0.1.0",
        with: {
            "portway:host/blobs@0.1.0": crate::glue::services::portway::host::blobs,
            "portway:host/connect@0.1.0": crate::glue::services::portway::host::connect,
            "portway:host/files@0.1.0": crate::glue::services::portway::host::files,
            "portway:host/log@0.1.0": crate::glue::services::portway::host::log,
            "portway:host/progress@0.1.0": crate::glue::services::portway::host::progress,
            "portway:host/text@0.1.0": crate::glue::services::portway::host::text,
            "portway:plugin/types@0.1.0": crate::glue::services::portway::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "portway_sdk::glue::stream_source::bindings",
    });
}

/// What is exported for an author's type.
pub struct Plugin<T>(PhantomData<T>);

impl<T: StreamSource> exported::Guest for Plugin<T> {
    type Listener = Opened<T>;
    type Connection = Accepted<T::Codec>;
}

/// One interface's settings. The host never calls an instance that is in a call.
pub struct Opened<T>(RefCell<T>);

impl<T: StreamSource> exported::GuestListener for Opened<T> {
    fn open(context: wit::Context) -> Result<exported::Listener, wit::Failure> {
        let (settings, context) = convert::opening(context)?;
        let opened = T::open(settings, &context).map_err(convert::failure)?;
        Ok(exported::Listener::new(Opened(RefCell::new(opened))))
    }

    fn accept(&self, peer: Vec<(String, String)>, first: u64) -> Result<exported::Connection, wit::Failure> {
        let peer = Attributes::from(peer);
        let codec = self.0.borrow_mut().accept(&peer, first).map_err(convert::failure)?;
        Ok(exported::Connection::new(Accepted(RefCell::new(codec))))
    }

    fn settle(&self, receipts: Vec<wit::Receipt>) -> Result<exported::Reply, wit::Failure> {
        let receipts = receipts.into_iter().map(receipt).collect();
        let reply = self.0.borrow_mut().settle(receipts).map_err(convert::failure)?;
        Ok(exported::Reply { bytes: reply.bytes, close: reply.close })
    }
}

/// One connection's codec.
pub struct Accepted<C>(RefCell<C>);

impl<C: Codec> exported::GuestConnection for Accepted<C> {
    fn receive(&self, chunk: Vec<u8>) -> Result<exported::Step, wit::Failure> {
        self.0.borrow_mut().receive(&chunk).map(step).map_err(convert::failure)
    }

    fn finish(&self, why: String) -> Result<exported::Step, wit::Failure> {
        self.0.borrow_mut().finish(why.into()).map(step).map_err(convert::failure)
    }
}

fn step(step: Step) -> exported::Step {
    exported::Step { items: step.items.into_iter().map(item).collect(), keep_from: step.keep_from }
}

fn item(item: Item) -> wit::Item {
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

fn receipt(receipt: wit::Receipt) -> Receipt {
    let fate = match receipt.fate {
        wit::Fate::Stored(id) => Fate::Stored(id),
        wit::Fate::Duplicate(id) => Fate::Duplicate(id),
        wit::Fate::NotStored(later) => Fate::NotStored(convert::later_in(later)),
        wit::Fate::Noted => Fate::Noted,
    };
    Receipt { fate, ticket: receipt.ticket }
}
