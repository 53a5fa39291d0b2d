//! What a store on PostgreSQL is opened with, and the limits of it.

use std::time::Duration;

/// What a store is opened with.
#[derive(Clone)]
pub struct PostgresSettings {
    /// `postgres://user:password@host:port/database?sslmode=…`.
    pub url: String,
    /// The name of this engine in the database; one session at a time writes under it.
    pub engine: String,
    /// Connections for reading, opened as they are needed. One more writes; an engine that claims groups has
    /// two more, one to own them and one to hear of others.
    pub readers: usize,
    /// How long a connection may take to come about.
    pub connect_max: Duration,
    /// How long a statement may take.
    pub statement_max: Duration,
    /// How long to wait for a session that wrote under this name before, and may be at its end.
    pub takeover_max: Duration,
}

/// A setting outside its limits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` is {given}, it must be {limits}")]
pub struct SettingsError {
    pub setting: &'static str,
    pub given: String,
    pub limits: &'static str,
}

impl PostgresSettings {
    /// Connections for reading.
    pub const READERS_MAX: usize = 64;
    /// Bytes of the name of an engine.
    pub const ENGINE_BYTES_MAX: usize = 64;

    /// The usual settings for a database.
    pub fn new(url: impl Into<String>, engine: impl Into<String>) -> Self {
        PostgresSettings {
            url: url.into(),
            engine: engine.into(),
            readers: 4,
            connect_max: Duration::from_secs(5),
            statement_max: Duration::from_secs(30),
            takeover_max: Duration::from_secs(10),
        }
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let refused = |setting, given: String, limits| Err(SettingsError { setting, given, limits });
        let name = self.engine.as_str();
        if name.is_empty() || name.len() > Self::ENGINE_BYTES_MAX || name.contains(char::is_control) {
            return refused("engine", format!("`{}`", name.escape_debug()), "1 to 64 bytes of text");
        }
        if !(1..=Self::READERS_MAX).contains(&self.readers) {
            return refused("readers", self.readers.to_string(), "1 to 64");
        }
        let between = |setting, given: Duration, least: Duration, most: Duration, limits| match (least..=most)
            .contains(&given)
        {
            true => Ok(()),
            false => refused(setting, format!("{given:?}"), limits),
        };
        let (tenth, second) = (Duration::from_millis(100), Duration::from_secs(1));
        between("connect_max", self.connect_max, tenth, 60 * second, "100ms to 1m")?;
        between("statement_max", self.statement_max, second, 600 * second, "1s to 10m")?;
        between("takeover_max", self.takeover_max, tenth, 120 * second, "100ms to 2m")
    }
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("engine", &self.engine)
            .field("readers", &self.readers)
            .field("connect_max", &self.connect_max)
            .field("statement_max", &self.statement_max)
            .field("takeover_max", &self.takeover_max)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_outside_their_limits_are_refused_with_a_sentence() {
        let usual = || PostgresSettings::new("postgres://ann:secret@db/portway", "one");
        assert_eq!(usual().check(), Ok(()));
        assert!(!format!("{:?}", usual()).contains("secret"));
        let long = "x".repeat(65);
        let refused = [
            PostgresSettings { engine: String::new(), ..usual() },
            PostgresSettings { engine: long, ..usual() },
            PostgresSettings { engine: "a\nb".into(), ..usual() },
            PostgresSettings { readers: 0, ..usual() },
            PostgresSettings { readers: 65, ..usual() },
            PostgresSettings { connect_max: Duration::ZERO, ..usual() },
            PostgresSettings { statement_max: Duration::from_millis(999), ..usual() },
            PostgresSettings { takeover_max: Duration::from_secs(121), ..usual() },
        ];
        for settings in refused {
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains("it must be"), "{error}");
        }
    }
}
