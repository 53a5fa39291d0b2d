//! Whether this engine runs the deliveries of its groups: it does while it owns them.
//!
//! An engine that owns nothing stores messages all the same, and asks again and again. When it lost
//! what it owned, what was in hand ends and is stored; nothing new begins.

use std::collections::BTreeSet;
use std::time::Duration;

use portway_model::{Epoch, GroupId};
use portway_store::{
    Claimed, DeliveryResult, DestinationAction, News, Owner, ResultOutcome, StoreError, Tenure,
};

use super::{Core, Phase};
use crate::event::Effect;
use crate::fact::Fact;
use crate::status::OwnershipStatus;

/// Between two claims of an engine that owns nothing.
const CLAIM_EVERY: Duration = Duration::from_secs(1);

/// See the file.
#[derive(Debug, Default)]
pub(super) struct Ownership {
    /// None: it owns nothing.
    epoch: Option<Epoch>,
    /// A claim is in hand.
    is_asking: bool,
    /// It was lost, perhaps what that claim brings.
    lost_meanwhile: bool,
    /// A claim that was not believed: what it said of the owner before is said once.
    doubted: Option<Tenure>,
    /// A tenure of this process began after an unclean end: what was suspect then is perhaps not tried yet.
    after_unclean: bool,
    /// What was stored of destinations since that claim, which may not know it.
    acted: Vec<DestinationAction>,
    /// The next claim is not before.
    ask_at: Duration,
    /// Who owned groups when they were claimed last.
    others: Vec<Owner>,
    /// Where others stored something while a batch was being written: theirs may have higher numbers than
    /// the batch, and be read before it is known what was stored.
    heard: Heard,
}

/// Groups of which others stored something.
#[derive(Debug, Default)]
struct Heard {
    groups: BTreeSet<GroupId>,
    /// Perhaps of any.
    any: bool,
}

impl Ownership {
    pub fn new(tenure: Option<&Tenure>) -> Self {
        Ownership {
            epoch: tenure.map(|tenure| tenure.epoch),
            after_unclean: tenure.is_some_and(|tenure| tenure.unclean),
            ..Ownership::default()
        }
    }

    pub fn is_owner(&self) -> bool {
        self.epoch.is_some()
    }

    /// When there is something to ask.
    pub fn wake_at(&self) -> Option<Duration> {
        (!self.is_owner() && !self.is_asking).then_some(self.ask_at)
    }

    pub fn status(&self) -> OwnershipStatus {
        match self.epoch {
            Some(epoch) => OwnershipStatus::Owner { epoch },
            None => OwnershipStatus::Standby { owners: self.others.clone() },
        }
    }
}

impl Core {
    /// Asks for its groups, if it does not have them.
    pub(super) fn ask_for_groups(&mut self) {
        let is_due = self.ownership.wake_at().is_some_and(|at| at <= self.at.monotonic);
        if is_due && self.phase == Phase::Running {
            self.ownership.is_asking = true;
            let groups: BTreeSet<GroupId> =
                self.layout.interfaces().map(|interface| interface.group).collect();
            self.out.push(Effect::Claim(groups.into_iter().collect()));
        }
    }

    pub(super) fn claimed(&mut self, answer: Result<Claimed, StoreError>) {
        self.ownership.is_asking = false;
        let acted = std::mem::take(&mut self.ownership.acted);
        if std::mem::take(&mut self.ownership.lost_meanwhile) {
            // Whether the answer is older than the loss nobody knows.
            self.ownership.ask_at = self.at.monotonic;
            if let Ok(Claimed::Owned(tenure)) = answer {
                self.ownership.doubted = Some(self.with_doubted(tenure));
            }
            return;
        }
        self.ownership.ask_at = self.at.monotonic + CLAIM_EVERY;
        match answer {
            Ok(Claimed::Owned(tenure)) => {
                self.own(tenure);
                for action in acted {
                    self.with_dispatcher(|dispatcher, ctx| dispatcher.acted_on_destination(action, ctx));
                }
            }
            Ok(Claimed::Refused(owners)) => self.ownership.others = owners,
            // What is wrong with the store is told where it is written to.
            Err(_) => {}
        }
    }

    /// An operator's word on a destination was stored.
    pub(super) fn remember_while_asking(&mut self, action: &DestinationAction) {
        if self.ownership.is_asking {
            self.ownership.acted.push(action.clone());
        }
    }

    /// Something happened in the store that this engine did not do.
    pub(super) fn hear(&mut self, news: &News) {
        match news {
            News::Lost => self.lose(),
            News::Elsewhere(groups) => {
                if self.committer.is_writing() {
                    self.ownership.heard.groups.extend(groups);
                }
                self.read_again(|group| groups.contains(&group));
            }
            News::Missed => {
                self.ownership.heard.any |= self.committer.is_writing();
                self.read_again(|_| true);
            }
        }
    }

    /// A batch is stored. What others stored comes before what it did: what it tells of that, and what was
    /// heard while its messages had their numbers and could not be read.
    pub(super) fn hear_with_write(&mut self, elsewhere: &[GroupId]) {
        let heard = std::mem::take(&mut self.ownership.heard);
        if heard.any || !heard.groups.is_empty() || !elsewhere.is_empty() {
            self.read_again(|group| heard.any || heard.groups.contains(&group) || elsewhere.contains(&group));
        }
    }

    /// Others stored messages: what waits for these groups is read again before anything is sent.
    pub(super) fn read_again(&mut self, is_meant: impl Fn(GroupId) -> bool) {
        if !self.ownership.is_owner() {
            return;
        }
        let places = self.layout.places_of(is_meant);
        self.with_dispatcher(|dispatcher, ctx| dispatcher.read_again(&places, ctx));
    }

    /// An owner that did not stop in order is told of in the first claim alone.
    fn with_doubted(&mut self, mut tenure: Tenure) -> Tenure {
        if let Some(doubted) = self.ownership.doubted.take() {
            tenure.unclean |= doubted.unclean;
            tenure.overlaps |= doubted.overlaps;
        }
        tenure
    }

    fn own(&mut self, tenure: Tenure) {
        let mut tenure = self.with_doubted(tenure);
        self.ownership.after_unclean |= tenure.unclean;
        tenure.unclean = self.ownership.after_unclean;
        self.layout.set_pauses(std::mem::take(&mut tenure.pauses));
        self.ownership.others.clear();
        self.out.push(Effect::Note(Fact::Owns { epoch: tenure.epoch, unclean: tenure.unclean }));
        self.ownership.epoch = Some(tenure.epoch);
        // What is being written may have lower numbers than what others stored before this.
        self.ownership.heard.any |= self.committer.is_writing();
        // Another engine may have begun a change and left it to this one.
        self.retentions.doubt_all();
        self.with_dispatcher(|dispatcher, ctx| dispatcher.own(tenure, ctx));
    }

    /// A result of this tenure that does not count for it was not the first to know.
    pub(super) fn tells_of_loss(&self, result: &DeliveryResult, outcome: &ResultOutcome) -> bool {
        *outcome == ResultOutcome::Disowned && self.ownership.epoch == Some(result.epoch)
    }

    pub(super) fn lose(&mut self) {
        self.ownership.lost_meanwhile |= self.ownership.is_asking;
        if self.ownership.epoch.take().is_some() {
            self.ownership.ask_at = self.at.monotonic;
            self.dispatcher.lose();
            // What is not sent is not recorded as if it were about to be.
            let runs = self.completer.drop_suspects();
            self.with_dispatcher(|dispatcher, ctx| dispatcher.leave_unrecorded(runs, ctx));
            self.out.push(Effect::Note(Fact::OwnsNoLonger));
        }
    }
}
