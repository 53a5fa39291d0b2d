//! `portway status`: what runs, what waits, and why.

use std::fmt::Write;
use std::time::Duration;

use portway_admin::views::{
    Destination, DestinationState, EngineState, Interface, Reason, RetentionCounts, Status,
};

use super::show;
use crate::cli::ProjectArgs;
use crate::client::Client;
use crate::output::{Exit, Output};

/// Shows a running engine: what waits, what blocks it, and why.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// Show it again every second, until stopped.
    #[arg(long)]
    watch: bool,
}

/// Blocked lanes shown of one destination.
const BLOCKED_SHOWN: usize = 5;

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let client = Client::of(&args.project)?;
    if !args.watch {
        output.data(&client.status().await?, show_status)?;
        return Ok(Exit::Done);
    }
    let mut stop = std::pin::pin!(super::interrupted());
    let mut every = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            () = &mut stop => return Ok(Exit::Done),
            _ = every.tick() => {
                let status = client.status().await?;
                output.clear_screen()?;
                output.data(&status, show_status)?;
            }
        }
    }
}

/// For people. Everything that needs a person stands in a line of its own.
pub fn show_status(status: &Status) -> String {
    let mut text = String::new();
    show_engine(&mut text, status);
    show_others(&mut text, status);
    for interface in &status.interfaces {
        text.push('\n');
        show_interface(&mut text, interface, status.knows_queues());
    }
    for plugin in status.plugins.iter().filter(|plugin| plugin.path.is_some()) {
        let replaces = if plugin.replaces { ", in place of the one that comes with Portway" } else { "" };
        let path = plugin.path.as_deref().unwrap_or_default();
        let _ = writeln!(text, "\nplugin {} {} from {path}{replaces}", plugin.name, plugin.version);
    }
    text
}

/// Other engines on the store, and what they deliver.
fn show_others(text: &mut String, status: &Status) {
    for other in status.engines.iter().filter(|engine| !engine.is_this) {
        let delivers = match other.interfaces.as_slice() {
            [] => "stands by".to_owned(),
            names => format!("delivers {}", names.join(", ")),
        };
        let _ = writeln!(text, "engine {} on the same store {delivers}", other.name);
    }
}

fn show_engine(text: &mut String, status: &Status) {
    let Status { engine, intake, commits, store, memory, .. } = status;
    let state = match engine.state {
        EngineState::Starting => "starting",
        EngineState::Running => "running",
        EngineState::Standby => "standing by",
        EngineState::Stopping => "stopping",
    };
    let uptime = show::duration(Duration::from_secs(engine.uptime_s));
    let _ = writeln!(text, "portway {} is {state} for {uptime}: {}", engine.version, engine.project);
    let _ = match &intake.closed {
        None => write!(text, "intake open"),
        Some(why) => write!(text, "intake CLOSED: {}", reason(why)),
    };
    let stored = show::number(intake.stored);
    let _ = write!(text, "; {stored} stored, {} duplicate", show::number(intake.duplicates));
    for refused in &intake.refused {
        let _ = write!(text, ", {} not stored ({})", show::number(refused.count), refused.reason);
    }
    let _ = writeln!(text);
    if let Some(drain) = &status.drain {
        let how = if drain.done { "DRAINED" } else { "DRAINING" };
        let then = if drain.stops { ", stops then" } else { "" };
        let _ = writeln!(text, "{how} for {} by {}{then}", show::age(drain.since), drain.author);
    }
    let _ = writeln!(
        text,
        "commits {}: mean {:.2} ms, p99 {:.2} ms, busy {:.0} %{}",
        show::number(commits.commits),
        commits.mean_ms,
        commits.p99_ms,
        commits.busy_ratio * 100.0,
        if commits.failures == 0 {
            String::new()
        } else {
            format!(", {} FAILED", show::number(commits.failures))
        }
    );
    let free = store.free_bytes.map(|free| format!(", {} free", show::bytes(free))).unwrap_or_default();
    let resident = memory.resident_bytes.map(show::bytes).unwrap_or_else(|| "unknown".to_owned());
    let _ =
        writeln!(text, "store {}: log {}{free}; memory {resident}", store.path, show::bytes(store.log_bytes));
    for note in &store.notes {
        let _ = writeln!(text, "  {note}");
    }
    if let Some(away) = &store.away {
        let told = away.read_at.map_or_else(
            || "what waits is not known".to_owned(),
            |read_at| format!("what waits is as it was {} ago", show::age(read_at)),
        );
        let _ = writeln!(text, "store AWAY: {}; {told}", reason(&away.why));
    }
    if let Some(traces) = &status.traces {
        let _ = write!(text, "traces: {} spans sent", show::number(traces.sent));
        for lost in &traces.lost {
            let _ = write!(text, ", {} LOST ({})", show::number(lost.count), lost.reason);
        }
        let _ = writeln!(text);
    }
    show_retention(text, &status.retention);
}

/// What of old messages a person should look at.
fn show_retention(text: &mut String, retention: &RetentionCounts) {
    let RetentionCounts { changing, unconfirmed, clock_off_s } = *retention;
    let mut parts = Vec::new();
    if unconfirmed > 0 {
        let waiting = show::counted(unconfirmed, "interface");
        parts.push(format!("{waiting} waiting for `portway retention confirm`"));
    }
    if changing > 0 {
        parts.push(format!("{} changing", show::counted(changing, "interface")));
    }
    if clock_off_s > 0 {
        let off = show::duration(Duration::from_secs(clock_off_s));
        parts.push(format!("the clock is {off} away from the age of messages"));
    }
    if !parts.is_empty() {
        let _ = writeln!(text, "retention: {}", parts.join("; "));
    }
}

fn show_interface(text: &mut String, interface: &Interface, knows_queues: bool) {
    let _ = match (&interface.listener, &interface.poll) {
        (Some(listener), _) => writeln!(
            text,
            "{}: {} on {}{}, {} of {} connections",
            interface.name,
            listener.plugin,
            listener.address,
            if listener.tls { " with TLS" } else { "" },
            show::number(listener.connections),
            show::number(listener.connections_max)
        ),
        (None, Some(poll)) => {
            let reason = poll.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            writeln!(text, "{}: {} {}{reason}", interface.name, poll.plugin, poll.state)
        }
        (None, None) => writeln!(text, "{}: from routes", interface.name),
    };
    let items = interface.items;
    if items.messages + items.refused + items.controls > 0 {
        let _ = writeln!(
            text,
            "  {} messages, {} refused, {} controls; {} settled, {} answered",
            show::number(items.messages),
            show::number(items.refused),
            show::number(items.controls),
            show::number(items.settled),
            show::number(items.answered)
        );
    }
    for refusal in &interface.refusals {
        let _ = writeln!(text, "  refused {} × {}", show::number(refusal.count), refusal.reason);
    }
    for notice in &interface.notices {
        let _ = writeln!(text, "  notice {} × {}: {}", show::number(notice.count), notice.code, notice.text);
    }
    for plugin in &interface.plugins {
        let whose = plugin.destination.as_deref().unwrap_or("the source");
        for used in &plugin.secrets {
            let count = show::number(used.count);
            let (name, action, plugin) = (&used.secret, &used.action, &plugin.plugin);
            let _ = writeln!(text, "  secret {name}: {count} × {action} by {plugin} of {whose}");
        }
    }
    for destination in &interface.destinations {
        show_destination(text, &interface.name, destination, knows_queues);
    }
}

fn show_destination(text: &mut String, interface: &str, destination: &Destination, knows_queues: bool) {
    let Destination { name, to, state, waiting, counts, .. } = destination;
    let waiting = if knows_queues { show::number(*waiting) } else { "?".to_owned() };
    let _ = write!(text, "  → {name} ({to}): {waiting} waiting");
    if let Some(oldest) = destination.oldest {
        let _ = write!(text, ", oldest {}", show::age(oldest));
    }
    let _ = write!(text, "; {} sent", show::number(counts.sent));
    if destination.latency.count > 0 {
        let latency = destination.latency;
        let _ = write!(text, " (p50 {:.1} ms, p99 {:.1} ms from receipt)", latency.p50_ms, latency.p99_ms);
    }
    let words =
        [(counts.filtered, "filtered"), (counts.dropped, "of them dropped"), (counts.retried, "retried")];
    for (count, word) in words {
        if count > 0 {
            let _ = write!(text, ", {} {word}", show::number(count));
        }
    }
    let _ = writeln!(text);
    show_state(text, interface, destination, *state);
    if let Some(rate) = destination.rate.as_ref().filter(|rate| rate.waits) {
        let _ = writeln!(text, "      at its rate of {}", rate.limit);
    }
    for lane in destination.blocked.iter().take(BLOCKED_SHOWN) {
        let due = match lane.due_at {
            Some(due) => format!("tried again {}", show::until(due)),
            None => format!("waits for `portway lane retry {interface}/{name}` or `lane skip`"),
        };
        let attempts = show::counted(u64::from(lane.attempts), "attempt");
        let _ =
            writeln!(text, "      lane {}: message {}, {attempts}: {}", lane.lane, lane.message, lane.why);
        let _ = writeln!(text, "        {due}");
    }
    let shown = destination.blocked.len().min(BLOCKED_SHOWN) as u64;
    if destination.lanes_blocked > shown {
        let _ = writeln!(
            text,
            "      and {} more blocked lanes",
            show::number(destination.lanes_blocked - shown)
        );
    }
    if destination.quarantined > 0 {
        let _ = writeln!(
            text,
            "      {} QUARANTINED: `portway message list --interface {interface} --destination {name} --status quarantined`",
            show::number(destination.quarantined)
        );
    }
}

fn show_state(text: &mut String, interface: &str, destination: &Destination, state: DestinationState) {
    let why = destination.why.as_ref().map(reason).unwrap_or_default();
    let since = destination.since.map(|since| format!(" for {}", show::age(since))).unwrap_or_default();
    match state {
        DestinationState::Running => {}
        DestinationState::Waiting => {
            let until = destination.until.map(|until| format!(", asked again {}", show::until(until)));
            let _ = writeln!(text, "      AWAY{since}: {why}{}", until.unwrap_or_default());
        }
        DestinationState::Stopped => {
            let _ = writeln!(text, "      STOPPED{since}: {why}");
            let _ =
                writeln!(text, "        `portway resume {interface} {}` starts it again", destination.name);
        }
        DestinationState::Paused => {
            let pause = destination.pause.as_ref();
            let by = pause.map(|pause| format!(" by {}: {}", pause.author, pause.reason)).unwrap_or_default();
            let _ = writeln!(text, "      PAUSED{since}{by}");
            let name = &destination.name;
            let _ = writeln!(text, "        `portway destination resume {interface}/{name}` lets it go on");
        }
    }
}

fn reason(reason: &Reason) -> String {
    format!("{} ({})", reason.text, reason.code)
}
