//! pgbouncer, a proxy that lends the sessions of a server to its clients: found, or installed.

use std::fs::{self, File, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::account::Account;
use crate::cluster::{Cluster, free_port};
use crate::packages;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where Debian puts it is not on everybody's search path.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// How long a client has a session of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    /// As long as it is connected.
    Session,
    Transaction,
    Statement,
}

/// A proxy that is stopped when this is dropped.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Pooler {
    /// Before a server, with the settings that its package comes with but for how it lends.
    pub fn start(server: &Cluster, lending: Lending) -> Result<Pooler> {
        let (program, account) = (program()?, Account::choose()?);
        let own = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("portway-pooler-").permissions(own).tempdir()?;
        let port = free_port()?;
        let mode = match lending {
            Lending::Session => "session",
            Lending::Transaction => "transaction",
            Lending::Statement => "statement",
        };
        let settings = folder.path().join("pgbouncer.ini");
        let socket = server.socket_folder().display();
        fs::write(
            &settings,
            format!(
                "[databases]\npostgres = host={socket} port={} user=postgres\n[pgbouncer]\npool_mode = {mode}\n\
                 listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n",
                server.port()
            ),
        )?;
        account.give(folder.path())?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = account.command(&program);
        command.arg(&settings).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = command.spawn().with_context(|| format!("cannot start `{}`", program.display()))?;
        let mut pooler = Pooler { process, port, folder };
        pooler.wait_until_it_listens()?;
        Ok(pooler)
    }

    /// The address of the server's first database through it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if self.process.try_wait()?.is_some() || Instant::now() > end {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("the proxy does not listen: {log}");
            }
            // Before the next look: another process gives no sign.
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if !packages::may_install() {
        bail!("this test needs pgbouncer: install it, or run the test as root where `apt-get` is");
    }
    packages::install("pgbouncer", || Ok(find().is_some()))?;
    find().context("`apt-get` installed no pgbouncer")
}

fn find() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&on_path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}
