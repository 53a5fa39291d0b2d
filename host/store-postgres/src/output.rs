//! What senders were given: the newest output of each delivery whose destination keeps it.

use std::collections::BTreeMap;

use bytes::Bytes;
use portway_model::{DestinationId, MessageId, SavedBody, SavedOutput, Timestamp};
use portway_store::{DeliveryResult, OutputBody, OutputView};

use crate::error::{Failed, damaged};
use crate::number::{self, small, stored};
use crate::query::{Session, value};
use crate::result::Counted;
use crate::view::attributes;

/// As stored in `kind`; numbers are never reused.
const SAME: i16 = 0;
const KEPT: i16 = 1;
const TOO_LARGE: i16 = 2;
const NO_ROOM: i16 = 3;

/// Outputs in one statement: a few large ones are kept at a time.
const STATEMENT_OUTPUTS: usize = 64;
const STATEMENT_BYTES: usize = 4 << 20;

const KEEP: &str =
    "INSERT INTO outputs (message_id, destination_id, round, attempt, saved_at, key, attributes,
        kind, body_bytes, body, tier, day)
    SELECT o.message_id, o.destination_id, o.round, o.attempt, $1, o.key, o.attributes, o.kind, o.body_bytes,
        o.body, o.tier, o.day
    FROM unnest($2::int8[], $3::int4[], $4::int4[], $5::int4[], $6::bytea[], $7::bytea[], $8::int2[],
        $9::int8[], $10::bytea[], $11::int2[], $12::int4[])
        AS o (message_id, destination_id, round, attempt, key, attributes, kind, body_bytes, body, tier, day)
    ON CONFLICT (message_id, destination_id, tier, day) DO UPDATE SET round = excluded.round,
        attempt = excluded.attempt, saved_at = excluded.saved_at, key = excluded.key,
        attributes = excluded.attributes, kind = excluded.kind, body_bytes = excluded.body_bytes,
        body = excluded.body";

type Outputs<'a> = Vec<(&'a DeliveryResult, &'a SavedOutput)>;

/// Keeps the outputs of results that count, of each delivery the newest.
pub(crate) async fn keep(
    session: &mut Session,
    counted: &Counted,
    results: &[DeliveryResult],
    now: Timestamp,
) -> Result<(), Failed> {
    let mut newest: BTreeMap<_, (&DeliveryResult, &SavedOutput)> = BTreeMap::new();
    for result in counted.of(results) {
        if let Some(output) = &result.output {
            newest.insert((result.message, result.destination), (result, output));
        }
    }
    let (mut outputs, mut bytes): (Outputs<'_>, usize) = (Vec::new(), 0);
    for (result, output) in newest.into_values() {
        let size = kept(output).map_or(0, <[u8]>::len);
        if outputs.len() == STATEMENT_OUTPUTS || (bytes + size > STATEMENT_BYTES && !outputs.is_empty()) {
            keep_some(session, counted, &std::mem::take(&mut outputs), now).await?;
            bytes = 0;
        }
        bytes += size;
        outputs.push((result, output));
    }
    match outputs.is_empty() {
        true => Ok(()),
        false => keep_some(session, counted, &outputs, now).await,
    }
}

fn kept(output: &SavedOutput) -> Option<&[u8]> {
    match &output.body {
        SavedBody::Kept(bytes) => Some(bytes),
        SavedBody::Same | SavedBody::TooLarge(_) | SavedBody::NoRoom(_) => None,
    }
}

async fn keep_some(
    session: &mut Session,
    counted: &Counted,
    outputs: &Outputs<'_>,
    now: Timestamp,
) -> Result<(), Failed> {
    fn each<'a, T>(outputs: &Outputs<'a>, of: impl Fn(&'a DeliveryResult, &'a SavedOutput) -> T) -> Vec<T> {
        outputs.iter().map(|(result, output)| of(result, output)).collect()
    }
    let kind = |output: &SavedOutput| match &output.body {
        SavedBody::Same => (SAME, 0),
        SavedBody::Kept(bytes) => (KEPT, bytes.len() as u64),
        SavedBody::TooLarge(size) => (TOO_LARGE, *size),
        SavedBody::NoRoom(size) => (NO_ROOM, *size),
    };
    let places: Option<Vec<_>> =
        outputs.iter().map(|(result, _)| counted.place(stored(result.message.0))).collect();
    let places = places.ok_or_else(|| damaged("a message that was settled is nowhere"))?;
    let statement = sqlx::query(KEEP)
        .bind(stored(now.0))
        .bind(each(outputs, |result, _| stored(result.message.0)))
        .bind(each(outputs, |result, _| small(result.destination.0)))
        .bind(each(outputs, |result, _| small(result.round.0)))
        .bind(each(outputs, |result, _| small(result.attempts.0)))
        .bind(each(outputs, |_, output| output.key.as_ref().map(|key| key.as_str().as_bytes())))
        .bind(each(outputs, |_, output| output.attributes.to_bytes()))
        .bind(each(outputs, |_, output| kind(output).0))
        .bind(each(outputs, |_, output| stored(kind(output).1)))
        .bind(each(outputs, |_, output| kept(output)))
        .bind(places.iter().map(|place| place.tier).collect::<Vec<_>>())
        .bind(places.iter().map(|place| place.day).collect::<Vec<_>>());
    session.execute("store outputs", statement).await.map(drop)
}

const LIST: &str = "SELECT destination_id, round, attempt, saved_at, key, attributes, kind, body_bytes
    FROM outputs WHERE message_id = $1 ORDER BY destination_id";

pub(crate) async fn list(session: &mut Session, id: MessageId) -> Result<Vec<OutputView>, Failed> {
    let list = session.read("list outputs", sqlx::query(LIST).bind(stored(id.0)), |row| {
        let size = number::read(value(row, 7)?)?;
        let key: Option<Vec<u8>> = value(row, 4)?;
        Ok(OutputView {
            destination: number::destination(value(row, 0)?)?,
            round: number::round(value(row, 1)?)?,
            attempt: number::attempts(value(row, 2)?)?,
            saved_at: number::time(value(row, 3)?)?,
            key: key
                .map(String::from_utf8)
                .transpose()
                .map_err(|_| damaged("the key of an output is no text"))?,
            attributes: attributes(value(row, 5)?)?,
            body: match value::<i16>(row, 6)? {
                SAME => OutputBody::Same,
                KEPT => OutputBody::Kept(size),
                TOO_LARGE => OutputBody::TooLarge(size),
                NO_ROOM => OutputBody::NoRoom(size),
                _ => return Err(damaged("an output is of an unknown kind")),
            },
        })
    });
    list.await
}

const LOAD: &str =
    "SELECT body FROM outputs WHERE message_id = $1 AND destination_id = $2 AND body IS NOT NULL";

pub(crate) async fn load(
    session: &mut Session,
    id: MessageId,
    destination: DestinationId,
) -> Result<Option<Bytes>, Failed> {
    let statement = sqlx::query(LOAD).bind(stored(id.0)).bind(small(destination.0));
    let loaded = session.read_one("load an output", statement, |row| value::<Vec<u8>>(row, 0));
    Ok(loaded.await?.map(Bytes::from))
}
