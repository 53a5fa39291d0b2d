//! Removing a period as a whole once all that is in it is old.
//!
//! First it is sealed, by somebody who is alone: from then on nothing is stored in it or moved into it, and
//! what is done stays done. Then what is needed in it moves to where such things are held, and what goes
//! although it is quarantined goes by itself. When nothing in it is needed, its removal is decided, again
//! alone, and carried out whatever happens: what lies beside it, then its partitions.
//!
//! Here is the order of these steps; what each does is in `period`, the seal itself in `sealed`.

use std::collections::BTreeSet;

use portway_store::Expiry;

use crate::error::Failed;
use crate::partition::{Slot, There};
use crate::period::{self, Checked, Cleared};
use crate::query::Session;
use crate::retention::{self, States};
use crate::sealed::{self, Sealed};

/// What a pass did with periods.
#[derive(Clone, Default)]
pub(crate) struct Periods {
    work: Option<Work>,
    /// They were looked at in this pass: tier and first day.
    tried: BTreeSet<(i16, i32)>,
    is_over: bool,
}

/// How far the removal of a period has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) sealed: Sealed,
    stage: Stage,
    /// Removed with it.
    pub(crate) messages: u64,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Whether all is old, behind this message.
    Check(i64),
    /// What is needed goes elsewhere.
    Needed,
    /// What lies beside it goes, behind this message.
    Beside(i64),
    Remove,
}

/// What is to be done next.
pub(crate) enum Next {
    /// Nothing with periods in this pass.
    Nothing,
    /// Begin with this one, alone.
    Seal(Sealed),
    /// Decide, alone, that this one goes.
    Decide(Work),
    /// Its partitions go.
    Remove(Work),
    /// A step was made: messages removed.
    Stepped(u64),
    /// Partitions are to be made first; nothing was done.
    Lacks(BTreeSet<Slot>),
}

impl Work {
    fn of(sealed: Sealed) -> Work {
        let stage = if sealed.going { Stage::Beside(0) } else { Stage::Check(0) };
        Work { sealed, stage, messages: 0 }
    }

    /// Goes on from what others did with the period meanwhile.
    fn take_up(&mut self, now: Sealed) {
        let is_decided = now.going && !self.sealed.going;
        if is_decided || (now.by != self.sealed.by && !now.going) {
            *self = Work::of(now);
        }
    }
}

impl Periods {
    /// A new pass begins.
    pub(crate) fn begin(&mut self) {
        self.tried.clear();
        self.is_over = false;
    }

    /// Goes on with a period that was sealed or decided.
    pub(crate) fn go_on(&mut self, sealed: Sealed) {
        self.work = Some(Work::of(sealed));
    }

    /// Nothing more is done with the one that is worked on, in this pass.
    pub(crate) fn leave(&mut self) {
        if let Some(work) = self.work.take() {
            self.tried.insert((work.sealed.tier, work.sealed.from));
        }
    }

    /// One step, inside the transaction that is open.
    pub(crate) async fn step(
        &mut self,
        session: &mut Session,
        expiry: &Expiry,
        there: &mut There,
    ) -> Result<Next, Failed> {
        if self.is_over {
            return Ok(Next::Nothing);
        }
        let states = retention::states(session).await?;
        let Some(mut work) = self.work else { return self.find(session, expiry, &states).await };
        let Some(now) = sealed::hold(session, work.sealed).await? else {
            // Others removed it, or opened it again.
            self.leave();
            return Ok(Next::Stepped(0));
        };
        work.take_up(now);
        self.work = Some(work);
        match work.stage {
            Stage::Check(after) => self.check(session, work, after, expiry, &states).await,
            Stage::Needed => self.clear(session, work, (expiry, &states), there).await,
            Stage::Beside(after) => {
                match period::remove_beside(session, work.sealed, after).await? {
                    Some((last, count)) => {
                        work.messages += count;
                        work.stage = Stage::Beside(last);
                    }
                    None => work.stage = Stage::Remove,
                }
                self.work = Some(work);
                Ok(Next::Stepped(0))
            }
            Stage::Remove => Ok(Next::Remove(work)),
        }
    }

    async fn check(
        &mut self,
        session: &mut Session,
        mut work: Work,
        after: i64,
        expiry: &Expiry,
        states: &States,
    ) -> Result<Next, Failed> {
        match period::check(session, work.sealed, after, expiry, states).await? {
            Checked::Young => {
                sealed::unseal(session, work.sealed).await?;
                self.leave();
                return Ok(Next::Stepped(0));
            }
            Checked::Old(last) => work.stage = Stage::Check(last),
            Checked::End => work.stage = Stage::Needed,
        }
        self.work = Some(work);
        Ok(Next::Stepped(0))
    }

    async fn clear(
        &mut self,
        session: &mut Session,
        work: Work,
        (expiry, states): (&Expiry, &States),
        there: &mut There,
    ) -> Result<Next, Failed> {
        match period::clear(session, work.sealed, (expiry, states), there).await? {
            Cleared::Nothing => Ok(Next::Decide(work)),
            Cleared::Lacks(slots) => Ok(Next::Lacks(slots)),
            Cleared::Some(removed) => Ok(Next::Stepped(removed)),
            Cleared::Stuck => {
                self.leave();
                Ok(Next::Stepped(0))
            }
        }
    }

    /// What was begun is ended first.
    async fn find(
        &mut self,
        session: &mut Session,
        expiry: &Expiry,
        states: &States,
    ) -> Result<Next, Failed> {
        let is_new = |sealed: &&Sealed| !self.tried.contains(&(sealed.tier, sealed.from));
        let begun = sealed::list(session).await?;
        if let Some(sealed) = begun.iter().find(is_new) {
            self.go_on(*sealed);
            return Ok(Next::Stepped(0));
        }
        if states.iter().all(|(_, state)| state.change.is_none()) {
            for sealed in period::candidates(session, expiry.now).await? {
                if is_new(&&sealed)
                    && !begun.iter().any(|begun| begun.period() == sealed.period())
                    && period::looks_old(session, sealed, expiry).await?
                {
                    return Ok(Next::Seal(sealed));
                }
            }
        }
        self.is_over = true;
        Ok(Next::Nothing)
    }
}
