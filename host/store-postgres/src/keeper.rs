//! What is done with old messages, on a session of its own beside the writer: a transaction a step, made again
//! when others are in its way.

use std::collections::BTreeSet;
use std::sync::Arc;

use portway_model::{RetentionChange, RetentionState};
use portway_store::{ConfirmRetention, Durability, Expired, Expiry, MoveRetention, Moved, StoreError};

use crate::error::{Failed, closed};
use crate::expiry::{self, Passes};
use crate::moving;
use crate::partition::{self, Patience, Slot, There};
use crate::query::Session;
use crate::removal::{Next, Periods, Work};
use crate::sealed::{self, Sealed};
use crate::transaction::{Turn, begin};
use crate::writer::{Shared, TRIES_MAX, pause};
use crate::{keeping, retention, schema};

/// See the file.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    /// None: it is being used, was not needed yet, or broke.
    session: Option<Session>,
    /// How often the readers' sessions had been let go of when it was begun: it goes with the next ones, since
    /// the server may be another.
    forgotten: u64,
    passes: Passes,
    there: There,
    is_closed: bool,
}

/// What a step came to.
enum Step {
    Done(Expired),
    /// A period goes as a whole, in transactions of the server's own.
    Remove(Work),
}

const REMOVE: &str = "remove old messages";
const MOVE: &str = "change how long messages are kept";

/// A transaction of somebody who is alone, made again when others are in its way.
macro_rules! alone {
    ($keeper:expr, $what:expr, |$session:ident| $work:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let mut session = $keeper.begin($what, Turn::Alone).await?;
            let done = async {
                let $session = &mut session;
                let done = $work?;
                session.commit($what).await?;
                Ok::<_, Failed>(done)
            };
            let done = done.await;
            match $keeper.ended(session, done).await {
                Ok(done) => break Ok::<_, StoreError>(done),
                Err(failed) if is_worth_another_try(&failed) && tries < TRIES_MAX => pause(tries).await,
                Err(failed) => break Err(failed.told()),
            }
        }
    }};
}

impl Keeper {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Keeper {
            shared,
            session: None,
            forgotten: 0,
            passes: Passes::default(),
            there: There::default(),
            is_closed: false,
        }
    }

    /// A session, taken out of its place: whoever is cancelled in the middle takes it along.
    async fn take(&mut self) -> Result<Session, Failed> {
        if self.is_closed {
            return Err(closed().into());
        }
        let forgotten = self.shared.readers.forgotten();
        if let Some(session) = self.session.take().filter(|_| forgotten == self.forgotten) {
            return Ok(session);
        }
        self.forgotten = forgotten;
        let mut session = self.shared.connector.connect().await?;
        schema::check(&mut session).await?;
        // A server that began anew may have lost the last steps.
        self.passes.forget();
        Ok(session)
    }

    fn keep(&mut self, session: Session) {
        if !session.is_broken {
            self.session = Some(session);
        }
    }

    /// A session inside a new transaction. A session that broke since it was last used is begun anew.
    async fn begin(&mut self, what: &'static str, turn: Turn) -> Result<Session, Failed> {
        loop {
            let was_used = self.session.is_some();
            let mut session = self.take().await?;
            match begin(&mut session, what, turn).await {
                Ok(()) => return Ok(session),
                Err(failed) if was_used && failed.breaks_connection() => {}
                Err(failed) => {
                    self.keep(session);
                    return Err(failed);
                }
            }
        }
    }

    /// The transaction of what failed is rolled back, perhaps since a partition was removed.
    async fn ended<T>(&mut self, mut session: Session, done: Result<T, Failed>) -> Result<T, Failed> {
        if done.is_err() {
            session.roll_back().await;
            self.there.forget();
        }
        self.keep(session);
        done
    }

    /// One step of removing what is old.
    pub(crate) async fn expire(&mut self, expiry: &Expiry) -> Result<Expired, StoreError> {
        let shared = Arc::clone(&self.shared);
        let step = {
            let _step = shared.step.lock().await;
            self.expire_step(expiry).await?
        };
        match step {
            Step::Done(expired) => Ok(expired),
            // It may wait for who reads, and the writer must not.
            Step::Remove(work) => Ok(self.remove(&work).await),
        }
    }

    async fn expire_step(&mut self, expiry: &Expiry) -> Result<Step, StoreError> {
        if self.passes.begins() {
            match self.expire_periods(expiry).await? {
                Next::Remove(work) => return Ok(Step::Remove(work)),
                Next::Stepped(messages) => return Ok(Step::Done(Expired { messages, goes_on: true })),
                Next::Seal(_) | Next::Decide(_) | Next::Lacks(_) | Next::Nothing => {}
            }
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let mut session = self.begin(REMOVE, Turn::Beside(Durability::Relaxed)).await?;
            let stepped = expire_in(&mut session, &self.passes, expiry).await;
            match self.ended(session, stepped).await {
                Ok((expired, passes)) => {
                    self.passes = passes;
                    if self.passes.begins() {
                        self.passes.periods.begin();
                    }
                    self.shared.housekeeping.set_kept(&self.passes.kept);
                    return Ok(Step::Done(expired));
                }
                Err(failed) if is_worth_another_try(&failed) && tries < TRIES_MAX => pause(tries).await,
                Err(failed) => return Err(failed.told()),
            }
        }
    }

    /// One step of removing periods. What cannot be done now is left to the next pass.
    async fn expire_periods(&mut self, expiry: &Expiry) -> Result<Next, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut session = self.begin(REMOVE, Turn::Beside(Durability::Relaxed)).await?;
            let mut periods = self.passes.periods.clone();
            let stepped = periods_in(&mut session, &mut periods, expiry, &mut self.there).await;
            match self.ended(session, stepped).await {
                Ok(Next::Lacks(slots)) => {
                    if tries >= TRIES_MAX || !self.make_for(&slots).await {
                        self.passes.periods.leave();
                        return Ok(Next::Stepped(0));
                    }
                }
                Ok(Next::Seal(sealed)) => {
                    self.seal(sealed).await?;
                    return Ok(Next::Stepped(0));
                }
                Ok(Next::Decide(work)) => {
                    self.decide(work.sealed).await?;
                    return Ok(Next::Stepped(0));
                }
                Ok(next) => {
                    self.passes.periods = periods;
                    return Ok(next);
                }
                Err(failed) if is_worth_another_try(&failed) && tries < TRIES_MAX => pause(tries).await,
                Err(failed) => return Err(failed.told()),
            }
        }
    }

    /// From now on nothing comes into a period.
    async fn seal(&mut self, sealed: Sealed) -> Result<(), StoreError> {
        let is_sealed = alone!(self, "seal a period", |session| sealed::seal(session, sealed).await)?;
        self.passes.periods.go_on(sealed);
        if !is_sealed {
            self.passes.periods.leave();
        }
        Ok(())
    }

    /// Nothing in a period is needed: it goes in any case.
    async fn decide(&mut self, sealed: Sealed) -> Result<(), StoreError> {
        let is_decided =
            alone!(self, "decide that a period goes", |session| sealed::decide(session, sealed).await)?;
        // What was decided is found as it is now, by this pass or by the next.
        if !is_decided {
            self.passes.periods.leave();
        }
        Ok(())
    }

    /// Removes the partitions of a period. If somebody is in the way, or another engine is at it, it is left to a
    /// later pass.
    async fn remove(&mut self, work: &Work) -> Expired {
        let removed = async {
            let mut session = self.take().await?;
            let removed = sealed::remove(&mut session, work.sealed).await;
            self.keep(session);
            removed
        };
        let removed = removed.await;
        self.passes.periods.leave();
        let messages = match removed {
            Ok(true) => work.messages,
            Ok(false) => 0,
            Err(failed) => {
                tracing::info!(error = %failed.told(), "a period cannot be removed now: tried again later");
                0
            }
        };
        Expired { messages, goes_on: true }
    }

    /// One step of a change.
    pub(crate) async fn move_retention(&mut self, step: &MoveRetention) -> Result<Moved, StoreError> {
        let shared = Arc::clone(&self.shared);
        let _step = shared.step.lock().await;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.move_once(step).await {
                Ok(moving::Step::Lacks(slots)) => {
                    if tries >= TRIES_MAX || !self.make_for(&slots).await {
                        return Ok(Moved::nothing(self.state_of(step).await?.unwrap_or_default()));
                    }
                }
                Ok(moving::Step::Idle(state) | moving::Step::Waits(state)) => {
                    return Ok(Moved::nothing(state));
                }
                Ok(moving::Step::Done { state, change, moved, removed, seen_to }) => {
                    let state = match seen_to {
                        Some(seen_to) => {
                            self.passes.moved_to.insert(step.interface, (change, seen_to));
                            state
                        }
                        None => self.finish_change(step, change).await?,
                    };
                    return Ok(Moved { moved, removed, state, goes_on: state.change.is_some() });
                }
                Err(failed) if is_worth_another_try(&failed) && tries < TRIES_MAX => pause(tries).await,
                Err(failed) => return Err(failed.told()),
            }
        }
    }

    async fn move_once(&mut self, step: &MoveRetention) -> Result<moving::Step, Failed> {
        let mut session = self.begin(MOVE, Turn::Beside(Durability::Relaxed)).await?;
        let moved_to = self.passes.moved_to.get(&step.interface).copied();
        let moved = async {
            let moved = moving::move_some(&mut session, step, moved_to, &mut self.there).await?;
            session.commit(MOVE).await?;
            Ok(moved)
        };
        let moved = moved.await;
        self.ended(session, moved).await
    }

    /// All messages of a change were looked at. If the session of the steps is gone by now, some of them may be
    /// lost, and the change goes on.
    async fn finish_change(
        &mut self,
        step: &MoveRetention,
        change: RetentionChange,
    ) -> Result<RetentionState, StoreError> {
        self.passes.moved_to.insert(step.interface, (change, i64::MAX));
        let state = alone!(self, MOVE, |session| {
            match self.passes.moved_to.contains_key(&step.interface) {
                true => retention::finish(session, step, change).await,
                false => retention::state_of(session, step.interface).await.map(Option::unwrap_or_default),
            }
        })?;
        self.passes.moved_to.remove(&step.interface);
        Ok(state)
    }

    async fn state_of(&mut self, step: &MoveRetention) -> Result<Option<RetentionState>, Failed> {
        let mut session = self.take().await?;
        let state = retention::state_of(&mut session, step.interface).await;
        self.keep(session);
        state
    }

    /// An operator agrees.
    pub(crate) async fn confirm_retention(
        &mut self,
        confirm: &ConfirmRetention,
    ) -> Result<Option<RetentionState>, StoreError> {
        let what = "confirm how long messages are kept";
        alone!(self, what, |session| retention::confirm(session, confirm).await)
    }

    /// Whether there are partitions for these now.
    async fn make_for(&mut self, slots: &BTreeSet<Slot>) -> bool {
        let Ok(mut session) = self.take().await else { return false };
        let made = partition::make_for(&mut session, slots, Patience::Short).await;
        self.keep(session);
        self.shared.housekeeping.set_fresh();
        made.is_ok()
    }

    /// Lets go of the session.
    pub(crate) async fn close(&mut self) {
        self.is_closed = true;
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }
}

/// Others were in the way, or removed a partition that was there before.
fn is_worth_another_try(failed: &Failed) -> bool {
    failed.is_contended() || failed.lacks_partition()
}

async fn expire_in(
    session: &mut Session,
    passes: &Passes,
    expiry: &Expiry,
) -> Result<(Expired, Passes), Failed> {
    let stepped = match keeping::take_turn(session).await? {
        true => {
            retention::save_age(session, expiry.aged_to).await?;
            passes.step(session, expiry).await?
        }
        false => (Expired { messages: 0, goes_on: true }, passes.clone()),
    };
    // In the order in which a batch locks them.
    expiry::forget_keys(session, expiry.now, expiry.limit).await?;
    session.commit(REMOVE).await?;
    Ok(stepped)
}

async fn periods_in(
    session: &mut Session,
    periods: &mut Periods,
    expiry: &Expiry,
    there: &mut There,
) -> Result<Next, Failed> {
    let next = match keeping::take_turn(session).await? {
        true => {
            retention::save_age(session, expiry.aged_to).await?;
            periods.step(session, expiry, there).await?
        }
        false => Next::Stepped(0),
    };
    session.commit(REMOVE).await?;
    Ok(next)
}
