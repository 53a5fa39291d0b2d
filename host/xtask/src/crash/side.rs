//! A project folder, and the engine that runs it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::PATIENCE;
use crate::demo::status;
use crate::process::{Kept, wait_until};

pub(super) struct Side {
    name: &'static str,
    portway: PathBuf,
    folder: PathBuf,
}

impl Side {
    pub(super) fn new(name: &'static str, portway: PathBuf, folder: PathBuf) -> Side {
        Side { name, portway, folder }
    }

    /// The program in the project, its words in a file beside it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.portway);
        command.current_dir(&self.folder).stdin(Stdio::null());
        let log = fs::File::options().create(true).append(true).open(self.log());
        if let Ok((out, error)) = log.and_then(|file| Ok((file.try_clone()?, file))) {
            command.stdout(out).stderr(error);
        }
        command
    }

    fn log(&self) -> PathBuf {
        self.folder.join("crash.log")
    }

    /// Adds lines to the settings of the store: for a database, the only change that a project makes.
    pub(super) fn set_in_store(&self, lines: &str) -> Result<()> {
        self.change("portway.toml", "[store]\n", &format!("[store]\n{lines}\n"))
    }

    /// Replaces what must be there.
    pub(super) fn change(&self, file: &str, old: &str, new: &str) -> Result<()> {
        let path = self.folder.join(file);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(old), "`{file}` of the example has no `{}` any more", old.trim());
        fs::write(&path, text.replace(old, new))?;
        Ok(())
    }

    pub(super) fn start(&self, words: &[&str]) -> Result<Kept> {
        Kept::spawn(self.name, self.command().args(words))
    }

    /// What the engine says of itself; none while it does not answer.
    pub(super) fn status(&self) -> Option<Value> {
        status(&self.portway, &self.folder)
    }

    pub(super) fn wait_for(&self, engine: &mut Kept, state: &str) -> Result<()> {
        let what = format!("{} is not {state}", self.name);
        self.wait(engine, &what, |status| status["engine"]["state"] == state)
    }

    /// Waits until every destination has delivered everything. What was set aside because it was in hand at
    /// three ends of the process is sent again, as a person would, out of its order: how many deliveries were.
    pub(super) fn wait_drained(&self, engine: &mut Kept) -> Result<u64> {
        self.wait_empty(engine)?;
        let resent = self.resend_suspects()?;
        if resent > 0 {
            println!("crash: {resent} were in hand at three ends of the process, and are sent again");
            self.wait_empty(engine)?;
            ensure!(self.resend_suspects()? == 0, "what was sent again is quarantined again");
        }
        Ok(resent)
    }

    fn wait_empty(&self, engine: &mut Kept) -> Result<()> {
        self.wait(engine, &format!("{} has not delivered everything", self.name), |status| {
            let destinations = destinations(status);
            // While the store is away what waits is told as it was.
            let is_known = status["store"]["away"].is_null() && !destinations.is_empty();
            is_known && destinations.iter().all(|destination| destination["waiting"] == 0)
        })
    }

    /// Nothing else is ever quarantined here.
    fn resend_suspects(&self) -> Result<u64> {
        let mut resent = 0;
        let page = self.ask(&["message", "list", "--status", "quarantined", "--limit", "500"])?;
        for message in page["items"].as_array().into_iter().flatten() {
            let id = message["id"].to_string();
            let shown = self.ask(&["message", "show", &id])?;
            let deliveries = shown["deliveries"].as_array().into_iter().flatten();
            for delivery in deliveries.filter(|delivery| delivery["state"] == "quarantined") {
                let (to, reason) =
                    (&delivery["destination"], delivery["reason"].as_str().unwrap_or_default());
                ensure!(reason.starts_with("suspect: "), "message {id} is quarantined at {to}: {reason}");
                let to = to.as_str().unwrap_or_default();
                let why = "it was in hand when it was killed";
                self.ask(&["message", "resend", &id, "--destination", to, "--reason", why])?;
                resent += 1;
            }
        }
        Ok(resent)
    }

    /// What a command says of the project.
    fn ask(&self, words: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.portway);
        let out = command.current_dir(&self.folder).args(words).arg("--json").output()?;
        let complaint = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "`portway {}` ended with {}: {complaint}", words.join(" "), out.status);
        Ok(serde_json::from_slice(&out.stdout)?)
    }

    /// Waits until every destination has delivered more than it had.
    pub(super) fn wait_delivering(&self, engine: &mut Kept) -> Result<()> {
        let mut before: Option<Vec<Option<u64>>> = None;
        self.wait(engine, &format!("{} delivers nothing", self.name), |status| {
            let sent: Vec<Option<u64>> = destinations(status)
                .iter()
                .map(|destination| destination["counts"]["sent"].as_u64())
                .collect();
            let before = before.get_or_insert_with(|| sent.clone());
            sent.iter().zip(before).all(|(now, before)| *now > *before)
        })
    }

    fn wait(&self, engine: &mut Kept, otherwise: &str, mut is_so: impl FnMut(&Value) -> bool) -> Result<()> {
        let so = wait_until(PATIENCE, || {
            engine.still_runs()?;
            Ok(self.status().is_some_and(|status| is_so(&status)))
        })?;
        ensure!(so, "{otherwise} within {PATIENCE:?}; see {}", self.log().display());
        Ok(())
    }
}

fn destinations(status: &Value) -> Vec<Value> {
    status["interfaces"][0]["destinations"].as_array().cloned().unwrap_or_default()
}
