//! Storing messages, their bodies and their deliveries.

use std::collections::HashMap;

use portway_model::{DeliveryState, Failure, MessageStatus, Tier, Timestamp};
use portway_store::{Edited, MessageOutcome, NewDelivery, NewMessage, Origin, OriginKind};

use crate::error::{Failed, damaged};
use crate::number::{self, given, small, stored, stored_lane, text};
use crate::query::{Session, value};
use crate::{dedupe, term};

/// A piece of a body. Larger ones are stored as several.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Bytes of large bodies in one statement.
const STATEMENT_BYTES: usize = 4 << 20;

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// As its interface's retention says in this transaction.
    tier: i16,
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

/// What was stored, and where.
pub(crate) struct Inserted {
    pub(crate) outcomes: Vec<MessageOutcome>,
    /// Number and tier of each.
    pub(crate) places: Vec<(i64, i16)>,
    pub(crate) day: i32,
}

/// Nothing is stored in a period that is being removed, whatever the clock says.
const NUMBERS: &str =
    "SELECT array_agg(id), greatest(floor(extract(epoch FROM clock_timestamp()) / 86400)::int4,
        (SELECT max(to_day) FROM sealed_periods)),
        (SELECT array_agg(interface_id ORDER BY interface_id) FROM retention),
        (SELECT array_agg(coalesce(change_tier, tier) ORDER BY interface_id) FROM retention)
    FROM (SELECT nextval('message_ids') AS id FROM generate_series(1, $1)) AS drawn";

/// Stores messages under numbers that rise in their order.
pub(crate) async fn insert(
    session: &mut Session,
    messages: &[&NewMessage],
    now: Timestamp,
) -> Result<Inserted, Failed> {
    let what = "draw numbers of messages";
    let count = small(u32::try_from(messages.len()).unwrap_or(u32::MAX));
    let drawn = session.read_one(what, sqlx::query(NUMBERS).bind(count), |row| {
        let interfaces: Vec<i32> = value::<Option<_>>(row, 2)?.unwrap_or_default();
        let tiers: Vec<i16> = value::<Option<_>>(row, 3)?.unwrap_or_default();
        let tiers: HashMap<i32, i16> = interfaces.into_iter().zip(tiers).collect();
        Ok((value::<Vec<i64>>(row, 0)?, value::<i32>(row, 1)?, tiers))
    });
    let (ids, day, tiers) = drawn.await?.ok_or_else(|| damaged("the sequence gives no numbers"))?;
    let seen = dedupe::look_up(session, messages, &ids, now).await?;
    // What a newer binary wrote and this one does not know keeps the most.
    let tier = |new: &NewMessage| {
        let of_interface = tiers.get(&small(new.interface.0)).copied();
        of_interface.and_then(number::read_tier).map_or(number::tier(Tier::LONGEST), number::tier)
    };
    let numbered: Vec<Numbered<'_>> = messages
        .iter()
        .zip(ids)
        .zip(seen)
        .map(|((new, id), seen)| Numbered { id, new, seen, tier: tier(new) })
        .collect();
    insert_large_bodies(session, &numbered, day).await?;
    insert_rows(session, &numbered, day, now).await?;
    record_edits(session, &numbered, now).await?;
    let terms = numbered.iter().map(|message| (message.id, message.new.terms.as_slice()));
    term::insert(session, terms.filter(|(_, terms)| !terms.is_empty())).await?;
    let places = numbered.iter().map(|message| (message.id, message.tier)).collect();
    Ok(Inserted { outcomes: numbered.iter().map(Numbered::outcome).collect(), places, day })
}

const INSERT: &str = "WITH stored AS (
        INSERT INTO messages (id, interface_id, status, body_bytes, group_id, tier, received_at, occurred_at,
            key, dedupe_key, attributes, origin_id, origin_kind, stored_at, day)
        SELECT m.*, $2, $1 FROM unnest($3::int8[], $4::int4[], $5::int2[], $6::int8[], $7::int4[], $8::int2[],
            $9::int8[], $10::int8[], $11::bytea[], $12::bytea[], $13::bytea[], $14::int8[], $15::int2[]) AS m),
    held AS (
        INSERT INTO bodies (message_id, tier, bytes, number, day)
        SELECT b.*, 0, $1 FROM unnest($16::int8[], $17::int2[], $18::bytea[]) AS b)
    INSERT INTO deliveries (message_id, destination_id, tier, lane, state, body_bytes, reason, round, attempts,
        changed_at, day)
    SELECT d.*, 0, 0, $2, $1 FROM unnest($19::int8[], $20::int4[], $21::int2[], $22::int2[], $23::int2[],
        $24::int8[], $25::text[]) AS d";

async fn insert_rows(
    session: &mut Session,
    messages: &[Numbered<'_>],
    day: i32,
    now: Timestamp,
) -> Result<(), Failed> {
    fn each<'a, T>(messages: &'a [Numbered<'a>], of: impl Fn(&'a Numbered<'a>) -> T) -> Vec<T> {
        messages.iter().map(of).collect()
    }
    let bodies: Vec<&Numbered<'_>> = messages
        .iter()
        .filter(|message| !message.is_duplicate() && message.new.body().len() <= PIECE_BYTES)
        .collect();
    let deliveries = Deliveries::of(messages);
    let draft = |message: &Numbered<'_>| message.new.draft.occurred_at.map(|at| stored(at.0));
    let statement = sqlx::query(INSERT)
        .bind(day)
        .bind(stored(now.0))
        .bind(each(messages, |message| message.id))
        .bind(each(messages, |message| small(message.new.interface.0)))
        .bind(each(messages, |message| i16::from(message.status().number())))
        .bind(each(messages, |message| stored(message.new.body().len() as u64)))
        .bind(each(messages, |message| small(message.new.group.0)))
        .bind(each(messages, |message| message.tier))
        .bind(each(messages, |message| stored(message.new.received_at.0)))
        .bind(each(messages, draft))
        .bind(each(messages, |message| message.new.draft.key.as_ref().map(|key| key.as_str().as_bytes())))
        .bind(each(messages, |message| message.new.draft.dedupe.as_ref().map(|key| key.as_str().as_bytes())))
        .bind(each(messages, |message| message.new.draft.attributes.to_bytes()))
        .bind(each(messages, |message| message.origin().map(|(id, _)| id)))
        .bind(each(messages, |message| message.origin().map(|(_, kind)| i16::from(kind.number()))))
        .bind(bodies.iter().map(|message| message.id).collect::<Vec<_>>())
        .bind(bodies.iter().map(|message| message.tier).collect::<Vec<_>>())
        .bind(bodies.iter().map(|message| message.new.body().as_ref()).collect::<Vec<&[u8]>>());
    let statement = deliveries.bind(statement);
    session.execute("store messages", statement).await.map(drop)
}

/// Columns of deliveries, a list each.
#[derive(Default)]
struct Deliveries {
    messages: Vec<i64>,
    destinations: Vec<i32>,
    tiers: Vec<i16>,
    lanes: Vec<i16>,
    states: Vec<i16>,
    body_bytes: Vec<i64>,
    reasons: Vec<Option<String>>,
}

impl Deliveries {
    fn of(messages: &[Numbered<'_>]) -> Self {
        let mut all = Deliveries::default();
        for message in messages.iter().filter(|message| !message.is_duplicate()) {
            // What its source had doubts about nobody sends before a person looked.
            let (state, reason) = match &message.new.draft.doubt {
                None => (DeliveryState::Pending, None),
                Some(failure) => (DeliveryState::Quarantined, Some(reason(failure))),
            };
            for NewDelivery { destination, lane } in &message.new.deliveries {
                all.messages.push(message.id);
                all.destinations.push(small(destination.0));
                all.tiers.push(message.tier);
                all.lanes.push(stored_lane(*lane));
                all.states.push(i16::from(state.number()));
                all.body_bytes.push(stored(message.new.body().len() as u64));
                all.reasons.push(reason.clone());
            }
        }
        all
    }

    fn bind<'a>(self, statement: crate::query::Statement<'a>) -> crate::query::Statement<'a> {
        statement
            .bind(self.messages)
            .bind(self.destinations)
            .bind(self.tiers)
            .bind(self.lanes)
            .bind(self.states)
            .bind(self.body_bytes)
            .bind(self.reasons)
    }
}

fn reason(failure: &Failure) -> String {
    text(&failure.to_string()).into_owned()
}

const INSERT_PIECES: &str = "INSERT INTO bodies (message_id, tier, number, bytes, day)
    SELECT p.*, $1 FROM unnest($2::int8[], $3::int2[], $4::int4[], $5::bytea[]) AS p";

/// Pieces of large bodies, a few to a statement: a body is in memory once more only as far as that.
async fn insert_large_bodies(
    session: &mut Session,
    messages: &[Numbered<'_>],
    day: i32,
) -> Result<(), Failed> {
    let large =
        messages.iter().filter(|message| !message.is_duplicate() && message.new.body().len() > PIECE_BYTES);
    for message in large {
        let pieces: Vec<(i32, &[u8])> = (0..).zip(message.new.body().chunks(PIECE_BYTES)).collect();
        for pieces in pieces.chunks(STATEMENT_BYTES / PIECE_BYTES) {
            let statement = sqlx::query(INSERT_PIECES)
                .bind(day)
                .bind(vec![message.id; pieces.len()])
                .bind(vec![message.tier; pieces.len()])
                .bind(pieces.iter().map(|(number, _)| *number).collect::<Vec<_>>())
                .bind(pieces.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>());
            session.execute("store a large body", statement).await?;
        }
    }
    Ok(())
}

const RECORD_EDITS: &str = "INSERT INTO message_actions (message_id, at, action, author, reason)
    SELECT e.message_id, $1, $2, e.author, e.reason
    FROM unnest($3::int8[], $4::text[], $5::text[]) WITH ORDINALITY AS e (message_id, author, reason, n)
    ORDER BY e.n";

/// Who corrected which message stands with that message.
async fn record_edits(
    session: &mut Session,
    messages: &[Numbered<'_>],
    now: Timestamp,
) -> Result<(), Failed> {
    let (mut origins, mut authors, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        let (Some(edited), Some((origin, _))) = (&message.new.edited, message.origin()) else { continue };
        let Edited { author, reason } = edited.as_ref();
        origins.push(origin);
        authors.push(text(author));
        reasons.push(text(reason));
    }
    if origins.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(RECORD_EDITS)
        .bind(stored(now.0))
        .bind(i16::from(Edited::ACTION.1))
        .bind(origins)
        .bind(authors)
        .bind(reasons);
    session.execute("record corrections", statement).await.map(drop)
}
