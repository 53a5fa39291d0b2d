//! What operators do to deliveries.
//!
//! All actions of a batch are one look at their messages, one calculation in order, and one statement for
//! each table that changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use portway_model::{DeliveryState, DestinationId, Lane, Round, Timestamp};
use portway_store::{Action, ActionKind, ActionOutcome, WriteBatch};

use crate::error::Failed;
use crate::floor;
use crate::number::{destination, lane, round, small, stored, stored_lane, text};
use crate::query::{Session, value};
use crate::result::{self, Pending, Place};
use crate::suspect;

/// A delivery, as far as actions change it.
#[derive(Clone)]
struct Standing {
    destination: DestinationId,
    lane: Lane,
    /// None: a state of a newer binary, which is left alone.
    state: Option<DeliveryState>,
    round: Round,
    attempts: i32,
    due_at: Option<i64>,
    reason: Option<String>,
    place: Place,
    change: Option<Changed>,
}

/// What became of a delivery, for what follows from it.
#[derive(Clone, Copy, Default)]
struct Changed {
    is_resent: bool,
    /// It went back into an ordered lane, behind which that lane was read already.
    is_back_in_lane: bool,
}

const HOLD_DELIVERIES: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries
    WHERE message_id = ANY ($1) ORDER BY message_id, destination_id FOR NO KEY UPDATE) AS held";
const HOLD_MESSAGES: &str = "SELECT count(*) FROM (SELECT 1 FROM messages
    WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE) AS held";

/// Locks all that a batch with actions will change, in the order in which everybody does: results lock their
/// messages before actions come to their deliveries.
pub(crate) async fn hold(session: &mut Session, batch: &WriteBatch) -> Result<(), Failed> {
    let what = "hold what actions are about";
    let of_results = batch.results.iter().map(|result| result.message);
    let of_actions = batch.actions.iter().map(|action| action.message);
    let ids: BTreeSet<i64> = of_results.chain(of_actions).map(|id| stored(id.0)).collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    session.execute(what, sqlx::query(HOLD_DELIVERIES).bind(&ids)).await?;
    session.execute(what, sqlx::query(HOLD_MESSAGES).bind(ids)).await.map(drop)
}

const GROUPS: &str = "SELECT DISTINCT group_id FROM messages WHERE id = ANY ($1)";

/// Whose messages actions are about. An engine that lost them a moment ago and does not know it yet lets an
/// operator act on them all the same: their owner has to be told.
pub(crate) async fn groups(session: &mut Session, actions: &[Action]) -> Result<Vec<i32>, Failed> {
    if actions.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = actions.iter().map(|action| stored(action.message.0)).collect();
    session
        .read("read whose messages actions are about", sqlx::query(GROUPS).bind(ids), |row| value(row, 0))
        .await
}

/// What actions are about.
struct Subjects {
    /// By message: whether there is a body.
    bodies: HashMap<i64, bool>,
    deliveries: BTreeMap<i64, Vec<Standing>>,
    /// Message, destination or 0, request.
    requests: BTreeSet<(i64, i32, String)>,
}

/// Does actions inside the transaction that is open, in order.
pub(crate) async fn act(
    session: &mut Session,
    actions: &[Action],
    now: Timestamp,
) -> Result<Vec<ActionOutcome>, Failed> {
    if actions.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids: Vec<i64> = actions.iter().map(|action| stored(action.message.0)).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut subjects = Subjects::read(session, ids).await?;
    let mut outcomes = Vec::with_capacity(actions.len());
    let mut done = Vec::new();
    for action in actions {
        let outcome = subjects.act_once(action, now);
        if matches!(&outcome, ActionOutcome::Done(changed) if !changed.is_empty()) {
            done.push(action);
        }
        outcomes.push(outcome);
    }
    subjects.write(session, now).await?;
    record(session, &done, now).await?;
    Ok(outcomes)
}

const DELIVERIES: &str = "SELECT message_id, destination_id, lane, state, round, attempts, due_at, reason,
        tier, day FROM deliveries
    WHERE message_id = ANY ($1) ORDER BY message_id, destination_id FOR NO KEY UPDATE";
/// The offset keeps the server from reading all bodies at once. What is done in a period that is being removed
/// is not there any more.
const BODIES: &str = "SELECT m.id, EXISTS (SELECT 1 FROM bodies b WHERE b.message_id = m.id AND b.number = 0
        AND b.tier = m.tier AND b.day = m.day OFFSET 0)
    FROM messages m WHERE m.id = ANY ($1) AND NOT (m.status IN (1, 3) AND EXISTS (SELECT 1 FROM sealed_periods s
        WHERE s.tier = m.tier AND m.day >= s.from_day AND m.day < s.to_day))";
const REQUESTS: &str =
    "SELECT message_id, destination_id, request FROM action_requests WHERE message_id = ANY ($1)";

impl Subjects {
    async fn read(session: &mut Session, ids: Vec<i64>) -> Result<Subjects, Failed> {
        let what = "read what actions are about";
        let standing = session.read(what, sqlx::query(DELIVERIES).bind(&ids), |row| {
            let standing = Standing {
                destination: destination(value(row, 1)?)?,
                lane: lane(value(row, 2)?)?,
                state: u8::try_from(value::<i16>(row, 3)?).ok().and_then(DeliveryState::from_number),
                round: round(value(row, 4)?)?,
                attempts: value(row, 5)?,
                due_at: value(row, 6)?,
                reason: value(row, 7)?,
                place: Place { tier: value(row, 8)?, day: value(row, 9)? },
                change: None,
            };
            Ok((value::<i64>(row, 0)?, standing))
        });
        let mut deliveries: BTreeMap<i64, Vec<Standing>> = BTreeMap::new();
        for (message, standing) in standing.await? {
            deliveries.entry(message).or_default().push(standing);
        }
        let bodies =
            session.read(what, sqlx::query(BODIES).bind(&ids), |row| Ok((value(row, 0)?, value(row, 1)?)));
        let bodies = bodies.await?.into_iter().collect();
        let requests = session.read(what, sqlx::query(REQUESTS).bind(ids), |row| {
            Ok((value(row, 0)?, value(row, 1)?, value(row, 2)?))
        });
        let requests = requests.await?.into_iter().collect();
        Ok(Subjects { bodies, deliveries, requests })
    }

    fn act_once(&mut self, action: &Action, now: Timestamp) -> ActionOutcome {
        let message = stored(action.message.0);
        match (self.bodies.get(&message), action.kind) {
            (None, _) => return ActionOutcome::NoMessage,
            (Some(false), ActionKind::Resend { .. }) => return ActionOutcome::NoBody,
            (Some(_), _) => {}
        }
        let slot = slot(action);
        if slot.as_ref().is_some_and(|slot| self.requests.contains(slot)) {
            return ActionOutcome::Repeated;
        }
        let mut changed = Vec::new();
        for standing in self.deliveries.get_mut(&message).into_iter().flatten() {
            let is_wanted = action.destination.is_none_or(|only| only == standing.destination);
            if is_wanted && standing.act(action.kind, now) {
                changed.push((standing.destination, standing.lane, standing.round));
            }
        }
        if !changed.is_empty() {
            self.requests.extend(slot);
        }
        ActionOutcome::Done(changed)
    }
}

fn slot(action: &Action) -> Option<(i64, i32, String)> {
    let destination = action.destination.map_or(0, |destination| small(destination.0));
    let request = action.request.as_ref()?;
    Some((stored(action.message.0), destination, text(request).into_owned()))
}

impl Standing {
    /// Whether the action fits and was done.
    fn act(&mut self, kind: ActionKind, now: Timestamp) -> bool {
        let Some(state) = self.state else { return false };
        let due_now = Some(stored(now.0));
        match (kind, state) {
            (ActionKind::Resend { .. }, DeliveryState::Pending) => return false,
            (ActionKind::Resend { keep_lane }, state) => {
                let stays = keep_lane && self.lane.is_ordered() && state == DeliveryState::Quarantined;
                self.lane = if stays { self.lane } else { Lane::APART };
                self.state = Some(DeliveryState::Pending);
                self.round = self.round.next();
                self.attempts = 0;
                self.due_at = if stays { None } else { due_now };
                self.reason = None;
                let change = self.change.get_or_insert_default();
                change.is_resent = true;
                change.is_back_in_lane |= stays;
            }
            // It keeps its attempts and why it waited.
            (ActionKind::Retry, DeliveryState::Pending) if self.due_at.is_some() => {
                self.due_at = if self.lane.is_ordered() { None } else { due_now };
                self.change.get_or_insert_default();
            }
            // It keeps its attempts and the reason it was there for.
            (ActionKind::Dismiss, DeliveryState::Pending | DeliveryState::Quarantined) => {
                self.state = Some(DeliveryState::Dismissed);
                self.due_at = None;
                self.change.get_or_insert_default();
            }
            (ActionKind::Retry, DeliveryState::Pending | DeliveryState::Quarantined) => return false,
            (
                ActionKind::Dismiss | ActionKind::Retry,
                DeliveryState::Sent | DeliveryState::Filtered | DeliveryState::Dismissed,
            ) => return false,
        }
        true
    }
}

const CHANGE: &str = "UPDATE deliveries d SET lane = c.lane, state = c.state, round = c.round,
        attempts = c.attempts, due_at = c.due_at, reason = c.reason, changed_at = $1
    FROM unnest($2::int8[], $3::int4[], $4::int2[], $5::int4[], $6::int2[], $7::int2[], $8::int4[], $9::int4[],
        $10::int8[], $11::text[])
        AS c (message_id, destination_id, tier, day, lane, state, round, attempts, due_at, reason)
    WHERE d.message_id = c.message_id AND d.destination_id = c.destination_id AND d.tier = c.tier
        AND d.day = c.day";

impl Subjects {
    async fn write(&self, session: &mut Session, now: Timestamp) -> Result<(), Failed> {
        let what = "store actions";
        let all = self.deliveries.iter().flat_map(|(id, of)| of.iter().map(move |standing| (*id, standing)));
        let changed: Vec<(i64, &Standing, Changed)> =
            all.filter_map(|(id, standing)| Some((id, standing, standing.change?))).collect();
        if changed.is_empty() {
            return Ok(());
        }
        session.execute(what, change(&changed, now)).await?;
        let resent = changed.iter().filter(|(.., change)| change.is_resent);
        let (messages, destinations): (Vec<i64>, Vec<i32>) =
            resent.map(|(id, standing, _)| (*id, small(standing.destination.0))).unzip();
        if !messages.is_empty() {
            let forget = sqlx::query(suspect::FORGET).bind(messages).bind(destinations);
            session.execute(what, forget).await?;
        }
        let back = changed.iter().filter(|(.., change)| change.is_back_in_lane);
        floor::lower(session, back.map(|(id, standing, _)| (standing.destination, *id))).await?;
        let places = changed.iter().map(|(id, standing, _)| (*id, standing.place)).collect();
        result::follow_deliveries(session, &places, Pending::Anew).await
    }
}

fn change<'a>(changed: &[(i64, &Standing, Changed)], now: Timestamp) -> crate::query::Statement<'a> {
    fn each<T>(changed: &[(i64, &Standing, Changed)], of: impl Fn(&Standing) -> T) -> Vec<T> {
        changed.iter().map(|(_, standing, _)| of(standing)).collect()
    }
    // Only those with a state that is known are changed.
    let state = |standing: &Standing| standing.state.map_or(0, |state| i16::from(state.number()));
    sqlx::query(CHANGE)
        .bind(stored(now.0))
        .bind(changed.iter().map(|(id, ..)| *id).collect::<Vec<_>>())
        .bind(each(changed, |standing| small(standing.destination.0)))
        .bind(each(changed, |standing| standing.place.tier))
        .bind(each(changed, |standing| standing.place.day))
        .bind(each(changed, |standing| stored_lane(standing.lane)))
        .bind(each(changed, state))
        .bind(each(changed, |standing| small(standing.round.0)))
        .bind(each(changed, |standing| standing.attempts))
        .bind(each(changed, |standing| standing.due_at))
        .bind(each(changed, |standing| standing.reason.clone()))
}

const REMEMBER: &str = "INSERT INTO action_requests (message_id, destination_id, request)
    SELECT * FROM unnest($1::int8[], $2::int4[], $3::text[])";
const RECORD: &str = "INSERT INTO message_actions (message_id, at, destination_id, action, author, reason)
    SELECT a.message_id, $1, a.destination_id, a.action, a.author, a.reason
    FROM unnest($2::int8[], $3::int4[], $4::int2[], $5::text[], $6::text[]) WITH ORDINALITY
        AS a (message_id, destination_id, action, author, reason, n)
    ORDER BY a.n";

/// Who did what, and under which request.
async fn record(session: &mut Session, done: &[&Action], now: Timestamp) -> Result<(), Failed> {
    let what = "record actions";
    if done.is_empty() {
        return Ok(());
    }
    let slots: Vec<_> = done.iter().filter_map(|action| slot(action)).collect();
    if !slots.is_empty() {
        let remember = sqlx::query(REMEMBER)
            .bind(slots.iter().map(|(message, ..)| *message).collect::<Vec<_>>())
            .bind(slots.iter().map(|(_, destination, _)| *destination).collect::<Vec<_>>())
            .bind(slots.iter().map(|(.., request)| request.as_str()).collect::<Vec<_>>());
        session.execute(what, remember).await?;
    }
    let destination = |action: &&Action| action.destination.map(|destination| small(destination.0));
    let record = sqlx::query(RECORD)
        .bind(stored(now.0))
        .bind(done.iter().map(|action| stored(action.message.0)).collect::<Vec<_>>())
        .bind(done.iter().map(destination).collect::<Vec<_>>())
        .bind(done.iter().map(|action| i16::from(action.kind.number())).collect::<Vec<_>>())
        .bind(done.iter().map(|action| text(&action.author)).collect::<Vec<_>>())
        .bind(done.iter().map(|action| text(&action.reason)).collect::<Vec<_>>());
    session.execute(what, record).await.map(drop)
}
