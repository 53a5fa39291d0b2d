//! Storing messages, their bodies and their deliveries.

use portway_model::{Failure, MessageStatus, Timestamp};
use portway_store::{MessageOutcome, NewMessage, Origin, OriginKind};

use crate::body::BodyId;
use crate::number::stored;
use crate::script::{IntArray, ROWS_MAX, Script};

/// A message of a batch, or of a route in it.
pub(crate) struct Candidate<'a> {
    pub(crate) new: &'a NewMessage,
    /// The result whose route it is; none: it stands in the batch itself.
    pub(crate) result: Option<usize>,
    /// Where its body was written ahead, if it is large.
    pub(crate) body_id: Option<BodyId>,
}

/// What becomes of a candidate.
#[derive(Clone, Copy)]
pub(crate) enum Seen {
    Never,
    /// Same dedupe key, same body.
    Before(i64),
    /// Same dedupe key, other body.
    WithOtherBody(i64),
}

/// A message with its number.
pub(crate) struct Numbered<'a> {
    pub(crate) id: i64,
    pub(crate) candidate: &'a Candidate<'a>,
    pub(crate) seen: Seen,
}

const COLUMNS: usize = 15;
const HEAD: &str =
    "INSERT INTO messages (id, interface_id, status, stored_at, body_bytes, body_id, group_id, tier,
    received_at, occurred_at, key, dedupe_key, attributes, origin_id, origin_kind) SELECT * FROM ";
const FILLED: &str = " WHERE column1 IS NOT NULL";

impl Numbered<'_> {
    fn message(&self) -> &NewMessage {
        self.candidate.new
    }

    fn is_duplicate(&self) -> bool {
        matches!(self.seen, Seen::Before(_))
    }

    fn status(&self) -> MessageStatus {
        match (self.seen, self.message().deliveries.is_empty(), &self.message().draft.doubt) {
            (Seen::Before(_), ..) => MessageStatus::Duplicate,
            (_, true, _) => MessageStatus::Finished,
            (_, false, Some(_)) => MessageStatus::Quarantined,
            (_, false, None) => MessageStatus::Pending,
        }
    }

    fn origin(&self) -> Option<(i64, OriginKind)> {
        match self.seen {
            Seen::Before(of) => Some((of, OriginKind::Duplicate)),
            Seen::WithOtherBody(other) => Some((other, OriginKind::Conflict)),
            Seen::Never => self.message().origin.map(|Origin { message, kind }| (stored(message.0), kind)),
        }
    }

    pub(crate) fn outcome(&self) -> MessageOutcome {
        let id = crate::number::given(self.id);
        match self.seen {
            Seen::Before(of) => MessageOutcome::Duplicate { id, of: crate::number::given(of) },
            Seen::WithOtherBody(other) => {
                MessageOutcome::Stored { id, conflict: Some(crate::number::given(other)) }
            }
            Seen::Never => MessageOutcome::Stored { id, conflict: None },
        }
    }

    /// Whether its body goes into the table of small ones.
    fn has_small_body(&self) -> bool {
        !self.is_duplicate() && self.candidate.body_id.is_none()
    }
}

/// At most [`ROWS_MAX`] messages.
pub(crate) fn insert_messages(script: &mut Script, messages: &[Numbered<'_>], now: Timestamp) {
    if messages.is_empty() {
        return;
    }
    let size = script.step_rows(HEAD, COLUMNS, messages.len(), FILLED);
    for message in messages {
        let new = message.message();
        let origin = message.origin();
        let body_id = message.candidate.body_id.filter(|_| !message.is_duplicate());
        script
            .bind(message.id)
            .bind(i64::from(new.interface.0))
            .bind(i64::from(message.status().number()))
            .bind(stored(now.0))
            .bind(stored(new.draft.body.len() as u64))
            .bind(body_id.map(|body_id| body_id.0))
            .bind(i64::from(new.group.0))
            .bind(i64::from(new.tier.0))
            .bind(stored(new.received_at.0))
            .bind(new.draft.occurred_at.map(|at| stored(at.0)))
            .bind(new.draft.key.as_ref().map(|key| key.as_str()))
            .bind(new.draft.dedupe.as_ref().map(|key| key.as_str()))
            .bind(new.draft.attributes.to_bytes())
            .bind(origin.map(|(id, _)| id))
            .bind(origin.map(|(_, kind)| i64::from(kind.number())));
    }
    script.bind_empty((size - messages.len()) * COLUMNS);
}

/// The small bodies of at most [`ROWS_MAX`] messages.
pub(crate) fn insert_bodies(script: &mut Script, messages: &[Numbered<'_>]) {
    let count = messages.iter().filter(|message| message.has_small_body()).count();
    if count == 0 {
        return;
    }
    let head = "INSERT INTO bodies (message_id, body) SELECT * FROM ";
    let size = script.step_rows(head, 2, count.min(ROWS_MAX), FILLED);
    for message in messages.iter().filter(|message| message.has_small_body()) {
        script.bind(message.id).bind(message.message().draft.body.as_ref());
    }
    script.bind_empty((size - count) * 2);
}

/// Bits of a packed delivery: below them the destination and the lane.
const LANE_BITS: u32 = 11;
const DESTINATION_BITS: u32 = 32;
/// Messages of a batch that can be packed.
pub(crate) const BATCH_MAX: usize = 1 << 20;

/// The deliveries of any number of messages. Each is one number: which message from `first`, the
/// destination, the lane. A list of plain numbers is the cheapest way to bring rows to SQLite.
pub(crate) fn insert_deliveries(script: &mut Script, messages: &[Numbered<'_>], first: i64, now: Timestamp) {
    let mut pending = IntArray::default();
    let mut doubted = Vec::new();
    for message in messages.iter().filter(|message| !message.is_duplicate()) {
        for delivery in &message.message().deliveries {
            let packed = ((message.id - first) << (LANE_BITS + DESTINATION_BITS))
                | (i64::from(delivery.destination.0) << LANE_BITS)
                | i64::from(delivery.lane.number());
            match &message.message().draft.doubt {
                None => pending.push(packed),
                Some(failure) => doubted.push((packed, failure)),
            }
        }
    }
    if !pending.is_empty() {
        script
            .step(
                "INSERT INTO deliveries (message_id, destination_id, lane, state, round, attempts, changed_at)
                SELECT ? + (value >> 43), (value >> 11) & 4294967295, value & 2047, 0, 0, 0, ? FROM json_each(?)",
            )
            .bind(first)
            .bind(stored(now.0))
            .bind(pending.into_json());
    }
    insert_doubted(script, &doubted, first, now);
}

/// Deliveries of messages their source had doubts about: nobody sends them before a person looked.
fn insert_doubted(script: &mut Script, doubted: &[(i64, &Failure)], first: i64, now: Timestamp) {
    if doubted.is_empty() {
        return;
    }
    let rows: Vec<serde_json::Value> =
        doubted.iter().map(|(packed, failure)| serde_json::json!([packed, failure.to_string()])).collect();
    script
        .step(
            "INSERT INTO deliveries (message_id, destination_id, lane, state, round, attempts, changed_at, reason)
            SELECT ? + ((value ->> 0) >> 43), ((value ->> 0) >> 11) & 4294967295, (value ->> 0) & 2047, 3, 0, 0, ?,
                value ->> 1 FROM json_each(?)",
        )
        .bind(first)
        .bind(stored(now.0))
        .bind(serde_json::Value::from(rows).to_string());
}
