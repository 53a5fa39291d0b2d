//! What the dispatcher shows of itself.

use portway_model::Lane;

use super::Dispatcher;
use super::destination::Destination;
use super::lane::LaneState;
use super::rate::Admission;
use crate::status::{BlockedLane, DestinationStatus, MemoryStatus, RateStatus};
use crate::time::Moment;

impl Dispatcher {
    pub fn destinations_status(&self, at: &Moment) -> Vec<DestinationStatus> {
        let there = self.destinations.iter().filter(|destination| !destination.is_gone());
        there.map(|destination| destination.status(at)).collect()
    }

    pub fn memory_status(&self) -> MemoryStatus {
        MemoryStatus {
            waiting: self.desk.budget.waiting(),
            carried_bytes: self.desk.budget.carried_bytes(),
            loaded_bytes: self.desk.budget.loaded_bytes(),
            runs: self.runs.len(),
            lanes: self.destinations.iter().map(Destination::lanes_count).sum(),
        }
    }
}

impl Destination {
    fn status(&self, at: &Moment) -> DestinationStatus {
        let blocked = self.lanes.iter().filter_map(|(no, lane)| blocked(*no, lane, at));
        let mut status = DestinationStatus {
            id: self.settings.id,
            state: self.standing.state(at),
            runs: self.runs,
            lanes_blocked: 0,
            blocked: Vec::new(),
            counts: self.counts,
            rate: self.rate.as_ref().map(|rate| RateStatus {
                limit: rate.limit,
                waits: self.is_active()
                    && !self.ready.is_empty()
                    && matches!(rate.admits(at.monotonic), Admission::Wait(_)),
            }),
        };
        for lane in blocked {
            status.lanes_blocked += 1;
            if status.blocked.len() < DestinationStatus::BLOCKED_MAX {
                status.blocked.push(lane);
            }
        }
        status
    }
}

fn blocked(no: Lane, lane: &LaneState, at: &Moment) -> Option<BlockedLane> {
    if let Some(blocked) = &lane.blocked {
        return Some(BlockedLane {
            lane: no,
            message: blocked.message,
            attempts: blocked.attempts,
            reason: blocked.reason.clone(),
            due_at: Some(at.wall_of(blocked.until)),
        });
    }
    let held = lane.held?;
    Some(BlockedLane {
        lane: no,
        message: held,
        attempts: portway_model::AttemptNo(0),
        reason: "quarantined: waits for an operator".into(),
        due_at: None,
    })
}
