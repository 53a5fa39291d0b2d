//! The OpenAPI document: of the types that the handlers take and give, and a table of their routes.
//!
//! The table stands beside the routes, and a test holds the two equal. The document is committed as
//! `docs/reference/openapi.json`; `cargo xtask gen` writes it.

use std::sync::LazyLock;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::{params, views};

/// One thing that can be asked.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    description: &'static str,
    /// Schema of the query; none: there is none.
    query: Option<Write>,
    /// Schema of the request's body; none: there is none.
    request: Option<Write>,
    /// The body is bytes as they are.
    takes_bytes: bool,
    answer: Answer,
    /// Statuses of errors beside those that any request can meet.
    errors: &'static [u16],
}

/// Writes the schema of one type.
type Write = fn(&mut SchemaGenerator) -> Schema;

/// What comes back.
enum Answer {
    Json(Write),
    /// JSON, also with a status that says no.
    Health(Write),
    Raw(&'static str),
    Events,
}

macro_rules! schema {
    ($type:ty) => {
        |generator: &mut SchemaGenerator| generator.subschema_for::<$type>()
    };
}

const NO_OPERATION: Operation = Operation {
    method: "get",
    path: "",
    id: "",
    summary: "",
    description: "",
    query: None,
    request: None,
    takes_bytes: false,
    answer: Answer::Raw("text/plain"),
    errors: &[],
};

const OPERATIONS: &[Operation] = &[
    Operation {
        path: "/health",
        id: "getHealth",
        summary: "Whether the engine lives",
        description: "The only operation without a token, for whatever watches the process.",
        answer: Answer::Health(schema!(views::Health)),
        ..NO_OPERATION
    },
    Operation {
        path: "/metrics",
        id: "getMetrics",
        summary: "Metrics in Prometheus' text format",
        description: "The names are in `docs/reference/metrics.md`.",
        answer: Answer::Raw("text/plain; version=0.0.4; charset=utf-8"),
        errors: &[500, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/status",
        id: "getStatus",
        summary: "Everything that can be seen at one moment",
        answer: Answer::Json(schema!(views::Status)),
        errors: &[500, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/stream",
        id: "streamChanges",
        summary: "Changes as they happen",
        description: "Server-sent events. The first tell everything, later ones what changed since, at most \
            once a second: `engine` (EngineNow), `interface` (Interface), and `trouble` (Trouble) while \
            nothing can be told. A comment comes when nothing else does for 15 seconds. A stream ends after \
            ten minutes or when the engine stops; ask again. Beyond 16 streams the answer is 503.",
        answer: Answer::Events,
        errors: &[503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/openapi.json",
        id: "getOpenapi",
        summary: "This document",
        answer: Answer::Raw("application/json"),
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/refusals",
        id: "listRefusals",
        summary: "What was refused before it was a message",
        description: "The newest first, as far as it is known when it was.",
        answer: Answer::Json(schema!(Vec<views::Refused>)),
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/messages",
        id: "listMessages",
        summary: "Messages, newest first",
        description: "In pages: `next` of an answer is the `cursor` of the next page.",
        query: Some(schema!(params::ListMessages)),
        answer: Answer::Json(schema!(views::MessagePage)),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/messages/{id}",
        id: "getMessage",
        summary: "One message with its deliveries, attempts and actions",
        answer: Answer::Json(schema!(views::MessageDetail)),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/messages/{id}/body",
        id: "getBody",
        summary: "The bytes of a message as received",
        answer: Answer::Raw("application/octet-stream"),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/messages/{id}/outputs/{name}",
        id: "getOutput",
        summary: "The bytes that the sender of a destination was given",
        description: "Where the destination has `save_output = true`.",
        answer: Answer::Raw("application/octet-stream"),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/messages/{id}/resend",
        id: "resendMessage",
        summary: "Start finished or quarantined deliveries of a message anew",
        request: Some(schema!(params::Act)),
        answer: Answer::Json(schema!(views::ActionDone)),
        errors: &[404, 409, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/messages/{id}/dismiss",
        id: "dismissMessage",
        summary: "Decide that deliveries of a message are not to be sent",
        description: "A reason is needed.",
        request: Some(schema!(params::Act)),
        answer: Answer::Json(schema!(views::ActionDone)),
        errors: &[404, 409, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/messages/resend",
        id: "resendMessages",
        summary: "Start finished or quarantined deliveries of many messages anew",
        description: "Of up to 500 messages, by their numbers or as a search finds them. The same `request` \
            made again does nothing twice.",
        request: Some(schema!(params::BulkAct)),
        answer: Answer::Json(schema!(views::BulkDone)),
        errors: &[404, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/messages/dismiss",
        id: "dismissMessages",
        summary: "Decide that deliveries of many messages are not to be sent",
        description: "As `resendMessages`; a reason is needed.",
        request: Some(schema!(params::BulkAct)),
        answer: Answer::Json(schema!(views::BulkDone)),
        errors: &[404, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/messages/{id}/edit",
        id: "editMessage",
        summary: "Store a corrected copy of a message and deliver it",
        description: "The body of the request is the new message; the original stays as it is.",
        query: Some(schema!(params::Edit)),
        takes_bytes: true,
        answer: Answer::Json(schema!(views::Edited)),
        errors: &[404, 409, 413, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/destinations/{interface}/{name}/pause",
        id: "pauseDestination",
        summary: "Send nothing new to a destination",
        description: "Also over restarts, until it is resumed. A reason is needed.",
        request: Some(schema!(params::Word)),
        answer: Answer::Json(schema!(views::DestinationActionDone)),
        errors: &[404, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/destinations/{interface}/{name}/resume",
        id: "resumeDestination",
        summary: "Let a paused, stopped or waiting destination go on",
        request: Some(schema!(params::Word)),
        answer: Answer::Json(schema!(views::DestinationActionDone)),
        errors: &[404, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/destinations/{interface}/{name}/lanes/skip",
        id: "skipHead",
        summary: "Dismiss the message that blocks a lane",
        description: "A reason is needed.",
        request: Some(schema!(params::ActOnLane)),
        answer: Answer::Json(schema!(views::ActionDone)),
        errors: &[404, 409, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/destinations/{interface}/{name}/lanes/retry",
        id: "retryHead",
        summary: "Try the message that blocks a lane now",
        request: Some(schema!(params::ActOnLane)),
        answer: Answer::Json(schema!(views::ActionDone)),
        errors: &[404, 409, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/destinations/{interface}/{name}/actions",
        id: "listDestinationActions",
        summary: "What operators did to a destination",
        answer: Answer::Json(schema!(Vec<views::DestinationActionRecord>)),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/destinations/{interface}/{name}/state",
        id: "listState",
        summary: "What plugins keep for a destination",
        query: Some(schema!(params::ListState)),
        answer: Answer::Json(schema!(views::StatePage)),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/destinations/{interface}/{name}/state/value",
        id: "getState",
        summary: "One value that a plugin keeps for a destination",
        query: Some(schema!(params::GetState)),
        answer: Answer::Json(schema!(views::StateValue)),
        errors: &[404, 422, 503],
        ..NO_OPERATION
    },
    Operation {
        path: "/api/v1/retention",
        id: "listRetention",
        summary: "How long messages are kept",
        description: "Of every interface: what is configured, applied, changing and waiting, and what is kept \
            beyond its window.",
        answer: Answer::Json(schema!(views::Retentions)),
        errors: &[500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/destinations/{interface}/{name}/state/remove",
        id: "removeState",
        summary: "Remove such a value",
        description: "What is in hand goes on with what it has read, and may write the value anew; pause the \
            destination first where that matters.",
        request: Some(schema!(params::RemoveState)),
        answer: Answer::Json(schema!(views::StateRemoved)),
        errors: &[404, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/retention/{interface}/confirm",
        id: "confirmRetention",
        summary: "Agree to a retention that removes messages",
        description: "Until then the one that keeps more counts.",
        request: Some(schema!(params::Word)),
        answer: Answer::Json(schema!(views::RetentionConfirmed)),
        errors: &[404, 409, 422, 500, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/drain",
        id: "drain",
        summary: "Take nothing new and deliver what there is",
        request: Some(schema!(params::Drain)),
        answer: Answer::Json(schema!(views::Draining)),
        errors: &[422, 503],
        ..NO_OPERATION
    },
    Operation {
        method: "delete",
        path: "/api/v1/drain",
        id: "cancelDrain",
        summary: "Take messages again",
        answer: Answer::Json(schema!(views::Draining)),
        errors: &[503],
        ..NO_OPERATION
    },
    Operation {
        method: "post",
        path: "/api/v1/backup",
        id: "backup",
        summary: "Copy the store into a file that does not exist yet",
        request: Some(schema!(params::Backup)),
        answer: Answer::Json(schema!(views::Backup)),
        errors: &[422, 500],
        ..NO_OPERATION
    },
];

/// Statuses that any request can meet, and what they mean.
const ERRORS_OF_ALL: &[u16] = &[401, 403, 421, 504];

/// Its route.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/api/v1/openapi.json", get(show))
}

async fn show() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(document);
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// The document as it is committed and served.
pub fn document() -> String {
    let mut answers = generator(Contract::Serialize);
    let mut requests = generator(Contract::Deserialize);
    let error = answers.subschema_for::<views::Error>();
    // Told by the stream alone, so no answer leads to them.
    let _ = (answers.subschema_for::<views::EngineNow>(), answers.subschema_for::<views::Trouble>());
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(operation.method.to_owned(), operation.written(&mut answers, &mut requests, &error));
        }
    }
    let mut schemas = answers.take_definitions(true);
    schemas.extend(requests.take_definitions(true));
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portway's local API",
            "summary": "What the commands and the web page ask of a running engine.",
            "description": "It listens on loopback alone. Every error has the body `Error`: a code that has a \
                page in `docs/reference/errors/`, a message for people, and the id of the request in the log.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:8620", "description": "Where an engine listens if nothing is said" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "`token` of `control.json` in the engine's data folder, a new one at each start.",
            } },
        },
    });
    format!("{document:#}\n")
}

fn generator(contract: Contract) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.contract = contract;
        settings.meta_schema = None;
    });
    settings.into_generator()
}

impl Operation {
    fn written(
        &self,
        answers: &mut SchemaGenerator,
        requests: &mut SchemaGenerator,
        error: &Schema,
    ) -> Value {
        let mut written = json!({ "operationId": self.id, "summary": self.summary });
        let mut put = |name: &str, value: Value| {
            if let Some(written) = written.as_object_mut() {
                written.insert(name.to_owned(), value);
            }
        };
        if !self.description.is_empty() {
            put("description", json!(self.description));
        }
        let mut parameters = path_parameters(self.path);
        if let Some(query) = self.query {
            parameters.extend(query_parameters(&query(requests), requests));
        }
        if !parameters.is_empty() {
            put("parameters", Value::Array(parameters));
        }
        if let Some(request) = self.request {
            let schema = request(requests);
            put(
                "requestBody",
                json!({ "required": true, "content": { "application/json": { "schema": schema } } }),
            );
        }
        if self.takes_bytes {
            let content = json!({ "application/octet-stream": {} });
            put("requestBody", json!({ "required": true, "content": content }));
        }
        if self.path == "/health" {
            put("security", json!([]));
        }
        put("responses", self.responses(answers, error));
        written
    }

    fn responses(&self, answers: &mut SchemaGenerator, error: &Schema) -> Value {
        let mut responses = Map::new();
        let of_json = |schema: Schema| json!({ "application/json": { "schema": schema } });
        let of_type = |content_type: &str| json!({ content_type: {} });
        let good = match &self.answer {
            Answer::Json(write) => of_json(write(answers)),
            Answer::Health(write) => {
                let content = of_json(write(answers));
                let text = "The engine starts or stops";
                responses.insert("503".to_owned(), json!({ "description": text, "content": content }));
                content
            }
            Answer::Raw(content_type) => of_type(content_type),
            Answer::Events => of_type("text/event-stream"),
        };
        responses.insert("200".to_owned(), json!({ "description": "Done", "content": good }));
        for status in ERRORS_OF_ALL.iter().chain(self.errors) {
            if self.path == "/health" && *status == 401 {
                continue;
            }
            let response = json!({ "description": meaning(*status), "content": of_json(error.clone()) });
            responses.insert(status.to_string(), response);
        }
        Value::Object(responses)
    }
}

/// What a status says here.
fn meaning(status: u16) -> &'static str {
    match status {
        401 => "The token is missing or wrong",
        403 => "The request comes from another site's page",
        404 => "There is no such thing",
        409 => "It does not fit the state of things",
        413 => "The body is too large",
        421 => "The Host header does not name this engine",
        422 => "It was asked wrongly",
        500 => "It was tried and did not work",
        503 => "Ask again later",
        504 => "There was no answer in time",
        _ => "It did not work",
    }
}

/// `{id}` is a message's number, every other part a name of the project.
fn path_parameters(path: &str) -> Vec<Value> {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters = parts.map(|name| {
        let schema = match name {
            "id" => json!({ "type": "integer", "format": "uint64", "minimum": 1 }),
            _ => json!({ "type": "string" }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    parameters.collect()
}

/// The fields of a query's type, each a parameter. The type itself is no part of the document then.
fn query_parameters(reference: &Schema, requests: &mut SchemaGenerator) -> Vec<Value> {
    let named = reference.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let Some(schema) = named.and_then(|name| requests.definitions_mut().remove(name)) else {
        return Vec::new();
    };
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let parameters = properties.into_iter().map(|(name, mut schema)| {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let description = description.unwrap_or_default();
        let description = description.as_str().unwrap_or_default();
        json!({ "name": name, "in": "query", "required": false, "description": description, "schema": schema })
    });
    parameters.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Method and path of every `.route(…)` in a source file.
    fn routes_of(source: &str) -> BTreeSet<(String, String)> {
        let code = source.split("#[cfg(test)]").next().unwrap();
        let mut found = BTreeSet::new();
        for line in code.split(".route(\"").skip(1) {
            let (path, rest) = line.split_once('"').unwrap();
            // Up to the parenthesis that closes the call; there may be `get(a).post(b)`.
            let mut depth = 1;
            let is_inside = |character: &char| {
                depth += i32::from(*character == '(') - i32::from(*character == ')');
                depth > 0
            };
            let of_route: String = rest.chars().take_while(is_inside).collect();
            for method in ["get", "post", "put", "patch", "delete"] {
                if of_route.contains(&format!("{method}(")) {
                    found.insert((method.to_owned(), path.to_owned()));
                }
            }
        }
        found
    }

    #[test]
    fn the_table_has_every_route_and_no_other() {
        let sources = [include_str!("handlers.rs"), include_str!("stream.rs"), include_str!("openapi.rs")];
        let routed: BTreeSet<_> = sources.iter().flat_map(|source| routes_of(source)).collect();
        let documented: BTreeSet<_> =
            OPERATIONS.iter().map(|one| (one.method.to_owned(), one.path.to_owned())).collect();
        assert_eq!(routed, documented, "write the route into the table of host/admin/src/openapi.rs");
        assert_eq!(documented.len(), OPERATIONS.len(), "an operation is there twice");
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_id_is_its_own() {
        let text = document();
        let document: Value = serde_json::from_str(&text).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for part in text.split("\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is not there");
        }
        let ids: BTreeSet<_> = OPERATIONS.iter().map(|one| one.id).collect();
        assert_eq!(ids.len(), OPERATIONS.len());
        let limit = &document["paths"]["/api/v1/messages"]["get"]["parameters"];
        assert!(limit.as_array().unwrap().iter().any(|one| one["name"] == "limit" && one["in"] == "query"));
        assert_eq!(document["components"]["schemas"]["Error"]["required"].as_array().unwrap().len(), 3);
    }
}
