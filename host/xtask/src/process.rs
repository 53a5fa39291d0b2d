//! Child processes: run to the end, or kept and ended by their id.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Cargo in the project's root, the one that runs this program.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs a command whose output the user sees; anything but success is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{shown} ended with {status}"),
    }
}

/// A child that is ended when this goes out of scope, however that happens.
pub struct Kept {
    pub child: Child,
    name: &'static str,
}

impl Kept {
    pub fn spawn(name: &'static str, command: &mut Command) -> Result<Kept> {
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Kept { child, name })
    }

    /// SIGTERM, then waits for an end in order, which must be a good one.
    pub fn stop(&mut self, patience: Duration) -> Result<()> {
        let status = self.end(patience)?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }

    /// SIGTERM, then waits for the end, good or not; kills after `patience`.
    pub fn end(&mut self, patience: Duration) -> Result<ExitStatus> {
        let id = self.child.id().to_string();
        run(Command::new("kill").args(["-TERM", &id]))?;
        let mut ended = None;
        wait_until(patience, || {
            ended = self.child.try_wait()?;
            Ok(ended.is_some())
        })?;
        if ended.is_none() {
            self.kill()?;
        }
        ended.with_context(|| format!("{} did not stop within {patience:?}", self.name))
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// An error if it has ended by itself.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}", self.name),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have ended already; nothing can be done about an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks until it is so or `patience` is over; says which.
pub fn wait_until(patience: Duration, mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    let end = Instant::now() + patience;
    loop {
        if is_so()? {
            return Ok(true);
        }
        if Instant::now() > end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
