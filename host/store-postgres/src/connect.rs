//! Connecting: how a session is made ready, and which sessions may write.

use std::time::Duration;

use portway_store::{ErrorKind, StoreError};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use crate::error::Failed;
use crate::query::{Session, value};
use crate::relay;
use crate::settings::PostgresSettings;

/// What the client waits for an answer beyond the time the server gives itself.
const GRACE: Duration = Duration::from_secs(5);
/// Prepared statements kept by a session: more than there are.
const STATEMENTS: usize = 256;

/// Makes sessions.
#[derive(Clone)]
pub(crate) struct Connector {
    options: PgConnectOptions,
    connect_max: Duration,
    statement_max: Duration,
}

impl Connector {
    pub(crate) fn new(settings: &PostgresSettings) -> Result<Self, sqlx::Error> {
        let is_ours = ["postgres://", "postgresql://"].iter().any(|scheme| settings.url.starts_with(scheme));
        if !is_ours {
            return Err(sqlx::Error::Configuration("it does not begin with `postgres://`".into()));
        }
        let options: PgConnectOptions = settings.url.parse()?;
        let name = format!("portway {}", settings.engine);
        Ok(Connector {
            options: options
                .application_name(&name)
                .statement_cache_capacity(STATEMENTS)
                .disable_statement_logging(),
            connect_max: settings.connect_max,
            statement_max: settings.statement_max,
        })
    }

    /// Where the database is, for people: without a password.
    pub(crate) fn place(&self) -> String {
        let host = match self.options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => self.options.get_host().to_owned(),
        };
        let database = self.options.get_database().unwrap_or_else(|| self.options.get_username());
        format!("{}@{host}:{}/{database}", self.options.get_username(), self.options.get_port())
    }

    /// For a connection that the driver itself keeps.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// How long connecting may take.
    pub(crate) fn connect_max(&self) -> Duration {
        self.connect_max
    }

    /// A session as the server makes it.
    pub(crate) async fn connect_plain(&self) -> Result<Session, Failed> {
        let what = "connect to the database";
        let connection = timeout(self.connect_max, relay::connect(&self.options)).await;
        let connection = connection.map_err(|_| Failed::slow(what))?;
        let connection = connection.map_err(|error| Failed::sql(what, error))?;
        Ok(Session::new(connection, self.connect_max))
    }

    /// A session that is ready for the statements of this store.
    pub(crate) async fn connect(&self) -> Result<Session, Failed> {
        let mut session = self.connect_plain().await?;
        let statement_ms = self.statement_max.as_millis();
        let script = format!("{SETTINGS}; SET statement_timeout = {statement_ms}");
        session.script("make a session ready", sqlx::AssertSqlSafe(script)).await?;
        session.answer_max = self.statement_max + GRACE;
        Ok(session)
    }
}

/// Allows the statements of a session another time.
pub(crate) async fn limit_statements(session: &mut Session, statement_max: Duration) -> Result<(), Failed> {
    let script = format!("SET statement_timeout = {}", statement_max.as_millis());
    session.script("allow statements another time", sqlx::AssertSqlSafe(script)).await?;
    session.answer_max = statement_max + GRACE;
    Ok(())
}

/// Every statement here is written for one plan, which goes by indexes: it is made once a session and must
/// not depend on what the server believes about tables that were empty yesterday. The sockets of a machine
/// that vanished are noticed within half a minute, so that its locks go. A commit is flushed unless its
/// transaction says otherwise.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET jit = off;
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET enable_hashagg = off; SET enable_material = off;
    SET enable_memoize = off; SET max_parallel_workers_per_gather = 0;
    SET client_min_messages = error; SET default_transaction_isolation = 'read committed';
    SET idle_in_transaction_session_timeout = '60s'; SET idle_session_timeout = 0;
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off'";

/// Who holds a name.
const END_FORMER: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid = $2
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::int8 << 32 | objid::int8) = hashtextextended(current_schema() || ': ' || $1, 0)";
const TAKE_NAME: &str =
    "SELECT pg_advisory_lock(hashtextextended(current_schema() || ': ' || $1, 0)), pg_backend_pid()";
const KNOW_ENGINE: &str = "INSERT INTO last_write (engine, mark, outcome) VALUES ($1, 0, ''::bytea)
    ON CONFLICT DO NOTHING";

/// A session that may write.
pub(crate) struct Becoming {
    /// The number of its process in the server.
    pub(crate) pid: i32,
    /// Nobody wrote under this name before, or it was forgotten.
    pub(crate) is_new: bool,
}

/// Takes the name of an engine for a session, which then may write. While another session has the name nobody else writes under it; so whoever has it knows that the
/// last transaction of the former session is decided.
pub(crate) async fn become_writer(
    session: &mut Session,
    engine: &str,
    former: Option<i32>,
    wait: Duration,
) -> Result<Becoming, Failed> {
    let pid = take_name(session, &format!("engine {engine}"), former, wait).await?;
    let known =
        session.execute("become the session that writes", sqlx::query(KNOW_ENGINE).bind(engine)).await?;
    Ok(Becoming { pid, is_new: known > 0 })
}

/// Takes a name, which one session at a time has, until it ends; answers the number of its process in the
/// server. `former` is a session of this very process that had it: it is ended.
pub(crate) async fn take_name(
    session: &mut Session,
    name: &str,
    former: Option<i32>,
    wait: Duration,
) -> Result<i32, Failed> {
    let what = "take the name of the engine";
    if let Some(former) = former {
        // Whoever may not do that waits for it to end by itself.
        let ended = session.execute(what, sqlx::query(END_FORMER).bind(name).bind(former)).await;
        if ended.is_err() && session.is_broken {
            ended?;
        }
    }
    let limit = format!("SET lock_timeout = {}", wait.as_millis());
    session.script(what, sqlx::AssertSqlSafe(limit)).await?;
    let usual = std::mem::replace(&mut session.answer_max, wait + GRACE);
    let taken = session.read_one(what, sqlx::query(TAKE_NAME).bind(name), |row| value(row, 1)).await;
    session.answer_max = usual;
    let pid = taken?.ok_or_else(|| StoreError::new(ErrorKind::Unavailable, "the server has no processes"))?;
    session.script(what, "SET lock_timeout = 0").await?;
    Ok(pid)
}
