//! What an interface's source did, counted: what came, what became of it, what was refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portway_model::code;
use serde::Serialize;

/// Codes of one kind that are counted apart; the rest is counted together.
const CODES_MAX: usize = 64;
/// Where the rest is counted.
const OTHER: &str = code::OTHER;

/// Classes of statuses that requests are answered with.
const REQUEST_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The counters of one interface. Cheap to clone; made before the driver, so that an observer
/// of the plugin can count its notices.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    connections: AtomicU64,
    connections_total: AtomicU64,
    messages: AtomicU64,
    control: AtomicU64,
    refused: AtomicU64,
    stored: AtomicU64,
    duplicates: AtomicU64,
    conflicts: AtomicU64,
    answered: AtomicU64,
    unanswered: AtomicU64,
    faults: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    not_stored_by: Codes,
    refused_by: Codes,
    notices_by: Codes,
    closed_by: Codes,
    /// By the first digit of the answer's status.
    requests: [AtomicU64; REQUEST_CLASSES.len()],
}

/// Counts by code, of which a plugin may invent as many as it likes.
#[derive(Debug, Default)]
struct Codes(Mutex<BTreeMap<String, u64>>);

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    PeerClosed,
    /// The read failed.
    Broken,
    /// Nothing came for too long.
    Idle,
    /// A frame took too long.
    FrameTimeout,
    TooLarge,
    /// The plugin's answer said so.
    Answered,
    /// The peer did not take its answer.
    WriteTimeout,
    WriteFailed,
    /// The plugin cannot go on with this peer.
    Refused,
    Fault,
    /// No instance of the plugin was free.
    Unavailable,
    /// Too many connections of a slowed address wait.
    Slowed,
    Stopping,
    /// It was not done when the time to stop was over.
    StopTimeout,
}

/// All counters of an interface's source at one moment; they count from the engine's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    pub connections: u64,
    pub connections_max: u64,
    pub connections_total: u64,
    /// Refused by the listener.
    pub connections_refused: BTreeMap<String, u64>,
    /// Ended, by reason.
    pub connections_closed: BTreeMap<String, u64>,
    /// Addresses that wait because of earlier faults.
    pub addresses_slowed: u64,
    /// Items by kind.
    pub messages: u64,
    pub control: u64,
    pub refused: u64,
    pub refused_by: BTreeMap<String, u64>,
    /// Fates of messages.
    pub stored: u64,
    pub duplicates: u64,
    /// Stored with an earlier message's dedupe key and another body.
    pub conflicts: u64,
    pub not_stored_by: BTreeMap<String, u64>,
    /// Items whose answer was written.
    pub answered: u64,
    /// Items whose answer could not be written.
    pub unanswered: u64,
    pub notices_by: BTreeMap<String, u64>,
    /// Requests of an HTTP source, by the class of their answer's status, such as `2xx`.
    pub requests_by: BTreeMap<String, u64>,
    pub faults: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Codes {
    fn add(&self, code: &str) {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = codes.get_mut(code) {
            *count += 1;
            return;
        }
        let code = if codes.len() < CODES_MAX { code } else { OTHER };
        *codes.entry(code.to_owned()).or_default() += 1;
    }

    fn all(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Counts a connection as open while it lives.
pub(crate) struct Open(Counters);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.inner.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub fn new() -> Counters {
        Counters::default()
    }

    /// Something the plugin wants an operator to see.
    pub fn notice(&self, code: &str) {
        self.inner.notices_by.add(code);
    }

    pub(crate) fn open(&self) -> Open {
        self.inner.connections.fetch_add(1, Ordering::Relaxed);
        self.inner.connections_total.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }

    pub(crate) fn closed(&self, why: Closed) {
        self.inner.closed_by.add(why.code());
    }

    pub(crate) fn message(&self) {
        self.inner.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn control(&self) {
        self.inner.control.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self, code: &str) {
        self.inner.refused.fetch_add(1, Ordering::Relaxed);
        self.inner.refused_by.add(code);
    }

    pub(crate) fn stored(&self) {
        self.inner.stored.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn conflict(&self) {
        self.inner.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn duplicate(&self) {
        self.inner.duplicates.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn not_stored(&self, code: &str) {
        self.inner.not_stored_by.add(code);
    }

    pub(crate) fn answered(&self, items: usize) {
        self.inner.answered.fetch_add(items as u64, Ordering::Relaxed);
    }

    pub(crate) fn unanswered(&self, items: usize) {
        self.inner.unanswered.fetch_add(items as u64, Ordering::Relaxed);
    }

    pub(crate) fn fault(&self) {
        self.inner.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that was answered with a status.
    pub(crate) fn request(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(1);
        if let Some(counter) = self.inner.requests.get(class) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn bytes_in(&self, bytes: usize) {
        self.inner.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes_out(&self, bytes: usize) {
        self.inner.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Without what only the listener and the driver know.
    pub(crate) fn status(&self) -> SourceStatus {
        let inner = &self.inner;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SourceStatus {
            connections: get(&inner.connections),
            connections_total: get(&inner.connections_total),
            connections_closed: inner.closed_by.all(),
            messages: get(&inner.messages),
            control: get(&inner.control),
            refused: get(&inner.refused),
            refused_by: inner.refused_by.all(),
            stored: get(&inner.stored),
            duplicates: get(&inner.duplicates),
            conflicts: get(&inner.conflicts),
            not_stored_by: inner.not_stored_by.all(),
            answered: get(&inner.answered),
            unanswered: get(&inner.unanswered),
            notices_by: inner.notices_by.all(),
            requests_by: REQUEST_CLASSES
                .iter()
                .zip(&inner.requests)
                .filter(|(_, counter)| get(counter) > 0)
                .map(|(class, counter)| ((*class).to_owned(), get(counter)))
                .collect(),
            faults: get(&inner.faults),
            bytes_in: get(&inner.bytes_in),
            bytes_out: get(&inner.bytes_out),
            ..SourceStatus::default()
        }
    }
}

impl Closed {
    pub fn code(self) -> &'static str {
        match self {
            Closed::PeerClosed => code::PEER_CLOSED,
            Closed::Broken => code::BROKEN,
            Closed::Idle => code::IDLE,
            Closed::FrameTimeout => code::FRAME_TIMEOUT,
            Closed::TooLarge => code::TOO_LARGE,
            Closed::Answered => code::ANSWERED,
            Closed::WriteTimeout => code::WRITE_TIMEOUT,
            Closed::WriteFailed => code::WRITE_FAILED,
            Closed::Refused => code::REFUSED,
            Closed::Fault => code::FAULT,
            Closed::Unavailable => code::UNAVAILABLE,
            Closed::Slowed => code::SLOWED,
            Closed::Stopping => code::STOPPING,
            Closed::StopTimeout => code::STOP_TIMEOUT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_cannot_invent_codes_without_end() {
        let counters = Counters::new();
        for number in 0..1_000 {
            counters.notice(&format!("code-{number}"));
        }
        let notices = counters.status().notices_by;
        assert_eq!(notices.len(), CODES_MAX + 1);
        assert_eq!(notices[OTHER], 1_000 - CODES_MAX as u64);
    }
}
