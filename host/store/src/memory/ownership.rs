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
        let tenure = Tenure {
            epoch,
            unclean: left
                .iter()
                .any(|owning| owning.engine != claim.engine || claim.survived != Some(owning.epoch)),
            overlaps: left.iter().any(|owning| owning.engine != claim.engine),
            pauses: Vec::new(),
        };
        for group in &claim.groups {
            self.elsewhere.remove(group);
            let since = self.owners.get(group).filter(|owning| owning.epoch == epoch);
            let since = since.map_or(claim.now, |owning| owning.since);
            self.owners.insert(*group, Owning { engine: claim.engine, epoch, since });
        }
        Claimed::Owned(tenure)
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
