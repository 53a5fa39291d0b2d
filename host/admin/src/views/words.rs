//! Schemas of the states that are types of the model, which knows no schemas.

use portway_model::{DeliveryState, MessageStatus};
use schemars::{Schema, SchemaGenerator, json_schema};

pub(crate) fn message_status(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<_> = MessageStatus::ALL.iter().map(|status| status.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}

pub(crate) fn optional_message_status(generator: &mut SchemaGenerator) -> Schema {
    message_status(generator)
}

pub(crate) fn delivery_state(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<_> = DeliveryState::ALL.iter().map(|state| state.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}
