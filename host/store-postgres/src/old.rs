//! Messages of an interface that are past their window, and what becomes of each.
//!
//! Looks at them; removing and moving them is left to `expiry`, `removal` and `moving`.

use portway_model::{InterfaceId, MessageStatus, Quarantined, RetentionState, Timestamp};

use crate::error::Failed;
use crate::keeping::Row;
use crate::number::{self, small, stored};
use crate::query::{Session, value};

/// Which messages of an interface are old, and what becomes of them.
pub(crate) struct Old {
    pub(crate) interface: InterfaceId,
    pub(crate) state: RetentionState,
    /// What was stored before is old.
    pub(crate) before: Timestamp,
}

/// Messages of an interface, in their order.
pub(crate) struct Looked {
    pub(crate) rows: Vec<Row>,
    /// There is no other behind the last one.
    pub(crate) is_end: bool,
}

const LOOK: &str = "SELECT id, status, stored_at, body_bytes, tier, day FROM messages
    WHERE interface_id = $1 AND id > $2 ORDER BY id LIMIT $3";

impl Old {
    /// Looks at no more than `rows_max` messages behind `after`.
    pub(crate) async fn look_at_all(
        &self,
        session: &mut Session,
        after: i64,
        rows_max: u32,
    ) -> Result<Looked, Failed> {
        let look = sqlx::query(LOOK).bind(small(self.interface.0)).bind(after).bind(i64::from(rows_max));
        let rows = session.read("look for old messages", look, |row| {
            Ok(Row {
                id: value(row, 0)?,
                status: value(row, 1)?,
                stored_at: value(row, 2)?,
                body_bytes: value(row, 3)?,
                tier: value(row, 4)?,
                day: value(row, 5)?,
            })
        });
        let rows = rows.await?;
        let is_end = rows.len() < rows_max as usize;
        Ok(Looked { rows, is_end })
    }

    /// The same, up to the first that is not old: numbers rise with time, but for a clock that was set back.
    pub(crate) async fn look(
        &self,
        session: &mut Session,
        after: i64,
        rows_max: u32,
    ) -> Result<Looked, Failed> {
        let mut looked = self.look_at_all(session, after, rows_max).await?;
        if let Some(young) = looked.rows.iter().position(|row| row.stored_at >= stored(self.before.0)) {
            looked.rows.truncate(young);
            looked.is_end = true;
        }
        Ok(looked)
    }

    /// Whether a message is old and needed by nobody.
    pub(crate) fn goes(&self, row: &Row) -> bool {
        self.is_done(row.status) && row.stored_at < stored(self.before.0)
    }

    /// Whether it goes: not while a change that runs has still to take it into its tier.
    pub(crate) fn expires(&self, row: &Row) -> bool {
        let own = number::tier(self.state.in_force().tier);
        let waits = self.state.change.is_some() && row.tier != own && row.tier != number::HELD;
        self.goes(row) && !waits
    }

    /// Whether nobody needs a message with this status any more.
    pub(crate) fn is_done(&self, status: i16) -> bool {
        let purges = self.state.in_force().quarantined == Quarantined::Purge;
        match status_of(status) {
            Some(MessageStatus::Finished | MessageStatus::Duplicate) => true,
            Some(MessageStatus::Quarantined) => purges,
            // A status of a newer binary is left alone.
            Some(MessageStatus::Pending) | None => false,
        }
    }

    /// Whether a change to a tier has to touch it.
    pub(crate) fn is_to_be_moved(&self, row: &Row, to: i16) -> bool {
        row.tier != to && row.tier != number::HELD
    }
}

pub(crate) fn status_of(status: i16) -> Option<MessageStatus> {
    u8::try_from(status).ok().and_then(MessageStatus::from_number)
}
