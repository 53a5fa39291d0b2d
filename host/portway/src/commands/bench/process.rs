//! An engine in a process of its own, seen from outside.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// A running engine; ended with this.
pub struct EngineProcess {
    child: Child,
    /// From the start of the process to the first answer that it is running.
    pub ready_after: Duration,
}

impl EngineProcess {
    pub async fn start(project: &Path, admin: SocketAddr, patience: Duration) -> Result<EngineProcess> {
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let log = std::fs::File::create(project.join("engine.log"))?;
        let mut command = Command::new(program);
        command.args(["run", "--project"]).arg(project).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let began = Instant::now();
        let mut child = command.spawn()?;
        loop {
            if is_running(admin).await {
                return Ok(EngineProcess { child, ready_after: began.elapsed() });
            }
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(project.join("engine.log")).unwrap_or_default();
                bail!("the engine ended with {status}:\n{log}");
            }
            if began.elapsed() > patience {
                bail!("the engine was not ready within {patience:?}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Resident memory, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        let id = self.child.id().context("the engine has ended")?;
        let text = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }

    /// Processor time used so far.
    pub fn processor_time(&self) -> Result<Duration> {
        let id = self.child.id().context("the engine has ended")?;
        let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name in parentheses may hold anything; fields are counted after it.
        let after = text.rsplit_once(')').map(|(_, rest)| rest).context("no fields")?;
        let mut fields = after.split_whitespace().skip(11);
        let mut ticks = || -> Result<u64> { Ok(fields.next().context("no time")?.parse()?) };
        let total = ticks()? + ticks()?;
        Ok(Duration::from_secs_f64(total as f64 / rustix::param::clock_ticks_per_second() as f64))
    }

    /// The memory once it has not grown for two seconds.
    pub async fn settled_bytes(&self, patience: Duration) -> Result<u64> {
        let began = Instant::now();
        let (mut highest, mut since) = (0, Instant::now());
        loop {
            let bytes = self.resident_bytes()?;
            if bytes > highest + (256 << 10) {
                (highest, since) = (bytes, Instant::now());
            }
            if since.elapsed() > Duration::from_secs(2) || began.elapsed() > patience {
                return Ok(bytes.max(highest));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// SIGTERM, and the end in order.
    pub async fn stop(mut self, patience: Duration) -> Result<()> {
        if let Some(id) =
            self.child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?))
        {
            rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        }
        tokio::time::timeout(patience, self.child.wait()).await.context("the engine does not stop")??;
        Ok(())
    }
}

/// Asks `/health`, without a client library's start-up in the measured time.
async fn is_running(admin: SocketAddr) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(admin).await.ok()?;
        let request = format!("GET /health HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer.contains("\"running\""))
    };
    tokio::time::timeout(Duration::from_secs(1), ask).await.ok().flatten().unwrap_or(false)
}
