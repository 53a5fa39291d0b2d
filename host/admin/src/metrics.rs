//! Metrics in Prometheus' text format, from the same facts as `status`.
//!
//! Labels are bounded: names of the project, words of the code, and at most so many codes of a
//! plugin. Never ids, addresses or texts. The page of the reference is made of the same table.

use std::fmt::Write;

use portway_model::code;

use crate::views::{Count, DestinationState, Interface, Notice, Status};

/// Codes of a plugin that get a series of their own.
const CODES_MAX: usize = 32;

/// What a metric counts.
#[derive(Clone, Copy)]
enum Type {
    Counter,
    Gauge,
}

impl Type {
    fn as_str(self) -> &'static str {
        match self {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
        }
    }
}

/// Every metric there is: name, type, labels, help.
macro_rules! metrics {
    ($($(#[doc = $help:literal])* $case:ident = $type:ident $name:literal [$($label:literal),*]),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Metric { $($(#[doc = $help])* $case),+ }

        impl Metric {
            const ALL: &[Metric] = &[$(Metric::$case),+];

            fn name(self) -> &'static str {
                match self { $(Metric::$case => concat!("portway_", $name)),+ }
            }

            fn kind(self) -> Type {
                match self { $(Metric::$case => Type::$type),+ }
            }

            fn labels(self) -> &'static [&'static str] {
                match self { $(Metric::$case => &[$($label),*]),+ }
            }

            fn help(self) -> &'static str {
                match self { $(Metric::$case => concat!($($help),*)),+ }
            }
        }
    };
}

metrics! {
    /// 1; its label is the engine's version.
    Build = Gauge "build_info" ["version"],
    /// Seconds since the engine started.
    Uptime = Gauge "uptime_seconds" [],
    /// Whether messages are taken.
    IntakeOpen = Gauge "intake_open" [],
    /// Messages that wait for a commit.
    IntakeWaiting = Gauge "intake_waiting_messages" [],
    /// Messages stored.
    Stored = Counter "messages_stored_total" [],
    /// Messages that repeated an earlier one.
    Duplicates = Counter "messages_duplicate_total" [],
    /// Messages that were not stored, by why.
    IntakeRefused = Counter "messages_not_stored_total" ["reason"],
    /// Commits.
    Commits = Counter "commits_total" [],
    /// Commits that were flushed to disk.
    CommitsStrict = Counter "commits_strict_total" [],
    /// Commits that failed.
    CommitFailures = Counter "commit_failures_total" [],
    /// Seconds with a commit in hand.
    CommitSeconds = Counter "commit_seconds_total" [],
    /// Whether the store can be read; if not, what waits is as it was read last.
    StoreReadable = Gauge "store_readable" [],
    /// Free bytes on the store's disk.
    StoreFree = Gauge "store_free_bytes" [],
    /// Bytes of log that are not yet in the store's main file.
    StoreLog = Gauge "store_log_bytes" [],
    /// Messages removed because they were old enough.
    Pruned = Counter "messages_pruned_total" [],
    /// Interfaces whose messages are getting another retention.
    RetentionChanging = Gauge "retention_changing" [],
    /// Interfaces with a retention that waits for a confirmation.
    RetentionUnconfirmed = Gauge "retention_unconfirmed" [],
    /// Seconds that the clock is away from how messages age, until it is believed.
    ClockOff = Gauge "retention_clock_off_seconds" [],
    /// Memory of the process.
    Resident = Gauge "process_resident_bytes" [],
    /// Bytes of message bodies in memory.
    BodyBytes = Gauge "memory_body_bytes" [],
    /// Runs of deliveries in hand.
    Runs = Gauge "runs" [],
    /// Spans of traces that the collector took.
    SpansSent = Counter "trace_spans_sent_total" [],
    /// Spans of traces that are lost, by why: queue-full, unreachable or rejected.
    SpansLost = Counter "trace_spans_lost_total" ["reason"],
    /// Open connections of an interface.
    Connections = Gauge "connections" ["interface"],
    /// Connections an interface takes at most.
    ConnectionsMax = Gauge "connections_max" ["interface"],
    /// Connections an interface accepted.
    Accepted = Counter "connections_accepted_total" ["interface"],
    /// Connections of an interface that ended, by why.
    ConnectionsClosed = Counter "connections_closed_total" ["interface", "reason"],
    /// What an interface's source found, by kind: message, refused or control.
    Items = Counter "items_total" ["interface", "kind"],
    /// Items that were answered.
    Answered = Counter "items_answered_total" ["interface"],
    /// What became of a source's messages: stored, duplicate, conflict or not-stored.
    Fates = Counter "source_messages_total" ["interface", "fate"],
    /// Bytes a source read or wrote, by direction: in or out.
    SourceBytes = Counter "source_bytes_total" ["interface", "direction"],
    /// Requests that a source answered over HTTP, by the class of the answer's status.
    Requests = Counter "http_requests_total" ["interface", "status"],
    /// Addresses whose connections wait because of earlier faults.
    Slowed = Gauge "source_addresses_slowed" ["interface"],
    /// 1 for the state that a source is in which looks for messages by itself.
    PollState = Gauge "poll_state" ["interface", "state"],
    /// Seconds since such a source answered last.
    PolledSeconds = Gauge "poll_age_seconds" ["interface"],
    /// Connections and frames that were refused, by why.
    Refusals = Counter "refusals_total" ["interface", "reason"],
    /// Odd things that a source took all the same, by code.
    Notices = Counter "notices_total" ["interface", "code"],
    /// Odd things that a destination's plugins noticed, by code.
    DestinationNotices = Counter "destination_notices_total" ["interface", "destination", "plugin", "code"],
    /// Faults of plugins, by kind; the destination of a source is empty.
    Faults = Counter "plugin_faults_total" ["interface", "destination", "plugin", "kind"],
    /// Uses of granted secrets by plugins, by action: reveal or sign; the destination of a source is empty.
    SecretUses = Counter "secret_uses_total" ["interface", "destination", "plugin", "secret", "action"],
    /// Pending deliveries of a destination.
    Waiting = Gauge "destination_waiting" ["interface", "destination"],
    /// Age of its oldest pending delivery.
    OldestSeconds = Gauge "destination_oldest_seconds" ["interface", "destination"],
    /// Its deliveries that a person must look at.
    Quarantined = Gauge "destination_quarantined" ["interface", "destination"],
    /// Its lanes that wait for a retry or an operator.
    LanesBlocked = Gauge "destination_lanes_blocked" ["interface", "destination"],
    /// 1 for the state it is in: running, waiting, stopped or paused.
    DestinationState = Gauge "destination_state" ["interface", "destination", "state"],
    /// What became of its deliveries, by outcome: sent, filtered, quarantined or retried.
    Deliveries = Counter "deliveries_total" ["interface", "destination", "outcome"],
    /// Seconds from receipt to arrival since the start, at a quantile.
    Latency = Gauge "delivery_latency_seconds" ["interface", "destination", "quantile"],
}

/// States of a source that looks for messages by itself; see `views::Poll`.
const POLL_STATES: [&str; 8] =
    ["starting", "polling", "storing", "settling", "resting", "waiting", "misconfigured", "stopped"];

/// The page of the reference: every metric with its labels.
pub fn reference() -> String {
    let mut page = "# Metrics

<!-- Generated from the table in host/admin/src/metrics.rs; change that and run `cargo xtask gen`. -->

`GET /metrics` of the local API gives them in Prometheus' text format, for the control token.
Counters count from the start of the engine.
Labels are names of the project, words of this page, and at most 33 codes of a plugin or reasons each; never ids, addresses or texts.

| metric | type | labels | means |
|---|---|---|---|
"
    .to_owned();
    for metric in Metric::ALL {
        let labels: Vec<_> = metric.labels().iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, help) = (metric.name(), metric.kind().as_str(), metric.help().trim());
        let _ = writeln!(page, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
    }
    page
}

/// The page of a scrape.
pub(crate) fn render(status: &Status) -> String {
    let mut page = Page::default();
    render_engine(&mut page, status);
    render_listeners(&mut page, status);
    render_sources(&mut page, status);
    render_polls(&mut page, status);
    render_plugins(&mut page, status);
    render_queues(&mut page, status);
    render_destinations(&mut page, status);
    page.text
}

fn render_engine(page: &mut Page, status: &Status) {
    let Status { engine, intake, commits, store, retention, memory, .. } = status;
    page.head(Metric::Build);
    page.line(Metric::Build, &[("version", &engine.version)], 1.0);
    page.single(Metric::Uptime, engine.uptime_s as f64);
    page.single(Metric::IntakeOpen, f64::from(u8::from(intake.closed.is_none())));
    page.single(Metric::IntakeWaiting, intake.waiting as f64);
    page.single(Metric::Stored, intake.stored as f64);
    page.single(Metric::Duplicates, intake.duplicates as f64);
    page.head(Metric::IntakeRefused);
    for (reason, count) in bounded(intake.refused.iter().map(Count::pair)) {
        page.line(Metric::IntakeRefused, &[("reason", reason)], count as f64);
    }
    page.single(Metric::Commits, commits.commits as f64);
    page.single(Metric::CommitsStrict, commits.strict as f64);
    page.single(Metric::CommitFailures, commits.failures as f64);
    page.single(Metric::CommitSeconds, commits.busy_ms / 1_000.0);
    page.single(Metric::StoreReadable, f64::from(u8::from(store.away.is_none())));
    if let Some(free) = store.free_bytes {
        page.single(Metric::StoreFree, free as f64);
    }
    page.single(Metric::StoreLog, store.log_bytes as f64);
    page.single(Metric::Pruned, store.pruned as f64);
    page.single(Metric::RetentionChanging, retention.changing as f64);
    page.single(Metric::RetentionUnconfirmed, retention.unconfirmed as f64);
    page.single(Metric::ClockOff, retention.clock_off_s as f64);
    if let Some(resident) = memory.resident_bytes {
        page.single(Metric::Resident, resident as f64);
    }
    page.single(Metric::BodyBytes, memory.body_bytes as f64);
    page.single(Metric::Runs, memory.runs as f64);
    if let Some(traces) = &status.traces {
        page.single(Metric::SpansSent, traces.sent as f64);
        page.head(Metric::SpansLost);
        for (reason, count) in bounded(traces.lost.iter().map(Count::pair)) {
            page.line(Metric::SpansLost, &[("reason", reason)], count as f64);
        }
    }
}

fn render_listeners(page: &mut Page, status: &Status) {
    let listeners =
        || status.interfaces.iter().filter_map(|interface| Some((interface, interface.listener.as_ref()?)));
    page.head(Metric::Connections);
    for (interface, listener) in listeners() {
        page.line(Metric::Connections, &[("interface", &interface.name)], listener.connections as f64);
    }
    page.head(Metric::ConnectionsMax);
    for (interface, listener) in listeners() {
        page.line(Metric::ConnectionsMax, &[("interface", &interface.name)], listener.connections_max as f64);
    }
    page.head(Metric::Accepted);
    for (interface, listener) in listeners() {
        page.line(Metric::Accepted, &[("interface", &interface.name)], listener.accepted as f64);
    }
    page.head(Metric::ConnectionsClosed);
    for (interface, _) in listeners() {
        page.counts(Metric::ConnectionsClosed, ("interface", &interface.name), &interface.source.closed);
    }
}

fn render_sources(page: &mut Page, status: &Status) {
    page.head(Metric::Items);
    for Interface { name, items, .. } in &status.interfaces {
        for (kind, count) in
            [("message", items.messages), ("refused", items.refused), ("control", items.controls)]
        {
            page.line(Metric::Items, &[("interface", name), ("kind", kind)], count as f64);
        }
    }
    page.head(Metric::Answered);
    for interface in &status.interfaces {
        page.line(Metric::Answered, &[("interface", &interface.name)], interface.items.answered as f64);
    }
    page.head(Metric::Fates);
    for Interface { name, source, .. } in &status.interfaces {
        let not_stored = source.not_stored.iter().map(|one| one.count).sum();
        for (fate, count) in [
            ("stored", source.stored),
            ("duplicate", source.duplicates),
            ("conflict", source.conflicts),
            ("not-stored", not_stored),
        ] {
            page.line(Metric::Fates, &[("interface", name), ("fate", fate)], count as f64);
        }
    }
    page.head(Metric::SourceBytes);
    for Interface { name, source, .. } in &status.interfaces {
        for (direction, count) in [("in", source.bytes_in), ("out", source.bytes_out)] {
            page.line(Metric::SourceBytes, &[("interface", name), ("direction", direction)], count as f64);
        }
    }
    page.head(Metric::Requests);
    for Interface { name, source, .. } in &status.interfaces {
        for (class, count) in bounded(source.requests.iter().map(Count::pair)) {
            page.line(Metric::Requests, &[("interface", name), ("status", class)], count as f64);
        }
    }
    page.head(Metric::Slowed);
    for Interface { name, source, .. } in &status.interfaces {
        page.line(Metric::Slowed, &[("interface", name)], source.addresses_slowed as f64);
    }
    page.head(Metric::Refusals);
    for interface in &status.interfaces {
        page.counts(Metric::Refusals, ("interface", &interface.name), &interface.refusals);
    }
    page.head(Metric::Notices);
    for interface in &status.interfaces {
        for (code, count) in bounded(interface.notices.iter().map(Notice::pair)) {
            let labels = [("interface", interface.name.as_str()), ("code", code)];
            page.line(Metric::Notices, &labels, count as f64);
        }
    }
}

fn render_polls(page: &mut Page, status: &Status) {
    let polls = || status.interfaces.iter().filter_map(|one| Some((one.name.as_str(), one.poll.as_ref()?)));
    page.head(Metric::PollState);
    for (interface, poll) in polls() {
        for state in POLL_STATES {
            let is_in = f64::from(u8::from(poll.state == state));
            page.line(Metric::PollState, &[("interface", interface), ("state", state)], is_in);
        }
    }
    page.head(Metric::PolledSeconds);
    for (interface, poll) in polls() {
        if let Some(at) = poll.polled_at {
            let age = now(status).since(at.0).as_secs_f64();
            page.line(Metric::PolledSeconds, &[("interface", interface)], age);
        }
    }
}

fn render_plugins(page: &mut Page, status: &Status) {
    page.head(Metric::DestinationNotices);
    for interface in &status.interfaces {
        for plugin in &interface.plugins {
            let Some(destination) = &plugin.destination else { continue };
            for (code, count) in bounded(plugin.notices.iter().map(Notice::pair)) {
                let labels = [
                    ("interface", interface.name.as_str()),
                    ("destination", destination),
                    ("plugin", &plugin.plugin),
                    ("code", code),
                ];
                page.line(Metric::DestinationNotices, &labels, count as f64);
            }
        }
    }
    page.head(Metric::Faults);
    for interface in &status.interfaces {
        for plugin in &interface.plugins {
            for fault in &plugin.faults {
                let labels = [
                    ("interface", interface.name.as_str()),
                    ("destination", plugin.destination.as_deref().unwrap_or_default()),
                    ("plugin", &plugin.plugin),
                    ("kind", &fault.reason),
                ];
                page.line(Metric::Faults, &labels, fault.count as f64);
            }
        }
    }
    page.head(Metric::SecretUses);
    for interface in &status.interfaces {
        for plugin in &interface.plugins {
            for used in &plugin.secrets {
                let labels = [
                    ("interface", interface.name.as_str()),
                    ("destination", plugin.destination.as_deref().unwrap_or_default()),
                    ("plugin", &plugin.plugin),
                    ("secret", &used.secret),
                    ("action", &used.action),
                ];
                page.line(Metric::SecretUses, &labels, used.count as f64);
            }
        }
    }
}

/// The first codes, and the others as one.
fn bounded<'c>(counts: impl Iterator<Item = (&'c str, u64)>) -> Vec<(&'c str, u64)> {
    let mut bounded: Vec<(&str, u64)> = Vec::new();
    for (code, count) in counts {
        let code = if bounded.len() < CODES_MAX { code } else { code::OTHER };
        match bounded.iter_mut().find(|(known, _)| *known == code) {
            Some((_, sum)) => *sum += count,
            None => bounded.push((code, count)),
        }
    }
    bounded
}

impl Count {
    fn pair(&self) -> (&str, u64) {
        (&self.reason, self.count)
    }
}

impl Notice {
    fn pair(&self) -> (&str, u64) {
        (&self.code, self.count)
    }
}

/// When the status was made.
fn now(status: &Status) -> portway_model::Timestamp {
    status.engine.started_at.0 + std::time::Duration::from_secs(status.engine.uptime_s)
}

/// What waits, unless nobody knows: no figure is better than a wrong one.
fn render_queues(page: &mut Page, status: &Status) {
    if !status.knows_queues() {
        return;
    }
    let destinations = || status.interfaces.iter().flat_map(Interface::destinations_with_name);
    let now = now(status);
    page.head(Metric::Waiting);
    for (labels, destination) in destinations() {
        page.line(Metric::Waiting, &labels, destination.waiting as f64);
    }
    page.head(Metric::OldestSeconds);
    for (labels, destination) in destinations() {
        let age = destination.oldest.map_or(0.0, |oldest| now.since(oldest.0).as_secs_f64());
        page.line(Metric::OldestSeconds, &labels, age);
    }
    page.head(Metric::Quarantined);
    for (labels, destination) in destinations() {
        page.line(Metric::Quarantined, &labels, destination.quarantined as f64);
    }
}

fn render_destinations(page: &mut Page, status: &Status) {
    let destinations = || status.interfaces.iter().flat_map(Interface::destinations_with_name);
    page.head(Metric::LanesBlocked);
    for (labels, destination) in destinations() {
        page.line(Metric::LanesBlocked, &labels, destination.lanes_blocked as f64);
    }
    page.head(Metric::DestinationState);
    for ([interface, name], destination) in destinations() {
        for state in DestinationState::ALL {
            let labels = [interface, name, ("state", state.as_str())];
            page.line(Metric::DestinationState, &labels, f64::from(u8::from(state == destination.state)));
        }
    }
    page.head(Metric::Deliveries);
    for ([interface, name], destination) in destinations() {
        let counts = destination.counts;
        let outcomes = [
            ("sent", counts.sent),
            ("filtered", counts.filtered),
            ("quarantined", counts.quarantined),
            ("retried", counts.retried),
            ("dropped", counts.dropped),
        ];
        for (outcome, count) in outcomes {
            page.line(Metric::Deliveries, &[interface, name, ("outcome", outcome)], count as f64);
        }
    }
    page.head(Metric::Latency);
    for ([interface, name], destination) in destinations() {
        let latency = destination.latency;
        for (quantile, millis) in [("0.5", latency.p50_ms), ("0.99", latency.p99_ms)] {
            if latency.count > 0 {
                let labels = [interface, name, ("quantile", quantile)];
                page.line(Metric::Latency, &labels, millis / 1_000.0);
            }
        }
    }
}

impl Interface {
    fn destinations_with_name(
        &self,
    ) -> impl Iterator<Item = ([(&'static str, &str); 2], &crate::views::Destination)> {
        self.destinations.iter().map(|destination| {
            ([("interface", self.name.as_str()), ("destination", destination.name.as_str())], destination)
        })
    }
}

/// The text so far.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, metric: Metric) {
        let name = metric.name();
        let kind = metric.kind().as_str();
        let _ = writeln!(self.text, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help().trim());
    }

    fn line(&mut self, metric: Metric, labels: &[(&str, &str)], value: f64) {
        debug_assert!(labels.iter().map(|(name, _)| *name).eq(metric.labels().iter().copied()), "{metric:?}");
        self.text.push_str(metric.name());
        for (at, (name, label)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let escaped = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{open}{name}=\"{escaped}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// A line for each reason, up to the limit.
    fn counts(&mut self, metric: Metric, label: (&str, &str), counts: &[Count]) {
        for (reason, count) in bounded(counts.iter().map(Count::pair)) {
            self.line(metric, &[label, ("reason", reason)], count as f64);
        }
    }

    fn single(&mut self, metric: Metric, value: f64) {
        self.head(metric);
        self.line(metric, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_beyond_the_limit_are_one_series() {
        let codes: Vec<String> = (0..50).map(|number| format!("code-{number}")).collect();
        let bounded = bounded(codes.iter().map(|code| (code.as_str(), 2)));
        assert_eq!(bounded.len(), CODES_MAX + 1);
        assert_eq!(bounded[CODES_MAX], (code::OTHER, 36));
    }

    #[test]
    fn every_line_has_the_labels_that_the_reference_promises() {
        for (at, metric) in Metric::ALL.iter().enumerate() {
            let is_twice = Metric::ALL.iter().skip(at + 1).any(|other| other.name() == metric.name());
            assert!(!is_twice, "{} is there twice", metric.name());
            let is_total = metric.name().ends_with("_total");
            assert_eq!(is_total, metric.kind().as_str() == "counter", "{}", metric.name());
            assert!(reference().contains(&format!("| `{}` |", metric.name())));
        }
        let mut page = Page::default();
        page.line(Metric::Items, &[("interface", "a\"b\\\n"), ("kind", "message")], 1.0);
        assert_eq!(page.text, "portway_items_total{interface=\"a\\\"b\\\\\\n\",kind=\"message\"} 1\n");
    }
}
