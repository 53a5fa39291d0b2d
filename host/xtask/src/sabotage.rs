//! `cargo xtask sabotage`: does the simulation notice when the engine is wrong?
//!
//! Each sabotage breaks the engine in one place, in a copy of the repository, and the simulation has
//! to find a seed that shows it. One that is not found is a hole in the auditor; one whose place is
//! gone has to be written anew.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};

use crate::process::cargo;

/// Seeds in which a sabotage must show.
const SEEDS: &str = "3000";
/// Of what the auditor says; more is in the trace of the seed.
const VIOLATION_CHARS_MAX: usize = 160;
/// What the simulation is made of, besides the manifests of the workspace.
const COPIED: [&str; 4] = ["host/model", "host/store", "host/engine", "host/testkit"];

/// One wrong line.
struct Sabotage {
    /// What the engine does wrongly.
    does: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
}

const SABOTAGES: [Sabotage; 32] = [
    Sabotage {
        does: "acknowledges before the flush",
        file: "host/engine/src/core/write.rs",
        right: "batch.durability = Durability::Strict;\n            }\n            if let Some(message)",
        wrong: "batch.durability = Durability::Relaxed;\n            }\n            if let Some(message)",
    },
    Sabotage {
        does: "writes a batch again whose end it does not know",
        file: "host/engine/src/committer.rs",
        right: "self.hand = Hand::Finding { batch, mark, asked: false };\n                After::Again\n            }\n            ErrorKind::Fatal",
        wrong: "let _ = mark;\n                self.give_back(batch);\n                After::Again\n            }\n            ErrorKind::Fatal",
    },
    Sabotage {
        does: "forgets a batch that was not stored",
        file: "host/engine/src/committer.rs",
        right: "Ok(None) => {\n                self.give_back(batch);",
        wrong: "Ok(None) => {\n                drop(batch);",
    },
    Sabotage {
        does: "keeps a hint though older messages are still in the store",
        file: "host/engine/src/dispatcher/stream.rs",
        right: "if !self.is_behind() && message > self.known && keep == Keep::Yes {",
        wrong: "if message > self.known && keep == Keep::Yes {",
    },
    Sabotage {
        does: "takes a full page for the last one",
        file: "host/engine/src/dispatcher/stream.rs",
        right: "self.more = cut || !is_short;",
        wrong: "self.more = cut;",
    },
    Sabotage {
        does: "reads again what a run has in hand",
        file: "host/engine/src/dispatcher/stream.rs",
        right: "self.known = self.taken_to.max(last);",
        wrong: "self.known = last;",
    },
    Sabotage {
        does: "puts what a run left behind what came later",
        file: "host/engine/src/dispatcher/stream.rs",
        right: "self.queue.push_front(hint);",
        wrong: "self.queue.push_back(hint);",
    },
    Sabotage {
        does: "goes on past a message that waits for its retry",
        file: "host/engine/src/dispatcher/lane.rs",
        right: "let waits = self.run.is_some() || self.blocked.is_some() || self.rewind.is_some();",
        wrong: "let waits = self.run.is_some() || self.rewind.is_some();",
    },
    Sabotage {
        does: "sends what is held by a quarantined message",
        file: "host/engine/src/dispatcher/lane.rs",
        right: "self.held.is_none_or(|held| message < held)",
        wrong: "self.held.is_none_or(|held| message != held)",
    },
    Sabotage {
        does: "counts no attempts",
        file: "host/engine/src/dispatcher/pick.rs",
        right: "attempt: hint.attempts.next(), ..envelope",
        wrong: "attempt: hint.attempts, ..envelope",
    },
    Sabotage {
        does: "keeps more bodies in memory than it may",
        file: "host/engine/src/dispatcher/budget.rs",
        right: "self.carried.load(Ordering::Relaxed).saturating_add(bytes) > self.half_bytes {",
        wrong: "self.carried.load(Ordering::Relaxed).saturating_add(bytes) > self.half_bytes * 8 {",
    },
    Sabotage {
        does: "sends on though too many results are not flushed",
        file: "host/engine/src/dispatcher/pick.rs",
        right: "ctx.completer.room(self.place).saturating_sub(self.in_hand) as usize",
        wrong: "ctx.completer.unflushed_max() as usize",
    },
    Sabotage {
        does: "trusts what was in hand when the process died",
        file: "host/engine/src/dispatcher/destination.rs",
        right: "is_some_and(|tenure| tenure.unclean)",
        wrong: "is_some_and(|_| false)",
    },
    Sabotage {
        does: "stops a destination one runaway too late",
        file: "host/engine/src/dispatcher/standing.rs",
        right: "const RUNAWAYS_MAX: u32 = 3;",
        wrong: "const RUNAWAYS_MAX: u32 = 4;",
    },
    Sabotage {
        does: "forgets at a restart which destinations are paused",
        file: "host/engine/src/dispatcher/standing.rs",
        right: "Standing { pause, ..Standing::default() }",
        wrong: "Standing { pause: pause.filter(|_| false), ..Standing::default() }",
    },
    Sabotage {
        does: "takes messages while it drains",
        file: "host/engine/src/core.rs",
        right: "} else if let Some(drain) = &self.drain {",
        wrong: "} else if let Some(drain) = self.drain.as_ref().filter(|drain| drain.is_quiet) {",
    },
    Sabotage {
        does: "sends faster than a destination's rate",
        file: "host/engine/src/dispatcher/rate.rs",
        right: "self.level = self.level.saturating_sub(self.cost().saturating_mul(count as u128));",
        wrong: "self.level = self.level.saturating_sub(self.cost().saturating_mul(count as u128 / 2));",
    },
    Sabotage {
        does: "sends on behind what it dropped before that is stored",
        file: "host/engine/src/dispatcher/lane.rs",
        right: "self.dropping == 0",
        wrong: "self.dropping < u32::MAX",
    },
    Sabotage {
        does: "sends again what may have arrived and may not twice",
        file: "host/engine/src/dispatcher/pick.rs",
        right: "Guarantee::AtMostOnce => 2,",
        wrong: "Guarantee::AtMostOnce => 3,",
    },
    Sabotage {
        does: "tries what was in hand at an end of the process together with others",
        file: "host/engine/src/dispatcher/stream.rs",
        right: "self.recorded > 0 || were_in_hand.contains(&self.message)",
        wrong: "self.recorded > 0 || (were_in_hand.contains(&self.message) && self.is_void)",
    },
    Sabotage {
        does: "sends what may not be sent twice before that is on disk",
        file: "host/engine/src/completer.rs",
        right: "self.flushes_suspects |= guarantee == Guarantee::AtMostOnce;",
        wrong: "self.flushes_suspects |= guarantee != guarantee;",
    },
    Sabotage {
        does: "goes on in a lane before the state of what was before is stored",
        file: "host/engine/src/dispatcher/lane.rs",
        right: "self.keeping == 0",
        wrong: "self.keeping < u32::MAX",
    },
    Sabotage {
        does: "keeps nothing of what was filtered",
        file: "host/store/src/write.rs",
        right: "Settled::Sent(_) | Settled::Routed(_) | Settled::Filtered(_) => true,\n            Settled::Quarantined(_) | Settled::Retry { .. } => false,",
        wrong: "Settled::Sent(_) | Settled::Routed(_) => true,\n            Settled::Filtered(_) | Settled::Quarantined(_) | Settled::Retry { .. } => false,",
    },
    Sabotage {
        does: "sends on without what another engine stored before",
        file: "host/engine/src/core/ownership.rs",
        right: "if heard.any || !heard.groups.is_empty() || !elsewhere.is_empty() {",
        wrong: "if heard.any || !heard.groups.is_empty() {",
    },
    Sabotage {
        does: "reads what others stored only behind what it knows",
        file: "host/engine/src/dispatcher/tenure.rs",
        right: "lane.rewind = Some(FIRST);",
        wrong: "lane.stream.expect_more();",
    },
    Sabotage {
        does: "goes on with what it knew before it lost its groups",
        file: "host/engine/src/dispatcher/tenure.rs",
        right: "self.end_with(place, Leaving::ToBegin);",
        wrong: "let _ = place;",
    },
    Sabotage {
        does: "hears that its lock is gone and goes on",
        file: "host/engine/src/core/ownership.rs",
        right: "News::Lost => self.lose(),",
        wrong: "News::Lost => {}",
    },
    Sabotage {
        does: "takes over while the owner before may still send",
        file: "host/engine/src/dispatcher/tenure.rs",
        right: "if tenure.overlaps && self.settings.order != Order::None {",
        wrong: "if tenure.overlaps && self.settings.order == Order::None {",
    },
    Sabotage {
        does: "does not listen when others store messages for it",
        file: "host/engine/src/core/ownership.rs",
        right: "self.read_again(|group| groups.contains(&group));",
        wrong: "let _ = groups;",
    },
    Sabotage {
        does: "forgets what it heard of others while a batch was written",
        file: "host/engine/src/core/ownership.rs",
        right: "self.ownership.heard.groups.extend(groups);",
        wrong: "let _ = groups;",
    },
    Sabotage {
        does: "lets what was tried in a tenure that is over count in the next",
        file: "host/engine/src/dispatcher/tenure.rs",
        right: "destination.standing.set_pause(ctx.layout.pause(destination.settings.id).cloned());",
        wrong: "destination.standing.set_pause(ctx.layout.pause(destination.settings.id).cloned());\n            destination.epoch = self.desk.tenure.as_ref().map_or(destination.epoch, |tenure| tenure.epoch);",
    },
    Sabotage {
        does: "takes a lock that was lost for an end of the process",
        file: "host/engine/src/dispatcher/pick.rs",
        right: "hint.recorded = records.count(self.destination, hint.message);",
        wrong: "hint.recorded = records.count(self.destination, hint.message).min(0);",
    },
];

/// Plays them all; an error if one is not found out.
pub fn sabotage(root: &Path) -> Result<()> {
    let home = root.join("target/sabotage");
    let tree = home.join("tree");
    copy(root, &tree)?;
    let mut missed = Vec::new();
    for sabotage in &SABOTAGES {
        let file = tree.join(sabotage.file);
        let sound = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        ensure!(
            sound.matches(sabotage.right).count() == 1,
            "`{}` is not found once in `{}`: write the sabotage that {} anew",
            sabotage.right,
            sabotage.file,
            sabotage.does
        );
        fs::write(&file, sound.replace(sabotage.right, sabotage.wrong))?;
        let played = play(&tree, &home)?;
        fs::write(&file, sound)?;
        match found(&played) {
            Some(violation) => println!("found: an engine that {}\n       {violation}", sabotage.does),
            None => {
                println!("MISSED: an engine that {}", sabotage.does);
                missed.push(sabotage.does);
            }
        }
    }
    let sound = play(&tree, &home)?;
    ensure!(sound.status.success(), "the sound engine breaks a rule: {}", text(&sound));
    match missed.is_empty() {
        true => {
            println!(
                "{} of {} sabotages found, and the sound engine passes",
                SABOTAGES.len(),
                SABOTAGES.len()
            );
            Ok(())
        }
        false => bail!("the simulation does not notice an engine that {}", missed.join(", or that ")),
    }
}

/// Only these crates, in a workspace of their own, so that nothing else is built.
fn copy(root: &Path, tree: &Path) -> Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    fs::create_dir_all(tree.join("host"))?;
    for folder in COPIED {
        let copied = Command::new("cp").arg("-r").arg(root.join(folder)).arg(tree.join(folder)).status()?;
        ensure!(copied.success(), "`{folder}` cannot be copied");
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let (before, rest) = manifest.split_once("members = [").context("the workspace names no members")?;
    let (_, after) = rest.split_once("[workspace.package]").context("the workspace has no package")?;
    let members = COPIED.map(|folder| format!("\"{folder}\"")).join(", ");
    fs::write(
        tree.join("Cargo.toml"),
        format!("{before}members = [{members}]\n\n[workspace.package]{after}"),
    )?;
    fs::copy(root.join("Cargo.lock"), tree.join("Cargo.lock"))?;
    Ok(())
}

fn play(tree: &Path, home: &Path) -> Result<Output> {
    let args = ["run", "--quiet", "--release", "--package", "portway-testkit", "--bin", "sim", "--"];
    let mut command = cargo(tree);
    command.env("CARGO_TARGET_DIR", home.join("built")).env("CARGO_INCREMENTAL", "0");
    Ok(command.args(args).args(["--seeds", SEEDS]).output()?)
}

/// What the auditor says, if it says something: a copy that does not build finds nothing.
fn found(played: &Output) -> Option<String> {
    let said = text(played);
    let violation = said.lines().find(|line| line.starts_with("seed ") && line.contains("breaks a rule"))?;
    (!played.status.success()).then(|| violation.chars().take(VIOLATION_CHARS_MAX).collect())
}

fn text(played: &Output) -> String {
    String::from_utf8_lossy(&played.stderr).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_to_be_wrong_stands_once_where_it_is_looked_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for Sabotage { does, file, right, .. } in SABOTAGES {
            let count = fs::read_to_string(root.join(file)).unwrap().matches(right).count();
            assert_eq!(count, 1, "{does}: `{right}` in {file}");
        }
    }
}
