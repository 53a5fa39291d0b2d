//! What an engine is told of others: what they stored for it, and that it lost its lock.
//!
//! Each owner's row counts the transactions in which others stored messages for it. Here is up to which count
//! the engine was told, by a write or as news; so nothing is told twice, whichever way is faster. Counts
//! never fall, which makes it harmless to see an old one late.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portway_model::{Epoch, GroupId};
use portway_store::{News, StoreError};
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::error::Failed;
use crate::owner;
use crate::readers::read;
use crate::servers::ORIGIN;
use crate::writer::Shared;

/// Between two looks whether the connection that listens is alive, and how long it may take to answer.
const LOOK: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Before connecting again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the engine was told, and what it is to be told.
#[derive(Default)]
pub(crate) struct Told {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// In which it owns what it owns; none: nothing.
    epoch: Option<Epoch>,
    lost: bool,
    missed: bool,
    /// The counts it was told of.
    told: HashMap<GroupId, i64>,
    /// The counts it is not told of yet.
    heard: BTreeMap<GroupId, i64>,
}

impl Told {
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.state().epoch
    }

    /// It owns these groups now, and will see what was stored for them up to these counts.
    pub(crate) fn own(&self, epoch: Epoch, groups: &[(GroupId, i64)]) {
        let mut state = self.state();
        state.epoch = Some(epoch);
        state.lost = false;
        state.tell(groups);
    }

    /// It owns nothing any more.
    pub(crate) fn lose(&self) {
        let mut state = self.state();
        if state.epoch.take().is_some() {
            state.lost = true;
            state.heard.clear();
            self.changed.notify_one();
        }
    }

    /// It gave back what it owned.
    pub(crate) fn release(&self) {
        self.state().epoch = None;
    }

    /// Tells these counts now; answers the groups of which it was not told before.
    pub(crate) fn tell(&self, groups: &[(GroupId, i64)]) -> Vec<GroupId> {
        if groups.is_empty() {
            return Vec::new();
        }
        self.state().tell(groups)
    }

    /// These counts are to be told.
    fn hear(&self, epoch: Epoch, groups: Vec<(GroupId, i64)>) {
        let mut state = self.state();
        if state.epoch != Some(epoch) {
            return;
        }
        for (group, count) in groups {
            if state.is_new(group, count) {
                state.heard.insert(group, count);
            }
        }
        self.changed.notify_one();
    }

    fn miss(&self) {
        self.state().missed = true;
        self.changed.notify_one();
    }

    /// Waits until there is something to tell.
    pub(crate) async fn next(&self) -> News {
        loop {
            if let Some(news) = self.state().next() {
                return news;
            }
            self.changed.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_new(&self, group: GroupId, count: i64) -> bool {
        self.told.get(&group).is_none_or(|told| *told < count)
    }

    fn tell(&mut self, groups: &[(GroupId, i64)]) -> Vec<GroupId> {
        let mut new = Vec::new();
        for (group, count) in groups {
            if self.is_new(*group, *count) {
                self.told.insert(*group, *count);
                new.push(*group);
            }
            if self.heard.get(group).is_some_and(|heard| heard <= count) {
                self.heard.remove(group);
            }
        }
        new.sort_unstable();
        new
    }

    fn next(&mut self) -> Option<News> {
        if std::mem::take(&mut self.lost) {
            // Whatever else there was to tell is about what it does not own any more.
            self.missed = false;
            return Some(News::Lost);
        }
        self.epoch?;
        if std::mem::take(&mut self.missed) {
            return Some(News::Missed);
        }
        let heard: Vec<_> = std::mem::take(&mut self.heard).into_iter().collect();
        let groups = self.tell(&heard);
        (!groups.is_empty()).then_some(News::Elsewhere(groups))
    }
}

/// Listens until it is dropped. Each time the connection was gone, something may have been missed.
pub(crate) async fn listen(shared: Arc<Shared>, engine: String, channel: String) {
    let mut is_first = true;
    loop {
        match connect(&shared, &channel).await {
            Ok(mut listener) => {
                if !std::mem::take(&mut is_first) {
                    shared.told.miss();
                }
                let ended = listen_on(&mut listener, &shared, &engine).await;
                if let Err(error) = ended {
                    tracing::warn!(%error, "the connection that hears of other engines is gone");
                }
            }
            Err(error) => tracing::warn!(%error, "cannot listen for news of other engines"),
        }
        sleep(PAUSE).await;
    }
}

/// A connection of the driver's own kind, since only that one hands out what it hears.
async fn connect(shared: &Shared, channel: &str) -> Result<PgListener, StoreError> {
    let what = "listen for news of other engines";
    let options = shared.connector.options()?;
    let connected = async {
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let pool = pool.connect_with(options).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        // A connection that was made anew unnoticed would hide that something was missed.
        listener.eager_reconnect(false);
        listener.listen(channel).await?;
        let origin = sqlx::raw_sql(ORIGIN).fetch_one(&mut listener).await;
        Ok((listener, origin))
    };
    let connected = timeout(shared.connector.connect_max(), connected).await.map_err(|_| Failed::slow(what));
    let (listener, origin) = connected?.map_err(|error| Failed::sql(what, error))?;
    shared.connector.admit(origin)?;
    Ok(listener)
}

/// Until the connection is gone.
async fn listen_on(listener: &mut PgListener, shared: &Shared, engine: &str) -> Result<(), StoreError> {
    let what = "listen for news of other engines";
    // What was stored before it listened is looked for as well.
    look(shared, engine).await?;
    loop {
        match timeout(LOOK, listener.try_recv()).await {
            Ok(Ok(Some(_))) => {
                while listener.next_buffered().is_some() {}
                look(shared, engine).await?;
            }
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(Failed::sql(what, error).told()),
            Err(_) => {
                let origin = sqlx::raw_sql(ORIGIN).fetch_one(&mut *listener);
                let origin = timeout(ANSWER_MAX, origin).await.map_err(|_| Failed::slow(what))?;
                shared.connector.admit(origin)?;
            }
        }
    }
}

/// Reads the counts.
async fn look(shared: &Shared, engine: &str) -> Result<(), StoreError> {
    let Some(epoch) = shared.told.epoch() else { return Ok(()) };
    let counts: Result<_, StoreError> =
        async { read!(shared.readers, owner::strangers, engine, epoch) }.await;
    shared.told.hear(epoch, counts?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(7);

    fn owner() -> Told {
        let told = Told::default();
        told.own(Epoch(1), &[(GROUP, 3), (GroupId(8), 0)]);
        told
    }

    fn next(told: &Told) -> Option<News> {
        told.state().next()
    }

    #[test]
    fn what_a_write_told_is_no_news_and_the_other_way_round() {
        let told = owner();
        told.hear(Epoch(1), vec![(GROUP, 3)]);
        assert_eq!(next(&told), None, "seen with the claim");
        told.hear(Epoch(1), vec![(GROUP, 4)]);
        assert_eq!(told.tell(&[(GROUP, 4)]), [GROUP]);
        assert_eq!(next(&told), None, "told by a write");
        told.hear(Epoch(1), vec![(GROUP, 5)]);
        assert_eq!(next(&told), Some(News::Elsewhere(vec![GROUP])));
        assert_eq!(told.tell(&[(GROUP, 5)]), []);
        told.hear(Epoch(1), vec![(GROUP, 4)]);
        assert_eq!(next(&told), None, "an old count that comes late");
    }

    #[test]
    fn a_loss_is_told_once_and_before_everything_else() {
        let told = owner();
        told.hear(Epoch(1), vec![(GROUP, 9)]);
        told.miss();
        told.lose();
        told.lose();
        assert_eq!((next(&told), next(&told)), (Some(News::Lost), None));
        told.hear(Epoch(1), vec![(GROUP, 10)]);
        told.own(Epoch(2), &[(GROUP, 10)]);
        assert_eq!(next(&told), None, "heard of in another tenure");
    }

    #[test]
    fn what_owns_nothing_is_told_nothing() {
        let told = Told::default();
        told.miss();
        told.lose();
        assert_eq!(next(&told), None);
    }
}
