//! Who sends and who receives, and what they have to say in the end.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use anyhow::{Result, bail};

use super::PATIENCE;
use super::ledger::Ledger;
use super::side::Side;
use crate::process::Kept;

pub(super) struct Reckoning {
    /// Of the ledgers, and of `out`, where the file destination of every engine appends.
    folder: PathBuf,
    sink: Kept,
    /// Of what was acknowledged, one for each generator.
    promised: Vec<PathBuf>,
}

impl Reckoning {
    /// Begins to receive.
    pub(super) fn new(folder: PathBuf, side: &Side, listen: &str) -> Result<Reckoning> {
        let mut command = reporting(&folder, side, "http")?;
        let args = ["sink", "--listen", listen, "--ledger"];
        let sink = Kept::spawn("the receiver", command.args(args).arg(folder.join("http-arrived.txt")))?;
        Ok(Reckoning { folder, sink, promised: Vec::new() })
    }

    pub(super) fn still_receives(&mut self) -> Result<()> {
        self.sink.still_runs()
    }

    /// A generator with keys of its own, each on one connection to one address: so a key has an order.
    pub(super) fn generator(&mut self, side: &Side, to: &str, rate: u32) -> Result<Kept> {
        let ledger = self.folder.join(format!("acknowledged-{}.txt", self.promised.len() + 1));
        let rate = rate.to_string();
        let args = ["gen", "--to", to, "--connections", "8", "--keys", "200", "--rate", &rate];
        let mut command = side.command();
        command.args(args).args(["--seconds", "86400", "--ledger"]).arg(&ledger);
        self.promised.push(ledger);
        Kept::spawn("the generator", &mut command)
    }

    /// Ends the receiver, compares what arrived with what was acknowledged, and says everything
    /// that is wrong. So many deliveries were sent again by hand, behind what came after them.
    pub(super) fn count(&mut self, side: &Side, resent: u64) -> Result<()> {
        // What the receiver misses is told after the table that says how much of it was promised.
        let received = self.sink.end(PATIENCE)?;
        let checked = reporting(&self.folder, side, "file")?
            .args(["sink", "--file"])
            .arg(self.folder.join("out/results.ndjson"))
            .arg("--ledger")
            .arg(self.arrived("file"))
            .status()?;
        let acknowledged = Ledger::read(&self.promised)?;
        println!(
            "{:<14} {:>12} {:>10} {:>8} {:>13} {:>9}",
            "", "acknowledged", "arrived", "lost", "out of order", "repeated"
        );
        let mut broken = Vec::new();
        if acknowledged.count() == 0 {
            broken.push("nothing was acknowledged".to_owned());
        }
        for (name, ended) in [("http", received), ("file", checked)] {
            broken.extend(self.compare(name, &acknowledged, ended, resent)?);
        }
        if broken.is_empty() {
            return Ok(());
        }
        let kept = self.folder.display();
        bail!("a promise was broken:\n{}\neverything is kept in {kept}", broken.join("\n"))
    }

    /// Prints the line of one receiver; says what is wrong with it.
    fn compare(
        &self,
        name: &str,
        acknowledged: &Ledger,
        ended: ExitStatus,
        resent: u64,
    ) -> Result<Vec<String>> {
        let arrived = Ledger::read(&[self.arrived(name)])?;
        let lost = acknowledged.missing_in(&arrived);
        let (acks, all, late) = (acknowledged.count(), arrived.count(), arrived.out_of_order);
        println!("{name:<14} {acks:>12} {all:>10} {:>8} {late:>13} {:>9}", lost.len(), arrived.repeated);
        let mut broken = Vec::new();
        if !lost.is_empty() || late > resent {
            let first: Vec<&str> = lost.iter().take(10).map(String::as_str).collect();
            broken.push(format!("{name}: {} lost {first:?}, {late} out of order", lost.len()));
        }
        // It counts what is sent again by hand as out of order.
        if !ended.success() && resent == 0 {
            let said = fs::read_to_string(report(&self.folder, name)).unwrap_or_default();
            broken.push(format!("{name}: `portway sink` ended with {ended} and said: {}", said.trim()));
        }
        Ok(broken)
    }

    fn arrived(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-arrived.txt"))
    }
}

/// A command whose report is kept apart from its complaints.
fn reporting(folder: &std::path::Path, side: &Side, name: &str) -> Result<Command> {
    let mut command = side.command();
    command.stdout(fs::File::create(report(folder, name))?);
    Ok(command)
}

fn report(folder: &std::path::Path, name: &str) -> PathBuf {
    folder.join(format!("{name}-report.txt"))
}
