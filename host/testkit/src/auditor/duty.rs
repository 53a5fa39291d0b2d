//! What reports say of a delivery, by the auditor's own reading, and what becomes of it by that and in the store.

use std::time::Duration;

use portway_engine::{Run, RunReport, Stop, Verdict as Told};
use portway_model::{AttemptNo, DeliveryState, Guarantee, RetryPolicy};
use portway_store::{DeliveryResult, MessageOutcome, Settled};

use super::books::{Duty, Ledger, Said};

/// Runaways in a row that stop a destination.
const RUNAWAYS_MAX: u32 = 3;

/// What a verdict comes to, by the auditor's own reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Sent,
    Filtered,
    Quarantined,
    Again,
    Runaway,
    Untried,
}

impl Said {
    /// With a limit of attempts, a retry may be the last one.
    fn add(&mut self, reading: Reading, attempts_max: u32) {
        match reading {
            Reading::Sent => self.sent = true,
            Reading::Filtered => self.filtered = true,
            Reading::Quarantined => self.quarantined = true,
            Reading::Again => {
                self.again = true;
                self.quarantined |= attempts_max > 0;
            }
            Reading::Runaway => self.again = true,
            Reading::Untried => {}
        }
    }
}

/// Which verdicts count.
pub(super) fn read(run: &Run, report: &RunReport) -> Vec<Reading> {
    let count = run.messages.len();
    let believed = if report.verdicts.len() > count { &[][..] } else { &report.verdicts[..] };
    // What a lie leaves open.
    let unsaid = match run.guarantee {
        Guarantee::AtLeastOnce => Reading::Untried,
        Guarantee::AtMostOnce => Reading::Quarantined,
    };
    let mut is_lie = report.verdicts.len() != count;
    let mut has_ended = false;
    let mut readings = Vec::with_capacity(count);
    for verdict in believed {
        let reading = match verdict {
            Told::Sent(_) | Told::Route(_) => Reading::Sent,
            Told::Filtered(_) => Reading::Filtered,
            Told::Quarantine(_) => Reading::Quarantined,
            Told::Retry(_) => Reading::Again,
            Told::Untried => Reading::Untried,
            Told::Runaway(_) => Reading::Runaway,
        };
        if has_ended {
            is_lie |= reading != Reading::Untried;
            readings.push(if reading == Reading::Untried { reading } else { unsaid });
            continue;
        }
        readings.push(reading);
        let ends = match reading {
            Reading::Sent | Reading::Filtered => false,
            Reading::Quarantined => run.hold_on_quarantine,
            Reading::Again | Reading::Runaway | Reading::Untried => true,
        };
        has_ended = run.ordered && ends;
    }
    readings.resize(count, unsaid);
    if is_lie && run.guarantee == Guarantee::AtMostOnce {
        // Nothing is sent again on the word of a liar.
        let is_again =
            |reading: &Reading| matches!(reading, Reading::Again | Reading::Untried | Reading::Runaway);
        readings.iter_mut().filter(|reading| is_again(reading)).for_each(|reading| *reading = unsaid);
    }
    readings
}

impl Ledger {
    /// A run is no longer in hand.
    pub(super) fn give_back(&mut self, readings: &[Reading]) {
        self.runs -= 1;
        self.in_hand -= u32::try_from(readings.len()).unwrap_or(0);
        let is_unsent = |reading: &&Reading| matches!(reading, Reading::Untried | Reading::Filtered);
        self.meter.give_back(readings.iter().filter(is_unsent).count());
    }

    /// Whether the destination is stopped by what was said.
    pub(super) fn hear(&mut self, readings: &[Reading], stop: Option<&Stop>) {
        for reading in readings {
            match reading {
                Reading::Runaway => self.runaways += 1,
                Reading::Untried => {}
                Reading::Sent | Reading::Filtered | Reading::Quarantined | Reading::Again => {
                    self.runaways = 0
                }
            }
        }
        let is_wrong = matches!(stop, Some(Stop::Misconfigured(_)));
        self.is_stopped |= self.runaways >= RUNAWAYS_MAX || is_wrong;
    }
}

/// What decides what becomes of a delivery by what is said.
pub(super) struct Hearing {
    pub policy: RetryPolicy,
    pub holds: bool,
    pub monotonic: Duration,
}

impl Duty {
    /// Takes in what was said of a round. Whether there is a result of it to be stored.
    pub(super) fn hear(&mut self, round: u32, reading: Reading, by: &Hearing) -> bool {
        let attempts_max = by.policy.attempts_max;
        if self.is_unclear || self.was_reverted {
            self.said.add(reading, attempts_max);
            let may_end = match reading {
                Reading::Sent | Reading::Filtered | Reading::Quarantined => true,
                Reading::Again => attempts_max > 0,
                Reading::Runaway | Reading::Untried => false,
            };
            self.is_finished |= may_end && self.was_reverted;
            return false;
        }
        let counts = self.round.0 == round && !self.is_over;
        if reading == Reading::Untried || !counts {
            return false;
        }
        if reading == Reading::Runaway {
            self.said.add(reading, 0);
            // It uses up no attempt, and is not tried again at once either.
            self.not_before = by.monotonic + by.policy.wait(AttemptNo(1), None, 1.0);
            return true;
        }
        self.attempts += 1;
        let used_up = attempts_max > 0 && self.attempts >= attempts_max;
        let reading = if reading == Reading::Again && used_up { Reading::Quarantined } else { reading };
        self.said.add(reading, 0);
        if reading == Reading::Again {
            self.not_before = by.monotonic + by.policy.wait(AttemptNo(self.attempts), None, 1.0);
            return true;
        }
        self.is_over = true;
        self.is_finished = true;
        // Not if an operator has dismissed it in the store meanwhile.
        let is_open = self.state == DeliveryState::Pending;
        self.is_holding = reading == Reading::Quarantined && is_open && by.holds && self.lane.is_ordered();
        true
    }

    /// Whether somebody said what was stored of it.
    pub(super) fn was_said(&self, result: &DeliveryResult, routed: &[MessageOutcome]) -> bool {
        let said = self.said;
        match &result.settled {
            Settled::Sent(_) => said.sent && self.arrived > 0,
            Settled::Routed(messages) => said.sent && messages.len() == routed.len(),
            Settled::Filtered(_) => said.filtered,
            Settled::Quarantined(failure) => {
                said.quarantined || (said.filtered && failure.code == "result-refused")
            }
            Settled::Retry { .. } => said.again || result.attempted.is_none(),
        }
    }

    /// As it is stored now.
    pub(super) fn settle(&mut self, settled: &Settled, holds: bool) {
        self.state = match settled {
            Settled::Sent(_) | Settled::Routed(_) => DeliveryState::Sent,
            Settled::Filtered(_) => DeliveryState::Filtered,
            Settled::Quarantined(_) => DeliveryState::Quarantined,
            Settled::Retry { .. } => DeliveryState::Pending,
        };
        self.was_put_off |= self.state == DeliveryState::Pending && !self.lane.is_ordered();
        if self.state == DeliveryState::Quarantined {
            self.is_holding = holds && self.lane.is_ordered();
        }
    }
}
