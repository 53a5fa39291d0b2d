//! What the writer does with old messages: a transaction a step, made again when others are in its way.

use std::collections::BTreeSet;

use portway_model::{RetentionChange, RetentionState};
use portway_store::{ConfirmRetention, Durability, Expired, Expiry, MoveRetention, Moved, StoreError};

use crate::error::Failed;
use crate::expiry::{self, Passes};
use crate::keeping;
use crate::moving;
use crate::partition::{self, Patience, Slot};
use crate::query::Session;
use crate::removal::{Next, Periods, Work};
use crate::retention;
use crate::sealed::{self, Sealed};
use crate::transaction::Turn;
use crate::writer::{TRIES_MAX, Writer, pause};

/// What a step came to.
pub(crate) enum Step {
    Done(Expired),
    /// A period goes as a whole, which takes no transaction of the writer.
    Remove(Work),
}

const REMOVE: &str = "remove old messages";
const MOVE: &str = "change how long messages are kept";

/// A transaction of somebody who is alone, made again when others are in its way.
macro_rules! alone {
    ($writer:expr, $what:expr, |$session:ident| $work:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let mut session = $writer.begin($what, Turn::Alone).await?;
            let done = async {
                let $session = &mut session;
                let done = $work?;
                session.commit($what).await?;
                Ok::<_, Failed>(done)
            };
            let done = done.await;
            let done = $writer.ended(&mut session, done).await;
            $writer.keep(session);
            match done {
                Ok(done) => break Ok::<_, StoreError>(done),
                Err(failed) if failed.is_contended() && tries < TRIES_MAX => pause(tries).await,
                Err(failed) => break Err(failed.told()),
            }
        }
    }};
}

impl Writer {
    /// One step of removing what is old.
    pub(crate) async fn expire(&mut self, expiry: &Expiry) -> Result<Step, StoreError> {
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
            let stepped = self.ended(&mut session, stepped).await;
            self.keep(session);
            match stepped {
                Ok((expired, passes)) => {
                    self.passes = passes;
                    if self.passes.begins() {
                        self.passes.periods.begin();
                    }
                    self.shared.housekeeping.set_kept(&self.passes.kept);
                    return Ok(Step::Done(expired));
                }
                Err(failed) if failed.is_contended() && tries < TRIES_MAX => pause(tries).await,
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
            let stepped = periods_in(&mut session, &mut periods, expiry).await;
            let stepped = self.ended(&mut session, stepped).await;
            self.keep(session);
            match stepped {
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
                Err(failed) if failed.is_contended() && tries < TRIES_MAX => pause(tries).await,
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

    /// After the partitions of a period were removed, by this engine or another, or not.
    pub(crate) fn removed(&mut self, work: &Work, removed: Result<bool, StoreError>) -> Expired {
        self.passes.periods.leave();
        let messages = match removed {
            Ok(true) => work.messages,
            Ok(false) => 0,
            Err(error) => {
                self.passes.periods.give_up();
                tracing::info!(%error, "a period cannot be removed now: tried again later");
                0
            }
        };
        Expired { messages, goes_on: true }
    }

    /// One step of a change.
    pub(crate) async fn move_retention(&mut self, step: &MoveRetention) -> Result<Moved, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.move_once(step).await {
                Ok(moving::Step::Lacks(slots)) => {
                    if tries >= TRIES_MAX || !self.make_for(&slots).await {
                        let state = self.state_of(step).await?.unwrap_or_default();
                        return Ok(Moved { moved: 0, removed: 0, state });
                    }
                }
                Ok(moving::Step::Idle(state) | moving::Step::Waits(state)) => {
                    return Ok(Moved { moved: 0, removed: 0, state });
                }
                Ok(moving::Step::Done { state, change, moved, removed, seen_to }) => {
                    let state = match seen_to {
                        Some(seen_to) => {
                            self.passes.moved_to.insert(step.interface, (change, seen_to));
                            state
                        }
                        None => self.finish_change(step, change).await?,
                    };
                    return Ok(Moved { moved, removed, state });
                }
                Err(failed) if failed.is_contended() && tries < TRIES_MAX => pause(tries).await,
                Err(failed) => return Err(failed.told()),
            }
        }
    }

    async fn move_once(&mut self, step: &MoveRetention) -> Result<moving::Step, Failed> {
        let mut session = self.begin(MOVE, Turn::Beside(Durability::Relaxed)).await?;
        let moved_to = self.passes.moved_to.get(&step.interface).copied();
        let moved = async {
            let moved = moving::move_some(&mut session, step, moved_to).await?;
            session.commit(MOVE).await?;
            Ok(moved)
        };
        let moved = moved.await;
        let moved = self.ended(&mut session, moved).await;
        self.keep(session);
        moved
    }

    /// All messages of a change were looked at.
    async fn finish_change(
        &mut self,
        step: &MoveRetention,
        change: RetentionChange,
    ) -> Result<RetentionState, StoreError> {
        self.passes.moved_to.remove(&step.interface);
        alone!(self, MOVE, |session| retention::finish(session, step, change).await)
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

    /// The transaction of what failed is rolled back.
    async fn ended<T>(&self, session: &mut Session, done: Result<T, Failed>) -> Result<T, Failed> {
        if done.is_err() {
            session.roll_back().await;
        }
        done
    }
}

async fn expire_in(
    session: &mut Session,
    passes: &Passes,
    expiry: &Expiry,
) -> Result<(Expired, Passes), Failed> {
    retention::save_age(session, expiry.aged_to).await?;
    expiry::forget_keys(session, expiry.now, expiry.limit).await?;
    let stepped = match keeping::take_turn(session).await? {
        true => passes.step(session, expiry).await?,
        false => (Expired { messages: 0, goes_on: true }, passes.clone()),
    };
    session.commit(REMOVE).await?;
    Ok(stepped)
}

async fn periods_in(session: &mut Session, periods: &mut Periods, expiry: &Expiry) -> Result<Next, Failed> {
    retention::save_age(session, expiry.aged_to).await?;
    let next = match keeping::take_turn(session).await? {
        true => periods.step(session, expiry).await?,
        false => Next::Stepped(0),
    };
    session.commit(REMOVE).await?;
    Ok(next)
}
