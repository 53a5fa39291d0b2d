//! A second server that streams from a first one and confirms what it commits, until it takes its place.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::cluster::Cluster;
use crate::files::run;

/// The name a standby is known by to its primary.
const NAME: &str = "standby";
/// How long two servers may take to agree.
const PATIENCE: Duration = Duration::from_secs(60);

impl Cluster {
    /// A standby of this server. From now on a commit here counts once it is there.
    pub fn start_standby(&self) -> Result<Cluster> {
        let standby = self.beside(|account, programs, data| {
            let mut copy = account.command(&programs.path("pg_basebackup"));
            copy.args(["-U", "postgres", "-X", "stream", "-c", "fast", "--no-sync"]);
            copy.arg("-h").arg(self.socket_folder()).arg("-p").arg(self.port().to_string());
            run(copy.arg("-D").arg(data))?;
            let settings = OpenOptions::new().append(true).open(data.join("postgresql.auto.conf"));
            let folder = self.socket_folder().display();
            let from = format!("host={folder} port={} user=postgres application_name={NAME}", self.port());
            writeln!(settings.context("a copy has no settings")?, "primary_conninfo = '{from}'")?;
            let signal = data.join("standby.signal");
            fs::write(&signal, "")?;
            account.give(&signal)
        })?;
        self.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{NAME}'"))?;
        self.sql("SELECT pg_reload_conf()")?;
        self.wait_until_synchronous()?;
        Ok(standby)
    }

    /// Waits until a standby confirms commits.
    pub fn wait_until_synchronous(&self) -> Result<()> {
        self.wait_until("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")
    }

    /// No commit here waits for a standby any more.
    pub fn stand_alone(&self) -> Result<()> {
        self.sql("ALTER SYSTEM RESET synchronous_standby_names")?;
        self.sql("SELECT pg_reload_conf()").map(drop)?;
        self.wait_until("SHOW synchronous_standby_names", "")
    }

    /// Makes a standby take writes, whatever became of its primary.
    pub fn promote(&self) -> Result<()> {
        run(self.pg_ctl().args(["-w", "-t", "60", "promote"])).map(drop)
    }

    /// Asks until a statement answers this.
    fn wait_until(&self, sql: &str, wanted: &str) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.sql(sql)?;
            if answer == wanted {
                return Ok(());
            }
            ensure!(Instant::now() < end, "not within {PATIENCE:?}: `{sql}` answers `{answer}`");
            // Before the next look: a server gives no sign.
            sleep(Duration::from_millis(20));
        }
    }
}
