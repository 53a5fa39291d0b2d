//! What operators do to destinations as a whole, and which are paused because of it.

use std::collections::BTreeSet;

use portway_model::{DestinationId, GroupId, Timestamp};
use portway_store::{
    DestinationAction, DestinationActionKind, DestinationActionView, ErrorKind, Pause, StoreError,
};

use crate::error::Failed;
use crate::number::{self, small, stored, text};
use crate::query::{Session, value};
use crate::state;

const RECORD: &str = "INSERT INTO destination_actions (destination_id, at, action, author, reason)
    SELECT a.destination_id, $1, a.action, a.author, a.reason
    FROM unnest($2::int4[], $3::int2[], $4::text[], $5::text[]) WITH ORDINALITY
        AS a (destination_id, action, author, reason, n)
    ORDER BY a.n";
/// Never the newest word on whether it is paused.
const FORGET: &str = "DELETE FROM destination_actions a USING unnest($1::int4[]) AS d (id)
    WHERE a.destination_id = d.id AND a.id <= (SELECT k.id FROM destination_actions k
        WHERE k.destination_id = d.id ORDER BY k.id DESC LIMIT 1 OFFSET $2)
        AND a.id <> coalesce((SELECT k.id FROM destination_actions k
            WHERE k.destination_id = d.id AND k.action IN (1, 2) ORDER BY k.id DESC LIMIT 1), 0)";

/// Does and records actions inside the transaction that is open, in order.
pub(crate) async fn act(
    session: &mut Session,
    actions: &[DestinationAction],
    now: Timestamp,
) -> Result<(), Failed> {
    if actions.is_empty() {
        return Ok(());
    }
    let what = "store actions on destinations";
    let record = sqlx::query(RECORD)
        .bind(stored(now.0))
        .bind(actions.iter().map(|action| small(action.destination.0)).collect::<Vec<_>>())
        .bind(actions.iter().map(|action| i16::from(action.kind.number())).collect::<Vec<_>>())
        .bind(actions.iter().map(|action| text(&action.author)).collect::<Vec<_>>())
        .bind(actions.iter().map(|action| text(&action.reason)).collect::<Vec<_>>());
    session.execute(what, record).await?;
    let destinations: BTreeSet<i32> = actions.iter().map(|action| small(action.destination.0)).collect();
    let forget = sqlx::query(FORGET)
        .bind(destinations.into_iter().collect::<Vec<_>>())
        .bind(i64::from(DestinationActionView::KEPT_MAX));
    session.execute(what, forget).await?;
    for action in actions {
        match &action.kind {
            DestinationActionKind::RemoveState(at) => state::remove(session, action.destination, at).await?,
            // Whether it is paused is read from the record.
            DestinationActionKind::Pause | DestinationActionKind::Resume => {}
        }
    }
    Ok(())
}

const GROUPS: &str = "SELECT DISTINCT interface_id FROM destinations WHERE id = ANY ($1)";

/// The groups of destinations that are acted on: their interfaces, as long as each is a group. Their owners are held
/// like those of messages: a claim waits, and then reads what is paused.
pub(crate) async fn groups(
    session: &mut Session,
    actions: &[DestinationAction],
) -> Result<BTreeSet<i32>, Failed> {
    if actions.is_empty() {
        return Ok(BTreeSet::new());
    }
    let destinations: Vec<i32> = actions.iter().map(|action| small(action.destination.0)).collect();
    let groups = sqlx::query(GROUPS).bind(destinations);
    let groups = session.read("read whose destinations are acted on", groups, |row| value(row, 0));
    Ok(groups.await?.into_iter().collect())
}

/// Refuses what is done to destinations of another engine. It would be told that something was stored, and not that it
/// is to stop.
pub(crate) fn check_owned(
    acted_on: &BTreeSet<i32>,
    mut of_others: impl Iterator<Item = GroupId>,
) -> Result<(), StoreError> {
    match of_others.any(|group| acted_on.contains(&small(group.0))) {
        true => Err(StoreError::new(ErrorKind::Refused, "another engine runs this destination by now")),
        false => Ok(()),
    }
}

const LIST: &str = "SELECT at, action, author, reason FROM destination_actions
    WHERE destination_id = $1 ORDER BY id DESC LIMIT $2";

pub(crate) async fn list_actions(
    session: &mut Session,
    destination: DestinationId,
) -> Result<Vec<DestinationActionView>, Failed> {
    let statement =
        sqlx::query(LIST).bind(small(destination.0)).bind(i64::from(DestinationActionView::KEPT_MAX));
    let list = session.read("list actions on a destination", statement, |row| {
        let kind = u8::try_from(value::<i16>(row, 1)?).unwrap_or_default();
        Ok(DestinationActionView {
            at: number::time(value(row, 0)?)?,
            action: DestinationActionKind::name_of(kind),
            author: value(row, 2)?,
            reason: value(row, 3)?,
        })
    });
    list.await
}

/// The newest pause or resume of a destination counts.
const PAUSES: &str = "SELECT d.id, a.at, a.author, a.reason FROM destinations d
    CROSS JOIN LATERAL (SELECT at, action, author, reason FROM destination_actions
        WHERE destination_id = d.id AND action IN (1, 2) ORDER BY id DESC LIMIT 1) AS a
    WHERE a.action = $1 ORDER BY d.id";

pub(crate) async fn pauses(session: &mut Session) -> Result<Vec<(DestinationId, Pause)>, Failed> {
    let statement = sqlx::query(PAUSES).bind(i16::from(DestinationActionKind::Pause.number()));
    let pauses = session.read("read which destinations are paused", statement, |row| {
        let pause =
            Pause { since: number::time(value(row, 1)?)?, author: value(row, 2)?, reason: value(row, 3)? };
        Ok((number::destination(value(row, 0)?)?, pause))
    });
    pauses.await
}
