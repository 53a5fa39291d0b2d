//! Metrics in Prometheus' text format, from the same facts as `status`.
//!
//! Labels are bounded: names of the project, words of the code, and at most so many codes of a
//! plugin. Never ids, addresses or texts.

use std::fmt::Write;

use crate::views::{DestinationState, Interface, Status};

/// Codes of a plugin that get a series of their own.
const CODES_MAX: usize = 32;

/// What a metric counts.
#[derive(Clone, Copy)]
enum Type {
    Counter,
    Gauge,
}

/// Every metric there is: name, type, help.
macro_rules! metrics {
    ($($(#[doc = $help:literal])* $case:ident = $type:ident $name:literal),+ $(,)?) => {
        #[derive(Clone, Copy)]
        enum Metric { $($(#[doc = $help])* $case),+ }

        impl Metric {
            fn name(self) -> &'static str {
                match self { $(Metric::$case => concat!("portway_", $name)),+ }
            }

            fn kind(self) -> Type {
                match self { $(Metric::$case => Type::$type),+ }
            }

            fn help(self) -> &'static str {
                match self { $(Metric::$case => concat!($($help),*)),+ }
            }
        }
    };
}

metrics! {
    /// Seconds since the engine started.
    Uptime = Gauge "uptime_seconds",
    /// Whether messages are taken.
    IntakeOpen = Gauge "intake_open",
    /// Messages that wait for a commit.
    IntakeWaiting = Gauge "intake_waiting_messages",
    /// Messages stored.
    Stored = Counter "messages_stored_total",
    /// Messages that repeated an earlier one.
    Duplicates = Counter "messages_duplicate_total",
    /// Messages that were not stored, by why.
    IntakeRefused = Counter "messages_not_stored_total",
    /// Commits.
    Commits = Counter "commits_total",
    /// Commits that were flushed to disk.
    CommitsStrict = Counter "commits_strict_total",
    /// Commits that failed.
    CommitFailures = Counter "commit_failures_total",
    /// Seconds with a commit in hand.
    CommitSeconds = Counter "commit_seconds_total",
    /// Free bytes on the store's disk.
    StoreFree = Gauge "store_free_bytes",
    /// Bytes of log that are not yet in the store's main file.
    StoreLog = Gauge "store_log_bytes",
    /// Messages removed because they were old enough.
    Pruned = Counter "messages_pruned_total",
    /// Memory of the process.
    Resident = Gauge "process_resident_bytes",
    /// Bytes of message bodies in memory.
    BodyBytes = Gauge "memory_body_bytes",
    /// Runs of deliveries in hand.
    Runs = Gauge "runs",
    /// Open connections of an interface.
    Connections = Gauge "connections",
    /// Connections an interface accepted.
    Accepted = Counter "connections_accepted_total",
    /// What an interface's source found, by kind.
    Items = Counter "items_total",
    /// Items that were answered.
    Answered = Counter "items_answered_total",
    /// Connections and frames that were refused, by why.
    Refusals = Counter "refusals_total",
    /// Odd things that were taken all the same, by code.
    Notices = Counter "notices_total",
    /// Pending deliveries of a destination.
    Waiting = Gauge "destination_waiting",
    /// Age of its oldest pending delivery.
    OldestSeconds = Gauge "destination_oldest_seconds",
    /// Its deliveries that a person must look at.
    Quarantined = Gauge "destination_quarantined",
    /// Its lanes that wait for a retry or an operator.
    LanesBlocked = Gauge "destination_lanes_blocked",
    /// 1 for the state it is in: running, waiting, stopped or paused.
    DestinationState = Gauge "destination_state",
    /// What became of its deliveries, by outcome.
    Deliveries = Counter "deliveries_total",
}

/// The page of a scrape.
pub(crate) fn render(status: &Status) -> String {
    let mut page = Page::default();
    render_engine(&mut page, status);
    render_interfaces(&mut page, status);
    render_destinations(&mut page, status);
    page.text
}

fn render_engine(page: &mut Page, status: &Status) {
    let Status { engine, intake, commits, store, memory, .. } = status;
    page.single(Metric::Uptime, engine.uptime_s as f64);
    page.single(Metric::IntakeOpen, f64::from(u8::from(intake.closed.is_none())));
    page.single(Metric::IntakeWaiting, intake.waiting as f64);
    page.single(Metric::Stored, intake.stored as f64);
    page.single(Metric::Duplicates, intake.duplicates as f64);
    page.head(Metric::IntakeRefused);
    for refused in intake.refused.iter().take(CODES_MAX) {
        page.line(Metric::IntakeRefused, &[("reason", &refused.reason)], refused.count as f64);
    }
    page.single(Metric::Commits, commits.commits as f64);
    page.single(Metric::CommitsStrict, commits.strict as f64);
    page.single(Metric::CommitFailures, commits.failures as f64);
    page.single(Metric::CommitSeconds, commits.busy_ms / 1_000.0);
    if let Some(free) = store.free_bytes {
        page.single(Metric::StoreFree, free as f64);
    }
    page.single(Metric::StoreLog, store.log_bytes as f64);
    page.single(Metric::Pruned, store.pruned as f64);
    if let Some(resident) = memory.resident_bytes {
        page.single(Metric::Resident, resident as f64);
    }
    page.single(Metric::BodyBytes, memory.body_bytes as f64);
    page.single(Metric::Runs, memory.runs as f64);
}

fn render_interfaces(page: &mut Page, status: &Status) {
    let listeners =
        || status.interfaces.iter().filter_map(|interface| Some((interface, interface.listener.as_ref()?)));
    page.head(Metric::Connections);
    for (interface, listener) in listeners() {
        page.line(Metric::Connections, &[("interface", &interface.name)], listener.connections as f64);
    }
    page.head(Metric::Accepted);
    for (interface, listener) in listeners() {
        page.line(Metric::Accepted, &[("interface", &interface.name)], listener.accepted as f64);
    }
    page.head(Metric::Items);
    for interface in &status.interfaces {
        let Interface { name, items, .. } = interface;
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
    page.head(Metric::Refusals);
    for interface in &status.interfaces {
        for refusal in interface.refusals.iter().take(CODES_MAX) {
            let labels = [("interface", interface.name.as_str()), ("reason", &refusal.reason)];
            page.line(Metric::Refusals, &labels, refusal.count as f64);
        }
    }
    page.head(Metric::Notices);
    for interface in &status.interfaces {
        for notice in interface.notices.iter().take(CODES_MAX) {
            let labels = [("interface", interface.name.as_str()), ("code", &notice.code)];
            page.line(Metric::Notices, &labels, notice.count as f64);
        }
    }
}

fn render_destinations(page: &mut Page, status: &Status) {
    let destinations = || {
        let each = |interface| Interface::destinations_with_name(interface);
        status.interfaces.iter().flat_map(each)
    };
    let now = status.engine.started_at.0 + std::time::Duration::from_secs(status.engine.uptime_s);
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
        let kind = match metric.kind() {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
        };
        let _ = writeln!(self.text, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help().trim());
    }

    fn line(&mut self, metric: Metric, labels: &[(&str, &str)], value: f64) {
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

    fn single(&mut self, metric: Metric, value: f64) {
        self.head(metric);
        self.line(metric, &[], value);
    }
}
