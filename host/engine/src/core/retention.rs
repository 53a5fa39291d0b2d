//! Retention in the core: confirmations of operators, and what the store says of steps.

use portway_model::RetentionState;
use portway_store::{ConfirmRetention, ErrorKind, Expired, Moved, StoreError};

use super::{Core, Phase};
use crate::event::{ActError, Effect, EngineError, Ticket};
use crate::fact::Fact;
use crate::status::RetentionStatus;

impl Core {
    pub(super) fn confirm_retention(&mut self, ticket: Ticket, confirm: ConfirmRetention) {
        match self.phase {
            Phase::Running if !self.ownership.is_owner() => {
                // The owner moves the messages, and would not know.
                self.out.push(Effect::RetentionConfirmed { ticket, answer: Err(ActError::NotOwner) });
            }
            Phase::Running => self.retentions.confirm(ticket, confirm),
            Phase::Stopping { .. } | Phase::Closing | Phase::Ended => {
                self.out.push(Effect::RetentionConfirmed { ticket, answer: Err(ActError::Stopped) });
            }
        }
    }

    /// Who waits for a confirmation is told why it is not recorded.
    pub(super) fn refuse_confirmations(&mut self, why: &ActError) {
        for ticket in self.retentions.refuse_confirmations() {
            self.out.push(Effect::RetentionConfirmed { ticket, answer: Err(why.clone()) });
        }
    }

    pub(super) fn retention_confirmed(&mut self, answer: Result<Option<RetentionState>, StoreError>) {
        self.committer.release();
        let Some((ticket, interface)) = self.retentions.confirmed() else { return };
        let answer = match answer {
            Err(error) if error.kind() == ErrorKind::Fatal => {
                return self.end(Err(EngineError::Store(error)));
            }
            Err(error) => {
                // It may be recorded all the same.
                self.retentions.doubt(interface);
                Err(ActError::Unavailable(error.to_string()))
            }
            Ok(state) => {
                if let Some(state) = state {
                    self.retentions.set(interface, state);
                }
                Ok(state)
            }
        };
        self.out.push(Effect::RetentionConfirmed { ticket, answer });
    }

    pub(super) fn expired(&mut self, answer: Result<Expired, StoreError>) {
        match answer {
            Err(error) if error.kind() == ErrorKind::Fatal => self.end(Err(EngineError::Store(error))),
            answer => self.housekeeping.expired(answer.ok(), &self.at),
        }
    }

    pub(super) fn moved(&mut self, answer: Result<Moved, StoreError>) {
        match answer {
            Err(error) if error.kind() == ErrorKind::Fatal => self.end(Err(EngineError::Store(error))),
            answer => self.housekeeping.moved(answer.as_ref().ok(), &mut self.retentions, &self.at),
        }
    }

    pub(super) fn retention_status(&self) -> RetentionStatus {
        let (changing, unconfirmed) = self.retentions.counts();
        RetentionStatus {
            age_now: self.housekeeping.age.now(&self.at),
            doubt: self.housekeeping.age.doubt(),
            changing,
            unconfirmed,
            moved: self.retentions.moved,
        }
    }

    /// The clock that messages age by, and whether it was last said to be doubted.
    pub(super) fn follow_age(&mut self) {
        self.housekeeping.age.follow(&self.at);
        let doubt = self.housekeeping.age.doubt();
        if doubt.is_some() != self.told_doubt {
            self.told_doubt = doubt.is_some();
            self.out
                .push(Effect::Note(doubt.map_or(Fact::ClockBelieved, |doubt| Fact::ClockDoubted { doubt })));
        }
    }
}
