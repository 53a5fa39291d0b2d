//! Results of deliveries: which count, and what they change.
//!
//! A result counts if it changes its delivery, which must be pending and in the same round; one of an
//! earlier owner only if it is sent. They are applied in order: an earlier result of the batch decides about
//! a later one of the same delivery.

use std::collections::{BTreeMap, HashMap};

use portway_model::{Epoch, Timestamp};
use portway_store::{DeliveryResult, NewMessage, ResultOutcome, Settled};

use crate::day::{Days, Whereabouts};
use crate::error::Failed;
use crate::number::{small, stored, text};
use crate::query::{Session, value};

/// Deliveries first, then whatever depends on which of them were changed. A try that did not count has the
/// number of the one before: the newer one stays. Days and tiers stand with each result, not as a condition on the
/// table: as such they would let the server read all of an index for them.
///
/// The epoch in which this engine owns what it owns is held until the end of the transaction: whoever takes
/// over waits for it, or is seen here. What was sent in another epoch counts, and leaves the record of a
/// suspect: the owner of now may be about to send it as well, and is to find that record.
const SETTLE: &str = "WITH own AS (SELECT epoch FROM engines WHERE engine = $14 AND owns FOR KEY SHARE),
    settled AS (
        UPDATE deliveries d SET state = r.state, attempts = r.attempts, due_at = r.due_at, changed_at = $1,
            reason = r.reason
        FROM unnest($2::int4[], $3::int4[], $4::int8[], $5::int8[], $6::int4[], $7::int4[], $8::int2[],
            $9::int4[], $10::int8[], $11::text[], $12::int8[], $13::int8[], $15::int8[], $16::bool[],
            $17::int2[], $18::int2[])
            AS r (first_day, last_day, n, message_id, destination_id, round, state, attempts, due_at, reason,
                started_at, took_ms, epoch, outlives, first_tier, last_tier)
        WHERE d.message_id = r.message_id AND d.destination_id = r.destination_id AND d.round = r.round
            AND d.state = 0 AND d.day >= r.first_day AND d.day <= r.last_day
            AND d.tier >= r.first_tier AND d.tier <= r.last_tier
            AND (r.outlives OR r.epoch = (SELECT epoch FROM own))
        RETURNING r.n, d.message_id, d.destination_id, d.round, d.state, d.attempts, d.reason, d.tier, d.day,
            r.started_at, r.took_ms, r.epoch),
    forgotten AS (
        DELETE FROM suspects s USING settled
        WHERE s.message_id = settled.message_id AND s.destination_id = settled.destination_id
            AND settled.epoch = (SELECT epoch FROM own)),
    tried AS (
        INSERT INTO attempts (message_id, destination_id, round, number, started_at, took_ms, outcome, text,
            tier, day)
        SELECT message_id, destination_id, round, attempts, started_at, took_ms, state, coalesce(reason, ''),
            tier, day FROM settled WHERE started_at IS NOT NULL
        ON CONFLICT (message_id, destination_id, round, number, tier, day) DO UPDATE
            SET started_at = excluded.started_at, took_ms = excluded.took_ms, outcome = excluded.outcome,
                text = excluded.text)
    SELECT n, message_id, tier, day FROM settled
    UNION ALL SELECT -1, epoch, NULL, NULL FROM own";

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) tier: i16,
    pub(crate) day: i32,
}

/// Which results counted, and where their messages are.
pub(crate) struct Counted {
    pub(crate) counted: Vec<bool>,
    places: HashMap<i64, Place>,
    /// In which epoch this engine owns what it owns.
    epoch: Option<Epoch>,
}

/// Changes the delivery of each result.
pub(crate) async fn settle(
    session: &mut Session,
    results: &[DeliveryResult],
    days: &Days,
    (engine, now): (&str, Timestamp),
) -> Result<Counted, Failed> {
    let mut all = Counted { counted: vec![false; results.len()], places: HashMap::new(), epoch: None };
    for wave in waves(results) {
        let hints: Vec<Whereabouts> =
            wave.iter().map(|(_, result)| days.whereabouts(stored(result.message.0))).collect();
        settle_wave(session, &wave, &hints, (engine, now), &mut all).await?;
        // Nearly none: it is not pending any more, or not where it should be.
        let is_left = |index: &usize| all.counted.get(*index) == Some(&false);
        let left = wave
            .into_iter()
            .zip(hints)
            .filter(|((index, _), hint)| is_left(index) && *hint != Whereabouts::ANYWHERE);
        let left: Vec<_> = left.map(|(result, _)| result).collect();
        if !left.is_empty() {
            settle_wave(session, &left, &vec![Whereabouts::ANYWHERE; left.len()], (engine, now), &mut all)
                .await?;
        }
    }
    Ok(all)
}

const HOLD_EPOCH: &str = "SELECT epoch FROM engines WHERE engine = $1 AND owns FOR KEY SHARE";

/// Holds the epoch of this engine before anything else is held, where that is not what [`settle`] begins with.
pub(crate) async fn hold_epoch(session: &mut Session, engine: &str) -> Result<(), Failed> {
    session.execute("hold the epoch of the engine", sqlx::query(HOLD_EPOCH).bind(engine)).await.map(drop)
}

type Wave<'a> = Vec<(usize, &'a DeliveryResult)>;

/// The results with their places in the batch, so that each delivery is at most once in a wave, in the order
/// in which every engine takes its locks.
fn waves(results: &[DeliveryResult]) -> Vec<Wave<'_>> {
    let mut waves: Vec<Wave<'_>> = Vec::new();
    let mut seen: HashMap<_, usize> = HashMap::with_capacity(results.len());
    for (index, result) in results.iter().enumerate() {
        let times = seen.entry((result.message, result.destination)).or_insert(0);
        match waves.get_mut(*times) {
            Some(wave) => wave.push((index, result)),
            None => waves.push(vec![(index, result)]),
        }
        *times += 1;
    }
    for wave in &mut waves {
        wave.sort_by_key(|(_, result)| (result.message, result.destination));
    }
    waves
}

async fn settle_wave(
    session: &mut Session,
    wave: &[(usize, &DeliveryResult)],
    hints: &[Whereabouts],
    (engine, now): (&str, Timestamp),
    all: &mut Counted,
) -> Result<(), Failed> {
    fn each<T>(wave: &[(usize, &DeliveryResult)], of: impl Fn(&DeliveryResult) -> T) -> Vec<T> {
        wave.iter().map(|(_, result)| of(result)).collect()
    }
    let took = |result: &DeliveryResult| {
        let took = result.recorded()?.took.as_millis();
        Some(stored(u64::try_from(took).unwrap_or(u64::MAX)))
    };
    let reason = |result: &DeliveryResult| Some(text(&result.settled.reason()?).into_owned());
    let statement = sqlx::query(SETTLE)
        .bind(stored(now.0))
        .bind(hints.iter().map(|hint| hint.days.0).collect::<Vec<_>>())
        .bind(hints.iter().map(|hint| hint.days.1).collect::<Vec<_>>())
        .bind(wave.iter().map(|(index, _)| stored(*index as u64)).collect::<Vec<_>>())
        .bind(each(wave, |result| stored(result.message.0)))
        .bind(each(wave, |result| small(result.destination.0)))
        .bind(each(wave, |result| small(result.round.0)))
        .bind(each(wave, |result| i16::from(result.settled.state().number())))
        .bind(each(wave, |result| small(result.attempts.0)))
        .bind(each(wave, |result| result.settled.due_at().map(|at| stored(at.0))))
        .bind(each(wave, reason))
        .bind(each(wave, |result| result.recorded().map(|tried| stored(tried.started_at.0))))
        .bind(each(wave, took))
        .bind(engine)
        .bind(each(wave, |result| stored(result.epoch.0)))
        .bind(each(wave, |result| result.settled.outlives_owner()))
        .bind(hints.iter().map(|hint| hint.tiers.0).collect::<Vec<_>>())
        .bind(hints.iter().map(|hint| hint.tiers.1).collect::<Vec<_>>());
    let settled = session.read("store results", statement, |row| {
        let place = value::<Option<i16>>(row, 2)?.zip(value::<Option<i32>>(row, 3)?);
        Ok((value::<i64>(row, 0)?, value::<i64>(row, 1)?, place))
    });
    for (index, message, place) in settled.await? {
        let Some((tier, day)) = place else {
            all.epoch = Some(Epoch(message.cast_unsigned()));
            continue;
        };
        if let Some(counted) = usize::try_from(index).ok().and_then(|index| all.counted.get_mut(index)) {
            *counted = true;
        }
        all.places.insert(message, Place { tier, day });
    }
    Ok(())
}

/// Locked in the order of their numbers by everybody.
const LOCK: &str = "SELECT count(*) FROM (SELECT 1 FROM
        unnest($1::int8[], $2::int2[], $3::int4[]) AS t (id, tier, day)
        JOIN messages m ON m.id = t.id AND m.tier = t.tier AND m.day = t.day
        ORDER BY m.id FOR NO KEY UPDATE OF m) AS locked";
/// A statement of its own, so that it sees what others did to the deliveries before they let go of the
/// messages. Three is looked for so that it does not lead to the index of what is quarantined, which has no
/// message in front; the offsets keep the server from reading all deliveries at once.
const FOLLOW: &str = "UPDATE messages m SET status = CASE
        WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = t.id AND d.tier = t.tier
            AND d.day = t.day AND d.state = 0 OFFSET 0) THEN 0
        WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = t.id AND d.tier = t.tier
            AND d.day = t.day AND abs(d.state) = 3 OFFSET 0) THEN 2
        ELSE 1 END
    FROM unnest($1::int8[], $2::int2[], $3::int4[]) AS t (id, tier, day)
    WHERE m.id = t.id AND m.tier = t.tier AND m.day = t.day AND ($4 OR NOT EXISTS
        (SELECT 1 FROM deliveries d WHERE d.message_id = t.id AND d.tier = t.tier AND d.day = t.day
            AND d.state = 0 OFFSET 0))";

/// Whether a message that has something pending may have been done before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// What is pending was pending: then there is nothing to write.
    Before,
    /// An operator made it so.
    Anew,
}

/// Sets the status of messages whose deliveries changed.
pub(crate) async fn follow_deliveries(
    session: &mut Session,
    places: &BTreeMap<i64, Place>,
    pending: Pending,
) -> Result<(), Failed> {
    if places.is_empty() {
        return Ok(());
    }
    let what = "set the status of messages";
    let ids: Vec<i64> = places.keys().copied().collect();
    let tiers: Vec<i16> = places.values().map(|place| place.tier).collect();
    let days: Vec<i32> = places.values().map(|place| place.day).collect();
    session.execute(what, sqlx::query(LOCK).bind(&ids).bind(&tiers).bind(&days)).await?;
    let follow = sqlx::query(FOLLOW).bind(ids).bind(tiers).bind(days).bind(pending == Pending::Anew);
    session.execute(what, follow).await.map(drop)
}

impl Counted {
    /// The results that counted.
    pub(crate) fn of<'a>(&self, results: &'a [DeliveryResult]) -> impl Iterator<Item = &'a DeliveryResult> {
        results.iter().zip(&self.counted).filter(|(_, counted)| **counted).map(|(result, _)| result)
    }

    /// What became of a result that did not count.
    pub(crate) fn refused(&self, result: &DeliveryResult) -> ResultOutcome {
        match result.settled.outlives_owner() || self.epoch == Some(result.epoch) {
            true => ResultOutcome::Stale,
            false => ResultOutcome::Disowned,
        }
    }

    /// Where a message is of which a delivery was changed.
    pub(crate) fn place(&self, message: i64) -> Option<Place> {
        self.places.get(&message).copied()
    }

    /// Where the messages are of which a delivery is finished now.
    pub(crate) fn finished(&self, results: &[DeliveryResult]) -> BTreeMap<i64, Place> {
        let finished = self.of(results).filter(|result| result.settled.state().is_final());
        let ids = finished.map(|result| stored(result.message.0));
        ids.filter_map(|id| Some((id, *self.places.get(&id)?))).collect()
    }
}

/// The messages of a result's routes.
pub(crate) fn routes(result: &DeliveryResult) -> &[NewMessage] {
    match &result.settled {
        Settled::Routed(messages) => messages,
        Settled::Sent(_) | Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => &[],
    }
}
