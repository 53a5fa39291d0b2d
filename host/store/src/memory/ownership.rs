//! Who owns which group, and where others stored messages for an owner.

use std::collections::{BTreeMap, BTreeSet};

use portway_model::{Epoch, GroupId, Timestamp};

use super::EngineNo;
use crate::{Claimed, Owner, Tenure};

/// What of it is stored. Which engines are alive is known by the store in memory alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Ownership {
    owners: BTreeMap<GroupId, Owning>,
    last_epoch: Epoch,
    /// Groups whose owner does not know yet that others stored messages of them.
    elsewhere: BTreeSet<GroupId>,
}

#[derive(Clone, Copy, Debug)]
struct Owning {
    engine: EngineNo,
    epoch: Epoch,
    since: Timestamp,
    /// As its tenure began.
    unclean: bool,
    /// When an owner was displaced last that may have had something in hand.
    overlapped_at: Option<Timestamp>,
}

/// A claim, with what decides about it.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub engine: EngineNo,
    pub groups: Vec<GroupId>,
    pub now: Timestamp,
    /// Engines that hold their locks, and in which epoch.
    pub alive: BTreeMap<EngineNo, Epoch>,
    /// The epoch that the engine lost last, and lived.
    pub survived: Option<Epoch>,
}

impl Ownership {
    /// Whether an epoch is that of a group's owner; of any, where the message is gone.
    pub fn is_of(&self, group: Option<GroupId>, epoch: Epoch) -> bool {
        match group {
            Some(group) => self.owners.get(&group).is_some_and(|owning| owning.epoch == epoch),
            None => self.owners.values().any(|owning| owning.epoch == epoch),
        }
    }

    pub fn claim(&mut self, claim: &Claim) -> Claimed {
        let owned = |group: &GroupId| Some((*group, *self.owners.get(group)?));
        let before: Vec<(GroupId, Owning)> = claim.groups.iter().filter_map(owned).collect();
        let is_others =
            |owning: &Owning| owning.engine != claim.engine && claim.alive.contains_key(&owning.engine);
        let others: Vec<Owner> = before
            .iter()
            .filter(|(_, owning)| is_others(owning))
            .map(|(group, owning)| Owner { group: *group, engine: name(owning.engine), since: owning.since })
            .collect();
        if !others.is_empty() {
            return Claimed::Refused(others);
        }
        let held = claim.alive.get(&claim.engine).copied();
        let epoch = held.unwrap_or(Epoch(self.last_epoch.0 + 1));
        self.last_epoch = self.last_epoch.max(epoch);
        let left: Vec<&Owning> =
            before.iter().map(|(_, owning)| owning).filter(|owning| owning.epoch != epoch).collect();
        let may_have_ended =
            |owning: &&Owning| owning.engine != claim.engine || claim.survived != Some(owning.epoch);
        // What came before an owner that ended no better is not over with it.
        let unclean = left.iter().any(|owning| may_have_ended(owning) || owning.unclean);
        let overlapped_at = match left.iter().any(|owning| owning.engine != claim.engine) {
            true => Some(claim.now),
            false => left.iter().filter_map(|owning| owning.overlapped_at).max(),
        };
        let is_recent = |at: &Timestamp| claim.now.since(*at).max(at.since(claim.now)) < Tenure::OVERLAP_MAX;
        let overlaps = overlapped_at.filter(is_recent).is_some();
        let owning = Owning { engine: claim.engine, epoch, since: claim.now, unclean, overlapped_at };
        for group in &claim.groups {
            self.elsewhere.remove(group);
            let of_tenure = self.owners.get(group).copied().filter(|owning| owning.epoch == epoch);
            self.owners.insert(*group, of_tenure.unwrap_or(owning));
        }
        Claimed::Owned(Tenure { epoch, unclean, overlaps, pauses: Vec::new() })
    }

    /// An engine gives back what it owns.
    pub fn release(&mut self, engine: EngineNo) {
        self.owners.retain(|_, owning| owning.engine != engine);
    }

    /// An engine stored messages of these groups.
    pub fn stored(&mut self, engine: EngineNo, groups: impl Iterator<Item = GroupId>) {
        for group in groups {
            if self.owners.get(&group).is_some_and(|owning| owning.engine != engine) {
                self.elsewhere.insert(group);
            }
        }
    }

    /// Tells an engine where others stored messages for it, once.
    pub fn take_elsewhere(&mut self, engine: EngineNo) -> Vec<GroupId> {
        let is_its = |group: &GroupId| self.owners.get(group).is_some_and(|owning| owning.engine == engine);
        let its: Vec<GroupId> = self.elsewhere.iter().copied().filter(is_its).collect();
        self.elsewhere.retain(|group| !its.contains(group));
        its
    }

    pub fn groups_of(&self, engine: EngineNo) -> Vec<GroupId> {
        let its = self.owners.iter().filter(|(_, owning)| owning.engine == engine);
        its.map(|(group, _)| *group).collect()
    }
}

/// As people see it.
pub(super) fn name(engine: EngineNo) -> String {
    format!("engine-{engine}")
}
