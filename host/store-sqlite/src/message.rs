//! Storing messages, their bodies and their deliveries.

use portway_model::{DeliveryState, MessageStatus, Timestamp};
use portway_store::{Edited, MessageOutcome, NewMessage, Origin, OriginKind};
use rusqlite::{Connection, params};

use crate::body::Ahead;
use crate::dedupe;
use crate::number::{given, stored};
use crate::retention::Tiers;
use crate::term;

/// What becomes of a message.
#[derive(Clone, Copy)]
pub(crate) enum Seen {
    Never,
    /// Same dedupe key, same body.
    Before(i64),
    /// Same dedupe key, other body.
    WithOtherBody(i64),
}

/// A message with its number.
struct Numbered<'a> {
    id: i64,
    new: &'a NewMessage,
    seen: Seen,
}

impl Numbered<'_> {
    fn is_duplicate(&self) -> bool {
        matches!(self.seen, Seen::Before(_))
    }

    fn status(&self) -> MessageStatus {
        match (self.seen, self.new.deliveries.is_empty(), &self.new.draft.doubt) {
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
            Seen::Never => self.new.origin.map(|Origin { message, kind }| (stored(message.0), kind)),
        }
    }

    fn outcome(&self) -> MessageOutcome {
        let id = given(self.id);
        match self.seen {
            Seen::Before(of) => MessageOutcome::Duplicate { id, of: given(of) },
            Seen::WithOtherBody(other) => MessageOutcome::Stored { id, conflict: Some(given(other)) },
            Seen::Never => MessageOutcome::Stored { id, conflict: None },
        }
    }
}

/// Stores messages under the numbers after `last_id`, which it raises. One table after the other: what
/// lies together is written together.
pub(crate) fn insert(
    connection: &Connection,
    messages: &[NewMessage],
    (tiers, now): (&Tiers, Timestamp),
    ahead: &mut Ahead<'_>,
    last_id: &mut i64,
) -> rusqlite::Result<Vec<MessageOutcome>> {
    let mut numbered = Vec::with_capacity(messages.len());
    for new in messages {
        *last_id += 1;
        numbered.push(Numbered { id: *last_id, new, seen: dedupe::look_up(connection, new, *last_id, now)? });
    }
    insert_messages(connection, &numbered, ahead, (tiers, now))?;
    record_edits(connection, &numbered, now)?;
    insert_deliveries(connection, &numbered, now)?;
    Ok(numbered.iter().map(Numbered::outcome).collect())
}

const INSERT_MESSAGE: &str =
    "INSERT INTO messages (id, interface_id, status, stored_at, body_bytes, body_id, group_id, tier,
    received_at, occurred_at, key, dedupe_key, attributes, origin_id, origin_kind)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const INSERT_BODY: &str = "INSERT INTO bodies (message_id, body) VALUES (?, ?)";

fn insert_messages(
    connection: &Connection,
    messages: &[Numbered<'_>],
    ahead: &mut Ahead<'_>,
    (tiers, now): (&Tiers, Timestamp),
) -> rusqlite::Result<()> {
    let mut insert_message = connection.prepare_cached(INSERT_MESSAGE)?;
    let mut insert_body = connection.prepare_cached(INSERT_BODY)?;
    for message in messages {
        let Numbered { id, new, .. } = message;
        let origin = message.origin();
        let body_id = if message.is_duplicate() { None } else { ahead.take(new) };
        insert_message.execute(params![
            id,
            new.interface.0,
            message.status().number(),
            stored(now.0),
            stored(new.body().len() as u64),
            body_id.map(|body_id| body_id.0),
            new.group.0,
            tiers.of(new.interface).number(),
            stored(new.received_at.0),
            new.draft.occurred_at.map(|at| stored(at.0)),
            new.draft.key.as_ref().map(|key| key.as_str()),
            new.draft.dedupe.as_ref().map(|key| key.as_str()),
            new.draft.attributes.to_bytes(),
            origin.map(|(id, _)| id),
            origin.map(|(_, kind)| kind.number()),
        ])?;
        if !new.terms.is_empty() {
            term::insert(connection, *id, &new.terms)?;
        }
        if !message.is_duplicate() && body_id.is_none() {
            insert_body.execute(params![id, new.body().as_ref()])?;
        }
    }
    Ok(())
}

const RECORD_EDIT: &str =
    "INSERT INTO message_actions (message_id, at, action, author, reason) VALUES (?, ?, ?, ?, ?)";

/// Who corrected which message stands with that message.
fn record_edits(connection: &Connection, messages: &[Numbered<'_>], now: Timestamp) -> rusqlite::Result<()> {
    for message in messages {
        let (Some(edited), Some((origin, _))) = (&message.new.edited, message.origin()) else { continue };
        let Edited { author, reason } = edited.as_ref();
        let mut record = connection.prepare_cached(RECORD_EDIT)?;
        record.execute(params![origin, stored(now.0), Edited::ACTION.1, author, reason])?;
    }
    Ok(())
}

const INSERT_DELIVERY: &str =
    "INSERT INTO deliveries (message_id, destination_id, lane, state, round, attempts, changed_at, reason)
    VALUES (?, ?, ?, ?, 0, 0, ?, ?)";

fn insert_deliveries(
    connection: &Connection,
    messages: &[Numbered<'_>],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(INSERT_DELIVERY)?;
    for message in messages.iter().filter(|message| !message.is_duplicate()) {
        // What its source had doubts about nobody sends before a person looked.
        let (state, reason) = match &message.new.draft.doubt {
            None => (DeliveryState::Pending, None),
            Some(failure) => (DeliveryState::Quarantined, Some(failure.to_string())),
        };
        for delivery in &message.new.deliveries {
            insert.execute(params![
                message.id,
                delivery.destination.0,
                delivery.lane.number(),
                state.number(),
                stored(now.0),
                reason,
            ])?;
        }
    }
    Ok(())
}
