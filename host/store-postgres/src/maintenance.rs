//! Housekeeping beside the writer: partitions of the days to come, floors of queues, names of engines that
//! are gone, and whether a full disk has room again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{PoisonError, RwLock};

use portway_model::InterfaceId;
use portway_store::{KeptBeyond, Maintenance, StoreError};

use crate::announce::announce;
use crate::day::Days;
use crate::error::Failed;
use crate::floor::Floors;
use crate::partition::{self, Patience};
use crate::query::Session;
use crate::seen;

/// What housekeeping remembers between two passes.
#[derive(Default)]
pub(crate) struct Housekeeping {
    /// The last day that was looked at as a whole; nothing changes until the next one begins.
    day: AtomicI32,
    /// A write found no room.
    full: AtomicBool,
    /// Partitions were made, and not announced since by a pass that had nothing else to do with them.
    fresh: AtomicBool,
    pub(crate) floors: Floors,
    /// What the last pass over old messages counted.
    kept: RwLock<HashMap<InterfaceId, KeptBeyond>>,
}

impl Housekeeping {
    /// After a write that found no room.
    pub(crate) fn set_full(&self) {
        self.full.store(true, Ordering::Relaxed);
    }

    /// After partitions were made.
    pub(crate) fn set_fresh(&self) {
        self.fresh.store(true, Ordering::Relaxed);
    }

    /// Nothing that was seen on another session counts any more.
    pub(crate) fn forget(&self) {
        self.day.store(0, Ordering::Relaxed);
        self.floors.forget();
    }

    /// A pass over old messages counted.
    pub(crate) fn set_kept(&self, kept: &HashMap<InterfaceId, KeptBeyond>) {
        let mut known = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if *known != *kept {
            known.clone_from(kept);
        }
    }

    pub(crate) fn kept(&self) -> HashMap<InterfaceId, KeptBeyond> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One pass.
    pub(crate) async fn run(&self, session: &mut Session, days: &Days) -> Result<Maintenance, Failed> {
        let today = partition::today(session).await?;
        if self.day.load(Ordering::Relaxed) != today {
            self.set_fresh();
            self.begin_day(session, days, today).await?;
        } else if self.fresh.swap(false, Ordering::Relaxed) {
            self.announce(session).await?;
        }
        match self.floors.raise(session).await {
            // Somebody is at it; it is tried again with the next pass.
            Err(failed) if failed.is_locked_out() || failed.is_contended() => {}
            raised => raised?,
        }
        if self.full.load(Ordering::Relaxed) && has_room(session).await? {
            self.full.store(false, Ordering::Relaxed);
        }
        Ok(Maintenance {
            full: self.full.load(Ordering::Relaxed),
            free_bytes: None,
            log_bytes: 0,
            goes_on: false,
        })
    }

    /// Once more, some time after they were made: then no plan is being made any more that was begun before.
    async fn announce(&self, session: &mut Session) -> Result<(), Failed> {
        let announced = announce(session).await;
        if !matches!(announced, Ok(true)) {
            self.set_fresh();
        }
        announced.map(drop)
    }

    async fn begin_day(&self, session: &mut Session, days: &Days, today: i32) -> Result<(), Failed> {
        let made = match partition::make_ahead(session, today, Patience::Short).await {
            Err(failed) if failed.is_locked_out() => {
                self.make_tomorrow(session, today).await?;
                false
            }
            made => made.map(|_| true)?,
        };
        days.load(session, today).await?;
        if made {
            match seen::note(session, today).await {
                // Somebody is at it.
                Err(failed) if failed.is_locked_out() || failed.is_contended() => {}
                noted => noted?,
            }
            self.day.store(today, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Waits for whoever is in the way if there would be nothing to store tomorrow's messages in.
    async fn make_tomorrow(&self, session: &mut Session, today: i32) -> Result<(), Failed> {
        let leaves = partition::leaves(session).await?;
        if partition::is_ready(&leaves, today) && partition::is_ready(&leaves, today + 1) {
            tracing::info!("partitions are not made yet: somebody holds a lock; tried again soon");
            return Ok(());
        }
        tracing::warn!("partitions of tomorrow are missing: waiting for whoever holds a lock");
        partition::make_ahead(session, today, Patience::UntilItIsThere).await.map(drop)
    }
}

/// Something of some size, written and flushed.
const PROBE: &str = "BEGIN; CREATE TABLE portway_room (bytes bytea); ALTER TABLE portway_room
        ALTER COLUMN bytes SET STORAGE EXTERNAL;
    INSERT INTO portway_room SELECT convert_to(repeat('x', 1048576), 'UTF8') FROM generate_series(1, 16)";

/// Whether 16 MiB can be stored. They are taken back.
async fn has_room(session: &mut Session) -> Result<bool, Failed> {
    let probed = session.script("look for room on the disk", PROBE).await;
    session.roll_back().await;
    match probed {
        Ok(()) => Ok(true),
        Err(failed) => {
            let error: StoreError = failed.told();
            match error.kind() {
                portway_store::ErrorKind::Full => Ok(false),
                _ => Err(error.into()),
            }
        }
    }
}
