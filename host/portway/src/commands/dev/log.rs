//! The log of `portway dev`: a line says when, where and what, for whoever writes the project.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use portway_admin::views::Time;
use portway_config::Environment;
use portway_engine::Clock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::output::escape;
use crate::wiring::SystemClock;

/// What is shown if nothing is said: quarantined messages, too.
const FILTER: &str = "info,portway_engine::fact=debug";
/// Lines of one event; a plugin may have much to say.
const LINES_MAX: usize = 60;
/// Fields that say where, or that help nobody here.
const UNSHOWN: [&str; 7] =
    ["message", "interface", "destination", "plugin", "fuel", "memory_bytes", "digest"];

/// Writes the log to stderr from now on; a log that was started before stays.
pub(super) fn start(environment: &Environment) {
    let wanted = environment.get("PORTWAY_LOG").unwrap_or(FILTER);
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(wanted);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = builder.event_format(Lines).try_init();
}

/// See the file.
struct Lines;

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.0.get("message").is_some_and(|message| message.trim().is_empty()) {
            // A plugin's empty line says nothing here.
            return Ok(());
        }
        let now = Time(SystemClock::new().now()).to_string();
        let clock = now.get(11..19).unwrap_or_default();
        writer.write_str(&line(clock, *event.metadata().level(), &fields.0))
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// When, how bad, where, which plugin, what; further lines are indented.
fn line(clock: &str, level: Level, fields: &BTreeMap<&'static str, String>) -> String {
    let get = |name: &str| fields.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let mut line = format!("{clock} ");
    match level {
        Level::ERROR => line.push_str("ERROR "),
        Level::WARN => line.push_str("WARN "),
        Level::INFO | Level::DEBUG | Level::TRACE => {}
    }
    line.extend(get("interface").map(escape));
    line.extend(get("destination").map(|destination| format!(" → {}", escape(destination))));
    line.extend(get("plugin").map(|plugin| format!(" ({})", escape(plugin))));
    if get("interface").is_some() {
        line.push_str(": ");
    }
    let message = get("message").unwrap_or_default();
    let mut lines = message.lines();
    line.push_str(&escape(lines.next().unwrap_or_default()));
    for (name, value) in fields.iter().filter(|(name, _)| !UNSHOWN.contains(name)) {
        // Writing to a string cannot fail.
        let _ = write!(line, " {name}={}", escape(value));
    }
    line.push('\n');
    for (number, more) in lines.filter(|more| !more.trim().is_empty()).enumerate() {
        if number == LINES_MAX {
            line.push_str("    …\n");
            break;
        }
        let _ = writeln!(line, "    {}", escape(more));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(level: Level, fields: &[(&'static str, &str)], wanted: &str) {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        assert_eq!(line("12:00:01", level, &fields), wanted);
    }

    #[test]
    fn a_line_says_where_and_what_and_keeps_a_fault_together() {
        let at = [("interface", "lab"), ("destination", "archive"), ("plugin", "my-map")];
        check(
            Level::INFO,
            &[&at[..], &[("message", "hello")]].concat(),
            "12:00:01 lab → archive (my-map): hello\n",
        );
        let fault = [
            ("message", "plugin `my-map` trapped: panicked at src/lib.rs:7:5:\n\nno\x1b[2J"),
            ("kind", "trap"),
        ];
        check(
            Level::WARN,
            &[&at[..1], &fault[..], &[("destination", ""), ("fuel", "7")]].concat(),
            "12:00:01 WARN lab: plugin `my-map` trapped: panicked at src/lib.rs:7:5: kind=trap\n    no\\u{1b}[2J\n",
        );
        check(Level::ERROR, &[("message", "the store fails")], "12:00:01 ERROR the store fails\n");
    }

    #[test]
    fn a_plugin_that_has_much_to_say_is_cut() {
        let much = "x\n".repeat(500);
        let fields = BTreeMap::from([("message", much)]);
        assert_eq!(line("", Level::INFO, &fields).lines().count(), LINES_MAX + 2);
    }
}
