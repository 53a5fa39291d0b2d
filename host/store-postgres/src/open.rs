//! Opening a store: what is refused, and the order of the checks.
//!
//! First whether this is a server that can be used, and reached directly; then the tables; then the name of
//! the engine, which one session at a time has; then the partitions of the next days.

use std::sync::Arc;

use portway_model::code;
use portway_store::StoreError;

use crate::connect::Connector;
use crate::error::Failed;
use crate::partition::{self, Patience};
use crate::query::{Session, value};
use crate::readers::Readers;
use crate::schema::{self, Beside, Unfit};
use crate::settings::{PostgresSettings, SettingsError};
use crate::tenure::Tenures;
use crate::writer::{Shared, Writer};

/// The oldest server that is known to work, as it tells its version.
const VERSION_MIN: i32 = 150_000;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("the address of the database cannot be read")]
    Address {
        #[source]
        source: sqlx::Error,
    },
    #[error("the database `{place}` cannot be reached")]
    Unreachable {
        place: String,
        #[source]
        source: Box<StoreError>,
    },
    #[error("no safe connection to the database `{place}` comes about")]
    Tls {
        place: String,
        #[source]
        source: sqlx::Error,
    },
    #[error("the database `{place}` does not let this user in: {text}")]
    Login { place: String, text: String },
    #[error("there is no such database: {text}")]
    NoDatabase { text: String },
    #[error("the server of `{place}` has version {found}, at least 15 is needed")]
    TooOld { place: String, found: String },
    #[error("`{place}` is a proxy that gives each transaction another session")]
    Proxy { place: String },
    #[error("the server of `{place}` is a standby, or accepts no writes")]
    ReadOnly { place: String },
    #[error("the user of `{place}` may not do what is needed: {text}")]
    Permission { place: String, text: String },
    #[error("`{place}` has no schema to put tables into")]
    NoSchema { place: String },
    #[error("the tables of `{place}` were made by another text of migration `{name}`")]
    Changed { place: String, name: String },
    #[error(
        "the tables of `{place}` were changed by a newer program (`{name}`), and this one cannot work on them"
    )]
    Newer { place: String, name: String },
    #[error("somebody holds a lock on the tables of `{place}`, so they cannot be brought up to date")]
    Locked { place: String },
    #[error("another engine with the name `{engine}` uses `{place}`")]
    InUse { place: String, engine: String },
    #[error("the tables of `{place}` cannot be brought up to date while engines use them: {}", engines.join(", "))]
    Busy { place: String, engines: Vec<String> },
    #[error("there are no tables in `{place}` yet")]
    Missing { place: String },
    #[error("cannot open the store `{place}`")]
    Store {
        place: String,
        #[source]
        source: Box<StoreError>,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            OpenError::Settings(_) => "change the setting",
            OpenError::Address { .. } => "write it as `postgres://user:password@host:port/database`",
            OpenError::Unreachable { .. } => "check host, port and firewall, and that the server runs",
            OpenError::Tls { .. } => {
                "check `sslmode`, `sslrootcert` and the name in the server's certificate"
            }
            OpenError::Login { .. } => "check user, password and the server's `pg_hba.conf`",
            OpenError::NoDatabase { .. } => "create it with `createdb`, or name another one",
            OpenError::TooOld { .. } => "use PostgreSQL 15 or newer",
            OpenError::Proxy { .. } => "name the server itself, or let the proxy pool by session",
            OpenError::ReadOnly { .. } => "name the primary",
            OpenError::Permission { .. } => "let the user create and own the tables of its schema",
            OpenError::NoSchema { .. } => "create a schema and name it in the user's `search_path`",
            OpenError::Changed { .. } => "use the program that made them, or another schema",
            OpenError::Newer { .. } => "use the newer program, or a backup",
            OpenError::Locked { .. } => "end long transactions and reports, then try again",
            OpenError::InUse { .. } => "stop the other engine, or give each its own name",
            OpenError::Busy { .. } => "stop them first",
            OpenError::Missing { .. } => "`portway run` makes them",
            OpenError::Store { .. } => "look at the log of the server",
        }
    }

    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            OpenError::InUse { .. } | OpenError::Busy { .. } => code::STORE_IN_USE,
            OpenError::Newer { .. } => code::STORE_NEWER,
            OpenError::Changed { .. } => code::STORE_FOREIGN,
            _ => code::STORE_NOT_OPENED,
        }
    }
}

/// What a store is made of.
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tenure: Tenures,
    pub(crate) writer: Writer,
}

pub(crate) async fn open(settings: &PostgresSettings) -> Result<Opened, OpenError> {
    let (connector, place) = reach(settings).await?;
    let mut session = connector.connect().await.map_err(|failed| classify(failed, &place))?;
    prepare(&mut session, &place, Beside::WhoeverCan, settings).await?;
    session.close().await;
    let shared = Arc::new(Shared {
        readers: Readers::new(connector.clone(), settings.readers, settings.statement_max),
        connector,
        days: crate::day::Days::default(),
        housekeeping: crate::maintenance::Housekeeping::default(),
        told: crate::news::Told::default(),
        notes: std::sync::Mutex::default(),
        step: tokio::sync::Mutex::default(),
    });
    let mut writer = Writer::new(Arc::clone(&shared), &settings.engine, settings.takeover_max);
    match writer.connect().await {
        Ok(session) => writer.keep(session),
        Err(failed) if failed.is_locked_out() => {
            return Err(OpenError::InUse { place, engine: settings.engine.clone() });
        }
        Err(failed) => return Err(classify(failed, &place)),
    }
    let tenure = Tenures::new(Arc::clone(&shared), &settings.engine, settings.takeover_max);
    Ok(Opened { shared, tenure, writer })
}

/// A server that can be used and is reached directly; where it is.
pub(crate) async fn reach(settings: &PostgresSettings) -> Result<(Connector, String), OpenError> {
    settings.check()?;
    let connector = Connector::new(settings).map_err(|source| OpenError::Address { source })?;
    let place = connector.place();
    connector.look_around().await;
    let mut session = connector.connect_plain().await.map_err(|failed| classify(failed, &place))?;
    check_server(&mut session, &place).await?;
    check_sessions(&connector, &mut session, &place).await?;
    session.close().await;
    Ok((connector, place))
}

const SERVER: &str = "SELECT current_setting('server_version_num')::int4, current_setting('server_version'),
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', current_schema() IS NOT NULL";

async fn check_server(session: &mut Session, place: &str) -> Result<(), OpenError> {
    let about = session.plain_row("ask the server what it is", SERVER, |row| {
        Ok((value::<i32>(row, 0)?, value::<String>(row, 1)?, value::<bool>(row, 2)?, value::<bool>(row, 3)?))
    });
    let (version, found, is_read_only, has_schema) = about.await.map_err(|failed| classify(failed, place))?;
    let place = place.to_owned();
    if version < VERSION_MIN {
        return Err(OpenError::TooOld { place, found });
    }
    if is_read_only {
        return Err(OpenError::ReadOnly { place });
    }
    if !has_schema {
        return Err(OpenError::NoSchema { place });
    }
    Ok(())
}

const PROCESS: &str = "SELECT pg_backend_pid()";
/// Times two sessions are asked in turns who serves them.
const TURNS: usize = 3;

/// Refuses a proxy that lends its sessions out by transaction: two of ours are then served by one of the
/// server's, or one of ours by several. Locks that a session holds, and what it set, would be another's.
async fn check_sessions(connector: &Connector, first: &mut Session, place: &str) -> Result<(), OpenError> {
    let classified = |failed| classify(failed, place);
    let mut second = connector.connect_plain().await.map_err(classified)?;
    let mut seen = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let what = "ask which process serves a session";
        let of_first =
            first.plain_row(what, PROCESS, |row| value::<i32>(row, 0)).await.map_err(classified)?;
        let of_second =
            second.plain_row(what, PROCESS, |row| value::<i32>(row, 0)).await.map_err(classified)?;
        seen.push((of_first, of_second));
    }
    second.close().await;
    let changes = seen.windows(2).any(|turns| turns.first() != turns.last());
    let shares = seen.iter().any(|(of_first, of_second)| of_first == of_second);
    if changes || shares {
        return Err(OpenError::Proxy { place: place.to_owned() });
    }
    Ok(())
}

const STANDBYS: &str = "SELECT current_setting('synchronous_standby_names'), current_setting('fsync'),
    current_setting('synchronous_commit')";

/// What an operator should know, though it works.
pub(crate) async fn notes(session: &mut Session) -> Result<Vec<String>, Failed> {
    let settings = session.plain_row("ask for the server's settings", STANDBYS, |row| {
        Ok((value::<String>(row, 0)?, value::<String>(row, 1)?, value::<String>(row, 2)?))
    });
    let (standbys, fsync, commit) = settings.await?;
    let mut notes = Vec::new();
    if standbys.is_empty() {
        notes.push(
            "the database has no synchronous standby: after a failover messages that were acknowledged may be \
            missing"
                .to_owned(),
        );
    } else if commit == "local" {
        notes.push(
            "the database runs with `synchronous_commit = local`, which waits for no standby: after a failover \
            messages that were acknowledged may be missing"
                .to_owned(),
        );
    }
    if fsync == "off" {
        notes.push(
            "the database runs with `fsync = off`: after a power loss messages that were acknowledged may be \
            missing"
                .to_owned(),
        );
    }
    Ok(notes)
}

/// Tables and the partitions of the next days.
pub(crate) async fn prepare(
    session: &mut Session,
    place: &str,
    beside: Beside,
    settings: &PostgresSettings,
) -> Result<(), OpenError> {
    match schema::migrate(session, beside, settings.statement_max).await {
        Ok(fit) => fit.map_err(|unfit| refuse(unfit, place))?,
        Err(failed) if failed.is_locked_out() => return Err(OpenError::Locked { place: place.to_owned() }),
        Err(failed) => return Err(classify(failed, place)),
    }
    let today = partition::today(session).await.map_err(|failed| classify(failed, place))?;
    match partition::make_ahead(session, today, Patience::Short).await {
        Ok(_) => Ok(()),
        // Somebody has a lock: only if today's are missing is that worth waiting for.
        Err(failed) if failed.is_locked_out() => {
            let leaves = partition::leaves(session).await.map_err(|failed| classify(failed, place))?;
            if partition::is_ready(&leaves, today) {
                return Ok(());
            }
            let made = partition::make_ahead(session, today, Patience::UntilItIsThere).await;
            made.map(drop).map_err(|failed| classify(failed, place))
        }
        Err(failed) => Err(classify(failed, place)),
    }
}

/// Why this program cannot work on a database.
pub(crate) fn refuse(unfit: Unfit, place: &str) -> OpenError {
    let place = place.to_owned();
    match unfit {
        Unfit::Changed(name) => OpenError::Changed { place, name },
        Unfit::Newer(name) => OpenError::Newer { place, name },
        Unfit::InUse(engines) => OpenError::Busy { place, engines },
    }
}

/// A failure in the words of whoever opens a store.
pub(crate) fn classify(failed: Failed, place: &str) -> OpenError {
    let place = place.to_owned();
    let Some(code) = failed.server_code() else {
        return match failed.into_tls() {
            Ok(source) => OpenError::Tls { place, source },
            Err(failed) => OpenError::Unreachable { place, source: Box::new(failed.told()) },
        };
    };
    let text = failed.server_text();
    match (code.as_str(), code.get(..2)) {
        ("28P01" | "28000", _) => OpenError::Login { place, text },
        ("3D000", _) => OpenError::NoDatabase { text },
        ("42501", _) => OpenError::Permission { place, text },
        ("25006", _) => OpenError::ReadOnly { place },
        ("57P03" | "53300", _) | (_, Some("08")) => {
            OpenError::Unreachable { place, source: Box::new(failed.told()) }
        }
        _ => OpenError::Store { place, source: Box::new(failed.told()) },
    }
}
