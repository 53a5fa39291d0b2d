//! What messages of a request say beside their bytes.

use portway_records::Record;
use portway_sdk::{Attributes, Draft, HttpRequest, Item, key_of, log};

use crate::elements::POINTER_BYTES_MAX;
use crate::place::Place;
use crate::settings::{Dedupe, Rules};

/// Bytes of an attribute's value, by the contract.
const VALUE_BYTES_MAX: usize = 4096;
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Makes the drafts of one request.
pub struct Drafter<'a> {
    rules: &'a Rules,
    /// Those that all messages of the request have.
    attributes: Attributes,
    key: Option<String>,
    dedupe: Option<String>,
    said_no_key: bool,
}

impl<'a> Drafter<'a> {
    /// With what the request itself says.
    pub fn new(rules: &'a Rules, request: &HttpRequest) -> Drafter<'a> {
        let value = |place: &Place| place.of_request(request);
        let mut attributes = Attributes::new();
        if let Some(content_type) = request.header("content-type") {
            attributes.push("content-type", cut(content_type.to_owned()));
        }
        for (name, place) in &rules.attributes {
            if let Some(value) = value(place) {
                attributes.push(name.clone(), cut(value));
            }
        }
        let dedupe = match &rules.dedupe {
            Dedupe::No => None,
            Dedupe::At(place) => value(place),
            Dedupe::IdempotencyKey => request.header(IDEMPOTENCY_KEY).map(str::to_owned),
        };
        Drafter { rules, attributes, key: rules.key.as_ref().and_then(value), dedupe, said_no_key: false }
    }

    /// Whether drafts depend on the bytes of their elements.
    pub fn wants_bytes(rules: &Rules) -> bool {
        let is_json = |place: &Place| matches!(place, Place::Json(_));
        rules.key.as_ref().is_some_and(is_json)
            || matches!(&rules.dedupe, Dedupe::At(place) if is_json(place))
            || !rules.element_attributes.is_empty()
    }

    /// The message of an element; `number` counts from 1.
    pub fn draft(&mut self, record: Record, bytes: &[u8], number: usize) -> Item {
        let len = u32::try_from(record.len).unwrap_or(u32::MAX);
        let mut draft = Draft::of_span(record.start, len, Vec::new());
        draft.attributes = self.attributes.clone();
        for (name, pointer) in &self.rules.element_attributes {
            if let Some(value) = pointer.find(bytes) {
                draft.attributes.push(name.clone(), cut(value));
            }
        }
        draft.key = match &self.rules.key {
            Some(Place::Json(pointer)) => pointer.find(bytes),
            _ => self.key.clone(),
        }
        .and_then(key_of);
        if self.rules.key.is_some() && draft.key.is_none() {
            self.say_no_key(record, number);
        }
        draft.dedupe = match &self.rules.dedupe {
            Dedupe::At(Place::Json(pointer)) => pointer.find(bytes),
            // One name for all elements of a request would make all but one repetitions.
            Dedupe::IdempotencyKey | Dedupe::At(_) if self.rules.format.is_some() => {
                self.dedupe.as_ref().map(|name| format!("{name}#{number}"))
            }
            Dedupe::IdempotencyKey | Dedupe::At(_) => self.dedupe.clone(),
            Dedupe::No => None,
        }
        .and_then(key_of);
        Item::Message(draft)
    }

    /// Once a request: a message without a key waits for no other.
    fn say_no_key(&mut self, record: Record, number: usize) {
        if !std::mem::replace(&mut self.said_no_key, true) {
            let looked_at = match record.len > POINTER_BYTES_MAX {
                true => format!(" in its first {POINTER_BYTES_MAX} bytes"),
                false => String::new(),
            };
            log::notice("no-key", format!("message {number} of a request has no order key{looked_at}"));
        }
    }
}

fn cut(mut value: String) -> String {
    value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
    value
}
