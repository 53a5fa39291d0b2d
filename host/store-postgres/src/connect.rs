//! Connecting: how a session is made ready, and which sessions may write.

use std::sync::Arc;
use std::time::Duration;

use portway_store::{ErrorKind, StoreError};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgRow};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{Failed, breaks};
use crate::query::{Session, value};
use crate::relay;
use crate::servers::{ORIGIN, Origin, Servers};
use crate::settings::PostgresSettings;

/// What the client waits for an answer beyond the time the server gives itself.
const GRACE: Duration = Duration::from_secs(5);
/// Once a server that accepts writes has answered, the others have so long to do so.
const OTHERS_MAX: Duration = Duration::from_secs(1);
const CONNECT: &str = "connect to the database";
/// Prepared statements kept by a session: more than there are.
const STATEMENTS: usize = 256;

/// Makes sessions.
#[derive(Clone)]
pub(crate) struct Connector {
    servers: Arc<Servers>,
    connect_max: Duration,
    statement_max: Duration,
}

impl Connector {
    pub(crate) fn new(settings: &PostgresSettings) -> Result<Self, sqlx::Error> {
        let name = format!("portway {}", settings.engine);
        // Numbers come in binary here, and a proxy that pools refuses what it does not know.
        let common = |options: PgConnectOptions| {
            let options = options.application_name(&name).extra_float_digits(None);
            options.statement_cache_capacity(STATEMENTS).disable_statement_logging()
        };
        Ok(Connector {
            servers: Arc::new(Servers::parse(&settings.url)?.with(common)),
            connect_max: settings.connect_max,
            statement_max: settings.statement_max,
        })
    }

    /// Where the database is, for people: without a password.
    pub(crate) fn place(&self) -> String {
        self.servers.place()
    }

    /// For a connection that the driver itself keeps: to the server that served last. Who uses it asks it for
    /// its [`ORIGIN`] and hands the row to [`Connector::admit`].
    pub(crate) fn options(&self) -> Result<PgConnectOptions, StoreError> {
        let nowhere = || StoreError::new(ErrorKind::Unavailable, "the address names no server");
        self.servers.preferred().ok_or_else(nowhere)
    }

    /// How long connecting to a server may take.
    pub(crate) fn connect_max(&self) -> Duration {
        self.connect_max
    }

    /// A session as the server makes it, with the first of the servers that accepts writes and was not left
    /// behind by a failover.
    pub(crate) async fn connect_plain(&self) -> Result<Session, Failed> {
        let mut telling = Failed::read_only(CONNECT);
        for index in self.servers.order() {
            let failed = match self.ask(index).await {
                Ok((session, origin)) => match self.servers.admit(origin) {
                    Ok(()) => {
                        self.servers.prefer(index);
                        return Ok(session);
                    }
                    Err(error) => error.into(),
                },
                Err(failed) => failed,
            };
            if telling.is_read_only() {
                telling = failed;
            }
        }
        Err(telling)
    }

    /// Where the address names several servers: asks all of them, so that the next session is with the one
    /// on the newest timeline. Two may accept writes when one was left behind.
    pub(crate) async fn look_around(&self) {
        if self.servers.count() < 2 {
            return;
        }
        let mut asked = JoinSet::new();
        for index in self.servers.order() {
            let connector = self.clone();
            asked.spawn(async move { (index, connector.ask(index).await.map(|(_, origin)| origin)) });
        }
        let (mut found, mut end) = (Vec::new(), Instant::now() + self.connect_max);
        while let Ok(Some(answer)) = timeout_at(end, asked.join_next()).await {
            if let Ok((index, Ok(origin))) = answer {
                found.push((index, origin));
                end = end.min(Instant::now() + OTHERS_MAX);
            }
        }
        if found.len() > 1 {
            tracing::warn!(
                servers = found.len(),
                "several servers of the address accept writes, the newest is used: stop the others"
            );
        }
        found.sort_by_key(|(index, _)| *index);
        self.servers.prefer_newest(&found);
    }

    /// A session with one server that accepts writes, and which database that is.
    async fn ask(&self, index: usize) -> Result<(Session, Option<Origin>), Failed> {
        let Some(server) = self.servers.get(index) else { return Err(Failed::read_only(CONNECT)) };
        let connection = relay::connect(&server.options, &server.is_plain);
        let connection = timeout(self.connect_max, connection).await;
        let connection = connection.map_err(|_| Failed::slow(CONNECT))?;
        let connection = connection.map_err(|error| Failed::sql(CONNECT, error))?;
        let mut session = Session::new(connection, self.connect_max);
        let origin = origin(&mut session).await?;
        Ok((session, origin))
    }

    /// Whether a session is there, and with a server that may still be used.
    pub(crate) async fn verify(&self, session: &mut Session) -> Result<(), Failed> {
        let origin = origin(session).await?;
        Ok(self.servers.admit(origin)?)
    }

    /// The same for the answer to [`ORIGIN`].
    pub(crate) fn admit(&self, answer: Result<PgRow, sqlx::Error>) -> Result<(), Failed> {
        match answer {
            Ok(row) => Ok(self.servers.admit(Origin::read(&row)?)?),
            Err(error) if !breaks(&error) => Ok(()),
            Err(error) => Err(Failed::sql(CONNECT, error)),
        }
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

/// Servers of other makes may not tell it.
async fn origin(session: &mut Session) -> Result<Option<Origin>, Failed> {
    match session.plain_row("ask the server which it is", ORIGIN, |row| Ok(Origin::read(row))).await {
        Ok(origin) => origin,
        Err(_) if !session.is_broken => Ok(None),
        Err(failed) => Err(failed),
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
/// A server that began anew, or one that took its place, may not know the last numbers that the one before
/// gave: those of transactions that were not flushed, or did not reach it. An engine may still have such a
/// message in hand, whose number must not be given to another. Whoever writes first passes over more of them
/// than can have been under way; the others wait for that.
const PASS_OVER: &str = "WITH begun AS (
        UPDATE server SET started_at = pg_postmaster_start_time()
            WHERE started_at <> pg_postmaster_start_time() RETURNING one)
    SELECT setval('message_ids', (SELECT last_value FROM message_ids) + 1048576) FROM begun";
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
    let what = "become the session that writes";
    let known = session.execute(what, sqlx::query(KNOW_ENGINE).bind(engine)).await?;
    session.execute(what, sqlx::query(PASS_OVER)).await?;
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
