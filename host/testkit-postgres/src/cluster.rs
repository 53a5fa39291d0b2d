//! A running server with a data folder of its own.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::account::Account;
use crate::disk::{SmallDisk, unmount};
use crate::files::run;
use crate::programs::Programs;

/// Beginning of the names of folders; the process that made it follows.
const PREFIX: &str = "portway-postgres-";
/// Where a small disk is mounted, in the folder of a cluster.
const SMALL: &str = "small";
/// Its size: what a new cluster takes, and a little for what a test stores.
const SMALL_BYTES: u64 = 160 << 20;
/// A port can be taken by somebody else between looking and listening.
const TRIES: usize = 5;

/// What is special about a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterSettings {
    /// Flushes what it commits. Tests kill servers, not machines: they need no flush.
    pub flushes: bool,
    /// Speaks TLS with this certificate.
    pub certificate: Option<ServerCertificate>,
    /// Who may come in, as in `pg_hba.conf`; none: everybody from this machine.
    pub access: Option<String>,
    /// What is on a small file system of its own, which needs root.
    pub small: Option<Small>,
    /// Is no copy of what all others are copies of, so that it has a number of its own.
    pub is_distinct: bool,
    /// More lines of `postgresql.conf`.
    pub lines: Vec<String>,
}

/// A part of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Small {
    /// The tables, but not the log: a full disk is an error of a statement.
    Data,
    /// The log alone: a full disk ends the server.
    Log,
}

/// A certificate and its key, both in PEM.
#[derive(Clone, Debug)]
pub struct ServerCertificate {
    pub certificate: String,
    pub key: String,
}

/// A server that is stopped, and whose files are removed, when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    programs: Programs,
    account: Account,
    port: u16,
    small: Option<SmallDisk>,
    /// Last: removed after the server stopped.
    folder: TempDir,
}

impl Cluster {
    /// A new cluster, started.
    pub fn start(programs: &Programs, settings: &ClusterSettings) -> Result<Cluster> {
        let account = Account::choose()?;
        remove_leftovers(programs, &account);
        let mut cluster = Cluster::with_data(programs, account, |account, programs, data| {
            match settings.is_distinct {
                true => programs.make_new_data(account, data)?,
                false => programs.make_data(account, data)?,
            }
            configure(account, data, settings)
        })?;
        if let Some(small) = settings.small {
            cluster.put_on_small_disk(small)?;
        }
        cluster.begin()
    }

    /// Another one of the same kind, with other data.
    pub(crate) fn beside(
        &self,
        make_data: impl FnOnce(&Account, &Programs, &Path) -> Result<()>,
    ) -> Result<Cluster> {
        Cluster::with_data(&self.programs, self.account, make_data)?.begin()
    }

    fn with_data(
        programs: &Programs,
        account: Account,
        make_data: impl FnOnce(&Account, &Programs, &Path) -> Result<()>,
    ) -> Result<Cluster> {
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let own = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(&prefix).permissions(own).tempdir()?;
        account.give(folder.path())?;
        let cluster = Cluster { programs: programs.clone(), account, port: 0, small: None, folder };
        make_data(&account, programs, &cluster.data())?;
        fs::set_permissions(cluster.data(), Permissions::from_mode(0o700))?;
        Ok(cluster)
    }

    /// Starts it for the first time, on a port that is free.
    fn begin(mut self) -> Result<Cluster> {
        for _ in 1..TRIES {
            self.port = free_port()?;
            if self.start_again().is_ok() {
                return Ok(self);
            }
        }
        self.port = free_port()?;
        self.start_again()?;
        Ok(self)
    }

    /// Where it listens on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of its first database, over TCP.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The address of its first database, over its socket.
    pub fn socket_url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}:{}/postgres", self.port)
    }

    /// What the server wrote into its log.
    pub fn log(&self) -> Result<String> {
        let path = self.folder.path().join("log");
        let log = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// What a part of it is on, if that was asked for.
    pub fn small_disk(&self) -> Option<&SmallDisk> {
        self.small.as_ref()
    }

    /// Whether there is a server that says it lives.
    pub fn is_running(&self) -> bool {
        run(self.pg_ctl().arg("status")).is_ok()
    }

    /// As a power switch would, but for what the operating system holds: nothing is ended in order.
    pub fn stop_hard(&self) -> Result<()> {
        self.stop("immediate")
    }

    /// Ends every session, then the server.
    pub fn stop_fast(&self) -> Result<()> {
        self.stop("fast")
    }

    /// Starts it again, on the same port.
    pub fn start_again(&self) -> Result<()> {
        let socket = self.folder.path().display();
        let options = format!("-p {} -k {socket} -c listen_addresses=127.0.0.1", self.port);
        let log = self.folder.path().join("log");
        let started =
            run(self.pg_ctl().arg("-l").arg(&log).arg("-o").arg(options).args(["-w", "-t", "60", "start"]));
        match started {
            Ok(_) => Ok(()),
            Err(error) => {
                let log = fs::read_to_string(log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(8).collect();
                Err(error.context(format!("the server said: {}", tail.join(" | "))))
            }
        }
    }

    /// Runs statements with the server's own client, beside whatever is tested; answers its rows.
    pub fn sql(&self, sql: &str) -> Result<String> {
        let output = run(self.client()?.arg("-c").arg(sql))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The server's own client, about to be started: it reads statements and prints bare rows.
    pub fn client(&self) -> Result<std::process::Command> {
        let client = self.programs.path("psql");
        if !client.is_file() {
            bail!("`{}` is not there", client.display());
        }
        let mut command = self.account.command(&client);
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres"]);
        command.arg("-h").arg(self.folder.path()).arg("-p").arg(self.port.to_string());
        Ok(command)
    }

    /// Moves a part elsewhere and leaves a link, before the first start.
    fn put_on_small_disk(&mut self, part: Small) -> Result<()> {
        let (at, data) = (self.folder.path().join(SMALL), self.data());
        fs::create_dir(&at)?;
        let disk = SmallDisk::mount(&at, SMALL_BYTES)?;
        let (log, elsewhere) = (data.join("pg_wal"), self.folder.path().join("log-of-writes"));
        let moves = match part {
            Small::Log => vec![(log, at.join("pg_wal"))],
            Small::Data => vec![(log, elsewhere), (data, at.join("data"))],
        };
        for (from, to) in moves {
            move_folder(&from, &to)?;
            std::os::unix::fs::symlink(&to, &from)?;
        }
        self.account.give(self.folder.path())?;
        self.small = Some(disk);
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn pg_ctl(&self) -> std::process::Command {
        let mut command = self.account.command(&self.programs.path("pg_ctl"));
        command.arg("-D").arg(self.data());
        command
    }

    fn stop(&self, mode: &str) -> Result<()> {
        run(self.pg_ctl().args(["-m", mode, "-w", "-t", "60", "stop"])).map(drop)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be stopped already; and there is nobody to tell.
        let _ = self.stop_hard();
    }
}

/// Moves a folder, also to another file system.
fn move_folder(from: &Path, to: &Path) -> Result<()> {
    run(std::process::Command::new("mv").arg(from).arg(to)).map(drop)
}

/// What is special about it goes into its files.
fn configure(account: &Account, data: &Path, settings: &ClusterSettings) -> Result<()> {
    let mut lines = settings.lines.clone();
    lines.push("logging_collector = off".into());
    if !settings.flushes {
        // Images of whole pages stay: a server that does not end soon enough is killed, in the middle of a page.
        lines.push("fsync = off".into());
    }
    if let Some(ServerCertificate { certificate, key }) = &settings.certificate {
        write(account, data, "server.crt", certificate)?;
        write(account, data, "server.key", key)?;
        lines.push("ssl = on".into());
    }
    if let Some(access) = &settings.access {
        write(account, data, "pg_hba.conf", access)?;
    }
    let path = data.join("postgresql.conf");
    let mut file = fs::OpenOptions::new().append(true).open(&path)?;
    writeln!(file, "{}", lines.join("\n")).with_context(|| format!("cannot write `{}`", path.display()))
}

fn write(account: &Account, data: &Path, name: &str, text: &str) -> Result<()> {
    let path = data.join(name);
    fs::write(&path, format!("{text}\n"))?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    account.give(&path)
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Stops and removes what a test left that was killed before it could.
fn remove_leftovers(programs: &Programs, account: &Account) {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let pid = rest.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
        let is_dead = pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if is_dead && Path::new("/proc/self").exists() {
            let data = entry.path().join("data");
            let mut stop = account.command(&programs.path("pg_ctl"));
            let _ = run(stop.arg("-D").arg(data).args(["-m", "immediate", "-w", "stop"]));
            unmount(&entry.path().join(SMALL));
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
