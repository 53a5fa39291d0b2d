//! Which process this is, so that another on the same machine can see that it is gone.
//!
//! A number alone would not do: numbers are given again, and containers have numbers of their own.

use std::fs;

/// A process: the boot of its machine, its namespace of numbers, its number, and when it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    boot: String,
    namespace: String,
    number: u32,
    started: u64,
}

impl Process {
    /// This one; none: the system does not tell.
    pub(crate) fn own() -> Option<Process> {
        let number = std::process::id();
        Some(Process {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned(),
            namespace: fs::read_link("/proc/self/ns/pid").ok()?.to_str()?.to_owned(),
            number,
            started: started(number)?,
        })
    }

    /// As stored.
    pub(crate) fn text(&self) -> String {
        format!("{} {} {} {}", self.boot, self.namespace, self.number, self.started)
    }

    /// From what is stored.
    pub(crate) fn parse(text: &str) -> Option<Process> {
        let mut parts = text.split(' ');
        let process = Process {
            boot: parts.next()?.to_owned(),
            namespace: parts.next()?.to_owned(),
            number: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(process)
    }

    /// Whether it is known to run no more, seen from `own`.
    pub(crate) fn is_gone(&self, own: &Process) -> bool {
        self.can_be_seen(own) && started(self.number) != Some(self.started)
    }

    /// Whether it is known to run, seen from `own`.
    pub(crate) fn is_seen_to_run(&self, own: &Process) -> bool {
        self.can_be_seen(own) && started(self.number) == Some(self.started)
    }

    fn can_be_seen(&self, own: &Process) -> bool {
        self.boot == own.boot && self.namespace == own.namespace
    }
}

/// When a process started, in ticks since the boot; none: there is none with this number that runs.
fn started(number: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name stands in brackets and may hold anything; what follows begins with the third field.
    let (_, after_name) = status.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") && threads(number) <= 1 {
        // It ended; whoever started it has not looked yet.
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn threads(number: u32) -> usize {
    fs::read_dir(format!("/proc/{number}/task")).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_as_it_was_stored() {
        let own = Process::own().unwrap();
        assert_eq!(Process::parse(&own.text()), Some(own));
        for text in ["", "boot", "boot ns x 1", "boot ns 1 1 more"] {
            assert_eq!(Process::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_what_can_be_seen_can_be_gone() {
        let own = Process::own().unwrap();
        assert!(!own.is_gone(&own) && own.is_seen_to_run(&own));
        let before = Process { started: own.started - 1, ..own.clone() };
        assert!(before.is_gone(&own) && !before.is_seen_to_run(&own), "its number was given again");
        for elsewhere in [
            Process { boot: "another".into(), ..before.clone() },
            Process { namespace: "another".into(), ..before },
        ] {
            assert!(!elsewhere.is_gone(&own) && !elsewhere.is_seen_to_run(&own));
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ended = Process { number: child.id(), started: started(child.id()).unwrap(), ..own.clone() };
        child.kill().unwrap();
        // Before and after somebody looks what became of it.
        while !ended.is_gone(&own) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(ended.is_gone(&own));
    }
}
