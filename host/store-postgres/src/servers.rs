//! The servers that an address names, and which of them may be used.
//!
//! An address may name several, of which one accepts writes. Each tells which database it is and on which
//! timeline: a promotion begins a new one. So a server that a failover left behind is known when it comes
//! back, and is not used. Connecting is done in `connect`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portway_store::{ErrorKind, StoreError};
use sqlx::postgres::{PgConnectOptions, PgRow};

use crate::error::Failed;
use crate::query::value;

/// Servers an address may name.
pub(crate) const SERVERS_MAX: usize = 16;
/// What other clients are told to look for a server with. Here it is looked for anyway.
const WANTED: &str = "target_session_attrs";
/// Stands in an address for the server that a parameter names.
const REPLACED: &str = "localhost";

/// Whether a server accepts no writes; and its timeline in hexadecimal digits with the number that its
/// database was made with.
pub(crate) const ORIGIN: &str = "SELECT
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
    CASE WHEN pg_is_in_recovery() THEN NULL
        ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '/'
            || (SELECT system_identifier FROM pg_control_system()) END";

/// Which database a server has, and which of its histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    timeline: u32,
    system: u64,
}

impl Origin {
    /// From the row of [`ORIGIN`].
    pub(crate) fn read(row: &PgRow) -> Result<Option<Origin>, Failed> {
        if value::<bool>(row, 0)? {
            return Err(Failed::read_only("connect to the database"));
        }
        Ok(value::<Option<String>>(row, 1)?.as_deref().and_then(Origin::parse))
    }

    fn parse(text: &str) -> Option<Origin> {
        let (timeline, system) = text.split_once('/')?;
        Some(Origin { timeline: u32::from_str_radix(timeline, 16).ok()?, system: system.parse().ok()? })
    }
}

/// The servers of one address.
pub(crate) struct Servers {
    all: Vec<Server>,
    state: Mutex<State>,
}

pub(crate) struct Server {
    pub(crate) options: PgConnectOptions,
    /// It was asked, and speaks no TLS.
    pub(crate) is_plain: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    /// The one that served last.
    preferred: usize,
    /// The newest that was seen.
    newest: Option<Origin>,
}

impl Servers {
    pub(crate) fn parse(url: &str) -> Result<Servers, sqlx::Error> {
        let urls = split(url).map_err(|text| sqlx::Error::Configuration(text.into()))?;
        let server = |url: &String| -> Result<Server, sqlx::Error> {
            Ok(Server { options: url.parse()?, is_plain: Arc::default() })
        };
        let all = urls.iter().map(server).collect::<Result<_, _>>()?;
        Ok(Servers { all, state: Mutex::default() })
    }

    /// The same servers, each with options in common.
    pub(crate) fn with(self, common: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Servers {
        let with = |server: Server| Server { options: common(server.options), ..server };
        Servers { all: self.all.into_iter().map(with).collect(), ..self }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Server> {
        self.all.get(index)
    }

    /// The options of the one that served last.
    pub(crate) fn preferred(&self) -> Option<PgConnectOptions> {
        self.all.get(self.state().preferred).map(|server| server.options.clone())
    }

    /// All of them, the one that served last before the others.
    pub(crate) fn order(&self) -> Vec<usize> {
        let preferred = self.state().preferred;
        let others = (0..self.all.len()).filter(|index| *index != preferred);
        std::iter::once(preferred).chain(others).collect()
    }

    pub(crate) fn prefer(&self, index: usize) {
        self.state().preferred = index;
    }

    /// Of several servers that accept writes the one on the newest timeline is preferred.
    pub(crate) fn prefer_newest(&self, found: &[(usize, Option<Origin>)]) {
        let mut state = self.state();
        let ours = state.newest.or_else(|| found.first().and_then(|(_, origin)| *origin));
        let of_ours = found.iter().filter(|(_, origin)| match (ours, origin) {
            (Some(ours), Some(origin)) => origin.system == ours.system,
            _ => true,
        });
        let timeline = |(_, origin): &&(usize, Option<Origin>)| origin.map(|origin| origin.timeline);
        let Some((index, origin)) = of_ours.rev().max_by_key(timeline) else { return };
        state.preferred = *index;
        if origin.is_some_and(|found| state.newest.is_none_or(|known| known.timeline < found.timeline)) {
            state.newest = *origin;
        }
    }

    /// Refuses a server that a failover left behind, and another database. One that does not tell what it is
    /// is taken.
    pub(crate) fn admit(&self, origin: Option<Origin>) -> Result<(), StoreError> {
        let Some(origin) = origin else { return Ok(()) };
        let mut state = self.state();
        let newest = *state.newest.get_or_insert(origin);
        let refused = |text: String| Err(StoreError::new(ErrorKind::Unavailable, text));
        if newest.system != origin.system {
            return refused(
                "the server has another database than before: if that is right, start the engine anew".into(),
            );
        }
        if origin.timeline < newest.timeline {
            let (old, new) = (origin.timeline, newest.timeline);
            return refused(format!(
                "the server is on timeline {old}, and {new} was seen: a failover left it behind"
            ));
        }
        state.newest = Some(origin);
        Ok(())
    }

    /// Where they are, for people: without a password.
    pub(crate) fn place(&self) -> String {
        let one = |Server { options, .. }: &Server| {
            let host = match options.get_socket() {
                Some(socket) => socket.display().to_string(),
                None => options.get_host().to_owned(),
            };
            format!("{host}:{}", options.get_port())
        };
        let hosts: Vec<String> = self.all.iter().map(one).collect();
        let Some(Server { options: first, .. }) = self.all.first() else { return String::new() };
        let database = first.get_database().unwrap_or_else(|| first.get_username());
        format!("{}@{}/{database}", first.get_username(), hosts.join(","))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The addresses of the servers, each as if it stood alone.
fn split(url: &str) -> Result<Vec<String>, String> {
    let is_ours = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    let Some((scheme, rest)) = url.split_once("://").filter(|_| is_ours) else {
        return Err("it does not begin with `postgres://`".into());
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    let names_host = rest.split_once('?').is_some_and(|(_, rest)| rest.split('&').any(is_host));
    let mut hosts: Vec<&str> = hosts.split(',').collect();
    if hosts == [""] && names_host {
        // Where there is a user there has to be a name of a server too, and the parameter counts.
        hosts = vec![REPLACED];
    }
    if hosts.len() > SERVERS_MAX {
        return Err(format!("it names {} servers, at most {SERVERS_MAX} are taken", hosts.len()));
    }
    if (hosts.len() > 1 || !user.is_empty()) && hosts.iter().any(|host| host.is_empty()) {
        return Err("the name of a server is missing".into());
    }
    let rest = without_wanted(rest)?;
    Ok(hosts.iter().map(|host| format!("{scheme}://{user}{host}{rest}")).collect())
}

/// Whether a parameter names the server, or the folder of its socket.
fn is_host(parameter: &str) -> bool {
    parameter.starts_with("host=") || parameter.starts_with("hostaddr=")
}

/// The path and the parameters without the one that says what kind of server is wanted.
fn without_wanted(rest: &str) -> Result<String, String> {
    let Some((path, parameters)) = rest.split_once('?') else { return Ok(rest.to_owned()) };
    let mut kept = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some((WANTED, "read-write" | "primary")) => {}
            Some((WANTED, other)) => {
                return Err(format!("`{WANTED}` is `{other}`, a store needs `read-write`"));
            }
            _ => kept.push(parameter),
        }
    }
    Ok(if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_server_or_several() {
        let one = "postgres://ann:p@db/x?sslmode=disable";
        assert_eq!(split(one).unwrap(), [one]);
        let told =
            split("postgres://ann:a,b@h1:5433,[::1],h3/x?target_session_attrs=read-write&sslmode=disable");
        let wanted = ["h1:5433", "[::1]", "h3"].map(|h| format!("postgres://ann:a,b@{h}/x?sslmode=disable"));
        assert_eq!(told.unwrap(), wanted);
        let told = split("postgresql://h1,h2?target_session_attrs=primary").unwrap();
        assert_eq!(told, ["postgresql://h1", "postgresql://h2"]);
        let place = Servers::parse("postgres://ann:secret@h1:5433,h2/x").unwrap().place();
        assert_eq!(place, "ann@h1:5433,h2:5432/x");
        for url in [
            "postgres://ann@/x?host=/run/postgresql",
            "postgres:///x?user=ann&host=/run/postgresql",
            "postgres://ann@%2Frun%2Fpostgresql/x",
        ] {
            assert_eq!(Servers::parse(url).unwrap().place(), "ann@/run/postgresql:5432/x", "{url}");
        }
    }

    #[test]
    fn what_is_no_address_of_servers_is_refused() {
        let many = format!("postgres://{}h/x", "h,".repeat(SERVERS_MAX));
        for (url, words) in [
            ("http://h1,h2/x", "does not begin"),
            ("postgres://h1,,h2/x", "is missing"),
            ("postgres://ann@h1,/x", "is missing"),
            ("postgres://ann@/x", "is missing"),
            ("postgres://h1,h2/x?target_session_attrs=any", "needs `read-write`"),
            (many.as_str(), "at most 16"),
        ] {
            let refused = split(url).unwrap_err();
            assert!(refused.contains(words), "{url}: {refused}");
        }
    }

    fn origin(timeline: u32, system: u64) -> Option<Origin> {
        Some(Origin { timeline, system })
    }

    fn two() -> Servers {
        Servers::parse("postgres://h1,h2/x").unwrap()
    }

    #[test]
    fn an_origin_is_read_as_a_server_tells_it() {
        assert_eq!(Origin::parse("0000000A/7423"), origin(10, 7423));
        for text in ["", "0000000A", "x/7423", "0000000A/"] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_older_timeline_and_another_database_are_refused_once_a_newer_was_seen() {
        let servers = two();
        for (told, is_taken) in [
            (origin(1, 7), true),
            (None, true),
            (origin(3, 7), true),
            (origin(1, 7), false),
            (origin(9, 8), false),
            (origin(3, 7), true),
        ] {
            assert_eq!(servers.admit(told).is_ok(), is_taken, "{told:?}");
        }
    }

    #[test]
    fn of_two_that_accept_writes_the_newer_is_preferred() {
        let cases = [
            (None, [(0, origin(1, 7)), (1, origin(2, 7))], 1),
            (None, [(1, origin(1, 7)), (0, origin(2, 7))], 0),
            (None, [(0, origin(2, 7)), (1, origin(2, 7))], 0),
            (None, [(0, None), (1, origin(1, 7))], 1),
            // Another database is none of ours, however new it is.
            (origin(2, 7), [(0, origin(9, 8)), (1, origin(2, 7))], 1),
        ];
        for (known, found, preferred) in cases {
            let servers = two();
            servers.admit(known).unwrap();
            servers.prefer_newest(&found);
            assert_eq!(servers.order()[0], preferred, "{found:?}");
            let (_, used) = found.iter().find(|(index, _)| *index == preferred).unwrap();
            servers.admit(*used).unwrap();
        }
    }
}
