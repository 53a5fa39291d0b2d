//! Answers: what became of the messages of a request, or why it holds none.

use portway_sdk::{Fate, HttpAnswer, Later, Receipt};
use serde::Serialize;

use crate::settings::{Success, SuccessBody};

const JSON: &str = "application/json";
/// Seconds to wait where the host does not say.
const RETRY_AFTER_S: u32 = 5;

/// What went wrong, as JSON.
#[derive(Serialize)]
struct Problem<'a> {
    code: &'a str,
    message: &'a str,
    /// The byte of the body where it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
}

/// The ids, in the order of the messages.
#[derive(Default, Serialize)]
struct Ids {
    /// Of the only message.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    ids: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    duplicates: Vec<Duplicate>,
}

/// A message that was there before.
#[derive(Serialize)]
struct Duplicate {
    /// From 0.
    index: usize,
    /// Of the message it repeats.
    id: u64,
}

/// A request that is refused.
pub fn refusal(status: u16, code: &str, message: &str, at: Option<u64>) -> HttpAnswer {
    json(status, &Problem { code, message, at })
}

/// A request whose messages the host has decided on.
pub fn of_receipts(success: &Success, receipts: &[Receipt]) -> HttpAnswer {
    let mut ids = Ids::default();
    for (index, receipt) in receipts.iter().enumerate() {
        match &receipt.fate {
            Fate::Stored(id) => ids.ids.push(*id),
            Fate::Duplicate(id) => {
                ids.ids.push(*id);
                ids.duplicates.push(Duplicate { index, id: *id });
            }
            // All are stored, or none.
            Fate::NotStored(later) => return not_stored(later),
            Fate::Noted => {}
        }
    }
    if let [id] = ids.ids.as_slice() {
        ids.id = Some(*id);
    }
    match &success.body {
        SuccessBody::Ids => json(success.status, &ids),
        SuccessBody::None => HttpAnswer { status: success.status, ..HttpAnswer::default() },
        SuccessBody::Text { content_type, text } => HttpAnswer {
            status: success.status,
            headers: vec![("content-type".into(), content_type.clone())],
            body: text.clone().into_bytes(),
        },
    }
}

fn not_stored(later: &Later) -> HttpAnswer {
    let (code, text) = (later.failure.code.as_str(), later.failure.text.as_str());
    match code {
        "too-large" => refusal(413, code, text, None),
        "invalid" => refusal(400, code, text, None),
        // `busy`, `full`, `stopped`, and what is not known yet: it may work later.
        _ => {
            let seconds = later.after_ms.map_or(RETRY_AFTER_S, |ms| ms.div_ceil(1000).max(1));
            let mut answer = refusal(503, code, text, None);
            answer.headers.push(("retry-after".into(), seconds.to_string()));
            answer
        }
    }
}

fn json(status: u16, body: &impl Serialize) -> HttpAnswer {
    HttpAnswer {
        status,
        headers: vec![("content-type".into(), JSON.into())],
        // Numbers and texts can always be written.
        body: serde_json::to_vec(body).unwrap_or_default(),
    }
}
