//! The engine's own picture of itself, in the words of the API.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use portway_admin::views::{self, Time};
use portway_engine::status::{
    BlockedLane, CommitStatus, Counts, DestinationState, DestinationStatus, IntakeStatus, MemoryStatus,
    RateStatus, RetentionStatus,
};
use portway_engine::{AfterDrain, DrainStatus};
use portway_model::{DestinationId, Failure, code};
use portway_sources::SourceStatus;
use portway_store::{DestinationActionView, Pause, QueueView};

pub fn reason(failure: &Failure) -> views::Reason {
    views::Reason { code: failure.code.clone(), text: failure.text.clone() }
}

pub fn counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> Vec<views::Count> {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    counts.map(|(reason, count)| views::Count { reason: reason.to_owned(), count }).collect()
}

/// Ends of connections that an operator should hear of; the others are everyday.
const CLOSED_EARLY: [&str; 6] = [
    code::TOO_LARGE,
    code::FRAME_TIMEOUT,
    code::WRITE_TIMEOUT,
    code::UNAVAILABLE,
    code::SLOWED,
    code::STOP_TIMEOUT,
];

/// What a source did not take, by why: connections, frames, messages. A connection that was
/// ended for a reason its plugin gave too is counted there.
pub fn refusals(source: &SourceStatus) -> Vec<views::Count> {
    let taken = source.connections_refused.iter().chain(&source.refused_by).chain(&source.not_stored_by);
    let mut all: Vec<(&str, u64)> = taken.map(|(code, count)| (code.as_str(), *count)).collect();
    for (code, count) in &source.connections_closed {
        let is_known = all.iter().any(|(known, _)| known == code);
        if CLOSED_EARLY.contains(&code.as_str()) && !is_known {
            all.push((code, *count));
        }
    }
    // Not every fault ends a connection: it may be over already when its last answer is made.
    all.push((code::FAULT, source.faults));
    counts(all)
}

/// What became of what a source found.
pub fn source_counts(source: &SourceStatus) -> views::SourceCounts {
    let all = |by: &BTreeMap<String, u64>| counts(by.iter().map(|(code, count)| (code.as_str(), *count)));
    views::SourceCounts {
        stored: source.stored,
        duplicates: source.duplicates,
        conflicts: source.conflicts,
        not_stored: all(&source.not_stored_by),
        closed: all(&source.connections_closed),
        requests: all(&source.requests_by),
        addresses_slowed: source.addresses_slowed,
        bytes_in: source.bytes_in,
        bytes_out: source.bytes_out,
    }
}

pub fn intake(intake: &IntakeStatus) -> views::Intake {
    views::Intake {
        closed: intake.closed.as_ref().map(reason),
        waiting: intake.waiting,
        stored: intake.stored,
        duplicates: intake.duplicates,
        refused: counts(intake.refused.iter().copied()),
    }
}

pub fn drain(drain: &DrainStatus) -> views::Drain {
    views::Drain {
        since: Time(drain.since),
        author: drain.author.clone(),
        stops: drain.then == AfterDrain::Stop,
        done: drain.is_quiet,
    }
}

pub fn commits(commits: &CommitStatus) -> views::Commits {
    let elapsed = commits.elapsed.as_secs_f64();
    views::Commits {
        commits: commits.commits,
        strict: commits.strict,
        messages: commits.messages,
        results: commits.results,
        failures: commits.failures,
        mean_ms: millis(commits.mean()),
        p50_ms: quantile_ms(&commits.by_duration, 0.5),
        p99_ms: quantile_ms(&commits.by_duration, 0.99),
        busy_ratio: if elapsed > 0.0 { commits.busy.as_secs_f64() / elapsed } else { 0.0 },
        busy_ms: millis(commits.busy),
    }
}

pub fn retention(status: &RetentionStatus) -> views::RetentionCounts {
    views::RetentionCounts {
        changing: status.changing as u64,
        unconfirmed: status.unconfirmed as u64,
        clock_off_s: status.doubt.map_or(0, |doubt| doubt.off.as_secs()),
    }
}

pub fn memory(memory: &MemoryStatus) -> views::Memory {
    views::Memory {
        resident_bytes: resident_bytes(),
        waiting: memory.waiting as u64,
        body_bytes: (memory.carried_bytes + memory.loaded_bytes) as u64,
        runs: memory.runs as u64,
    }
}

/// A destination, from what the engine knows and what waits in the store.
pub fn destination(
    name: &str,
    to: String,
    order: &str,
    status: Option<&DestinationStatus>,
    queues: &HashMap<DestinationId, QueueView>,
    id: DestinationId,
) -> views::Destination {
    let queue = queues.get(&id);
    let Standing { state, why, since, until, pause } = standing(status.map(|status| &status.state));
    let blocked = status.map(|status| status.blocked.iter().map(blocked_lane).collect());
    views::Destination {
        name: name.to_owned(),
        to,
        order: order.to_owned(),
        state,
        why,
        since,
        until,
        pause,
        waiting: queue.map_or(0, |queue| queue.waiting),
        oldest: queue.and_then(|queue| queue.oldest).map(Time),
        quarantined: queue.map_or(0, |queue| queue.quarantined),
        runs: status.map_or(0, |status| u64::from(status.runs)),
        lanes_blocked: status.map_or(0, |status| u64::from(status.lanes_blocked)),
        blocked: blocked.unwrap_or_default(),
        counts: status.map(|status| delivery_counts(&status.counts)).unwrap_or_default(),
        rate: status.and_then(|status| status.rate).map(rate),
        latency: views::DeliveryLatency::default(),
    }
}

/// Whether a destination works, in the words of the API.
struct Standing {
    state: views::DestinationState,
    why: Option<views::Reason>,
    since: Option<Time>,
    until: Option<Time>,
    pause: Option<views::Pause>,
}

fn standing(of_engine: Option<&DestinationState>) -> Standing {
    let state = |state| Standing { state, why: None, since: None, until: None, pause: None };
    match of_engine {
        None | Some(DestinationState::Running) => state(views::DestinationState::Running),
        Some(DestinationState::Waiting { why, since, until }) => Standing {
            why: Some(reason(why)),
            since: Some(Time(*since)),
            until: Some(Time(*until)),
            ..state(views::DestinationState::Waiting)
        },
        Some(DestinationState::Stopped { why, since }) => Standing {
            why: Some(reason(why)),
            since: Some(Time(*since)),
            ..state(views::DestinationState::Stopped)
        },
        Some(DestinationState::Paused(Pause { since, author, reason })) => Standing {
            why: Some(views::Reason { code: code::PAUSED.to_owned(), text: format!("{author}: {reason}") }),
            since: Some(Time(*since)),
            pause: Some(views::Pause { since: Time(*since), author: author.clone(), reason: reason.clone() }),
            ..state(views::DestinationState::Paused)
        },
    }
}

pub fn destination_action(view: DestinationActionView) -> views::DestinationActionRecord {
    views::DestinationActionRecord {
        at: Time(view.at),
        action: view.action.to_owned(),
        author: view.author,
        reason: view.reason,
    }
}

fn rate(status: RateStatus) -> views::Rate {
    views::Rate {
        limit: status.limit.rate.to_string(),
        burst: status.limit.burst.get(),
        over: status.limit.over.as_str().to_owned(),
        waits: status.waits,
    }
}

fn blocked_lane(lane: &BlockedLane) -> views::BlockedLane {
    views::BlockedLane {
        lane: lane.lane.number(),
        message: lane.message.0,
        why: lane.reason.clone(),
        attempts: lane.attempts.0,
        due_at: lane.due_at.map(Time),
    }
}

fn delivery_counts(counts: &Counts) -> views::DeliveryCounts {
    views::DeliveryCounts {
        sent: counts.sent,
        filtered: counts.filtered,
        quarantined: counts.quarantined,
        retried: counts.retried,
        dropped: counts.dropped,
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// The upper edge, in milliseconds, of the bucket a quantile falls into. Bucket n ends at
/// 2^n × 64 µs.
pub fn quantile_ms(buckets: &[u64], quantile: f64) -> f64 {
    let total: u64 = buckets.iter().sum();
    let wanted = (total as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    for (n, count) in buckets.iter().enumerate() {
        seen += count;
        if seen >= wanted && *count > 0 {
            return f64::from(64_u32) * 2_f64.powi(i32::try_from(n).unwrap_or(i32::MAX)) / 1_000.0;
        }
    }
    0.0
}

/// Of this process; none where the system does not say.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_edge_of_its_bucket() {
        assert!((quantile_ms(&[0, 98, 1, 1], 0.5) - 0.128).abs() < 1e-9);
        assert!((quantile_ms(&[0, 98, 1, 1], 0.99) - 0.256).abs() < 1e-9);
        assert!((quantile_ms(&[0, 0], 0.99)).abs() < 1e-9);
    }

    #[test]
    fn this_process_needs_memory() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
