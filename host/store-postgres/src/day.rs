//! On which days messages were stored, as far as a look at the partitions tells.
//!
//! A message is asked for by its number, and its partition is found by its day. Numbers rise with days, so
//! the lowest and the highest number of each partition say for nearly every message in which few of them it
//! can be. Of what this engine stored itself, lately, it is known which one that is. All this is a hint: what is
//! not found with it is looked for everywhere.

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

use crate::error::Failed;
use crate::partition::{self, Leaf};
use crate::query::{Session, value};

/// First and last day.
pub(crate) type Range = (i32, i32);

/// Every day there is.
pub(crate) const EVER: Range = (i32::MIN, i32::MAX);

/// Where a message can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub(crate) days: Range,
    /// First and last, as stored.
    pub(crate) tiers: (i16, i16),
}

impl Whereabouts {
    pub(crate) const ANYWHERE: Whereabouts = Whereabouts { days: EVER, tiers: (i16::MIN, i16::MAX) };
}

/// Stretches of messages that are remembered of those stored lately.
const RECENT_MAX: usize = 4_096;

/// What is known of the days of messages.
#[derive(Default)]
pub(crate) struct Days {
    known: RwLock<Known>,
}

#[derive(Clone, Default)]
struct Known {
    spans: Vec<Span>,
    /// What this engine stored, in the order of the numbers.
    recent: VecDeque<Recent>,
    /// The latest day that was seen.
    today: i32,
}

/// Messages with numbers one after the other that were stored in the same partition.
#[derive(Clone, Copy)]
struct Recent {
    first_id: i64,
    last_id: i64,
    day: i32,
    tier: i16,
}

/// The messages of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first_id: i64,
    last_id: i64,
    first_day: i32,
    last_day: i32,
}

impl Days {
    /// Where messages with these numbers are, as far as is known.
    pub(crate) fn of(&self, ids: impl IntoIterator<Item = i64>) -> Range {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Option<Range> = None;
        for id in ids {
            let Some((first, last)) = known.of(id) else { return EVER };
            let (low, high) = found.unwrap_or((first, last));
            found = Some((low.min(first), high.max(last)));
        }
        found.unwrap_or(EVER)
    }

    /// Where a message with this number is, as far as is known.
    pub(crate) fn whereabouts(&self, id: i64) -> Whereabouts {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known.recent(id) {
            Some(recent) => Whereabouts { days: (recent.day, recent.day), tiers: (recent.tier, recent.tier) },
            None => Whereabouts { days: known.of(id).unwrap_or(EVER), ..Whereabouts::ANYWHERE },
        }
    }

    /// These messages were just stored, with rising numbers.
    pub(crate) fn stored(&self, messages: &[(i64, i16)], day: i32) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for (id, tier) in messages {
            known.remember(Recent { first_id: *id, last_id: *id, day, tier: *tier });
        }
    }

    /// The day a message was just stored on. Whether it is a new one.
    pub(crate) fn see(&self, today: i32) -> bool {
        if self.known.read().unwrap_or_else(PoisonError::into_inner).today >= today {
            return false;
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).today = today;
        true
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }

    /// Looks at the partitions there are.
    pub(crate) async fn load(&self, session: &mut Session, today: i32) -> Result<(), Failed> {
        let leaves = partition::leaves(session).await?;
        let mut looked_at = Vec::new();
        for leaf in leaves.iter().filter(|leaf| leaf.table == "messages" && leaf.from <= today) {
            looked_at.push((leaf, ends(session, leaf).await?));
        }
        let newest = looked_at.iter().filter_map(|(_, ends)| ends.map(|(_, last)| last)).max().unwrap_or(0);
        let spans =
            looked_at.into_iter().filter_map(|(leaf, ends)| span(leaf, ends, newest, today)).collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.spans = spans;
        known.today = known.today.max(today);
        Ok(())
    }
}

impl Known {
    fn recent(&self, id: i64) -> Option<Recent> {
        let behind = self.recent.partition_point(|recent| recent.first_id <= id);
        let recent = self.recent.get(behind.checked_sub(1)?)?;
        (id <= recent.last_id).then_some(*recent)
    }

    fn remember(&mut self, new: Recent) {
        match self.recent.back_mut() {
            Some(last) if (last.last_id + 1, last.day, last.tier) == (new.first_id, new.day, new.tier) => {
                last.last_id = new.last_id;
            }
            // Numbers that a server forgot are not given again, but nothing depends on it.
            Some(last) if last.last_id >= new.first_id => self.recent = VecDeque::from([new]),
            _ => self.recent.push_back(new),
        }
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }

    fn of(&self, id: i64) -> Option<Range> {
        let with_it = self.spans.iter().filter(|span| (span.first_id..=span.last_id).contains(&id));
        let days = |span: &Span| (span.first_day, span.last_day.min(self.today.saturating_add(1)));
        with_it.map(days).reduce(|(low, high), (first, last)| (low.min(first), high.max(last)))
    }
}

/// The lowest and the highest number in a partition.
async fn ends(session: &mut Session, leaf: &Leaf) -> Result<Option<(i64, i64)>, Failed> {
    let ends = format!("SELECT min(id), max(id) FROM {}", leaf.name);
    let statement = sqlx::query(sqlx::AssertSqlSafe(ends)).persistent(false);
    let ends = session.read_one("look at a partition", statement, |row| {
        Ok(value::<Option<i64>>(row, 0)?.zip(value::<Option<i64>>(row, 1)?))
    });
    match ends.await {
        // Another engine removed it a moment ago.
        Err(failed) if failed.lacks_table() => Ok(None),
        ends => Ok(ends?.flatten()),
    }
}

/// What a partition tells. One that messages still come into has no end, and if it is empty, what comes is
/// above all there is.
fn span(leaf: &Leaf, ends: Option<(i64, i64)>, newest: i64, today: i32) -> Option<Span> {
    let (first_id, last_id) = match (ends, leaf.to > today) {
        (Some((first, _)), true) => (first, i64::MAX),
        (Some(ends), false) => ends,
        (None, true) => (newest.saturating_add(1), i64::MAX),
        (None, false) => return None,
    };
    // What is stored on the days to come is above the numbers of today as well.
    let last_day = if last_id == i64::MAX { i32::MAX } else { leaf.to - 1 };
    Some(Span { first_id, last_id, first_day: leaf.from, last_day })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(from: i32, to: i32) -> Leaf {
        Leaf { table: "messages".into(), tier: 49, name: String::new(), from, to }
    }

    /// First day, first day behind it, lowest and highest number.
    type Partition = (i32, i32, Option<(i64, i64)>);

    /// What is known on day 25 of these partitions and the numbers in them.
    fn days(leaves: &[Partition]) -> Days {
        let newest = leaves.iter().filter_map(|(_, _, ends)| ends.map(|(_, last)| last)).max().unwrap_or(0);
        let spans = leaves.iter().filter_map(|(from, to, ends)| span(&leaf(*from, *to), *ends, newest, 25));
        let known = Known { spans: spans.collect(), today: 25, ..Known::default() };
        Days { known: RwLock::new(known) }
    }

    #[test]
    fn what_was_stored_lately_is_known_to_be_in_one_partition() {
        let days = days(&[(18, 25, Some((80, 200))), (25, 32, Some((201, 210)))]);
        days.stored(&[(211, 7), (212, 7), (215, 7), (216, 49)], 25);
        let place = |tier| Whereabouts { days: (25, 25), tiers: (tier, tier) };
        assert_eq!([211, 212, 215].map(|id| days.whereabouts(id)), [place(7); 3]);
        assert_eq!(days.whereabouts(216), place(49));
        let somewhere = Whereabouts { days: (25, 26), ..Whereabouts::ANYWHERE };
        assert_eq!([210, 213, 217].map(|id| days.whereabouts(id)), [somewhere; 3], "of others");
        days.stored(&[(214, 21)], 26);
        assert_eq!(days.whereabouts(211), somewhere, "numbers that do not rise: nothing is known any more");
        for id in 1_000..1_000 + 2 * RECENT_MAX as i64 {
            days.stored(&[(2 * id, 7)], 26);
        }
        assert_eq!(days.whereabouts(2_000), Whereabouts { days: (25, 26), ..Whereabouts::ANYWHERE });
        assert_eq!(days.whereabouts(2 * (999 + 2 * RECENT_MAX as i64)).days, (26, 26));
        days.forget();
        assert_eq!(days.whereabouts(216), Whereabouts::ANYWHERE);
    }

    #[test]
    fn numbers_tell_days() {
        let old = (11, 18, Some((1, 90)));
        let days = days(&[old, (18, 25, Some((80, 200))), (25, 32, Some((201, 210))), (25, 26, None)]);
        assert_eq!(days.of([5, 70]), (11, 17));
        assert_eq!(days.of([85]), (11, 24), "where partitions overlap, both");
        assert_eq!(days.of([5, 205]), (11, 26));
        assert_eq!(days.of([999]), (25, 26), "new ones are of today, or a day later");
        assert_eq!(days.of([5, 0]), EVER, "what is nowhere may be anywhere");
        assert!(days.see(27) && !days.see(26));
        assert_eq!(days.of([999]), (25, 28));
        days.forget();
        assert_eq!(days.of([5]), EVER);
    }
}
