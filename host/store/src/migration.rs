//! Migrations: what each says of itself, and what an upgrade of a store would do.
//!
//! The text of a migration begins with a head that people and programs read:
//!
//! ```sql
//! -- Does: what it is for, in a sentence; lines that follow belong to it.
//! -- Works through: messages (index), owners (definition)
//! -- Others: wait
//! -- Oldest binary: 11
//! ```
//!
//! How a store applies them is its own affair.

use std::fmt;
use std::time::Duration;

/// A step of the tables, as its file holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The name of its file: its number, then what it does.
    pub name: &'static str,
    pub text: &'static str,
}

/// What a migration says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it does, a sentence.
    pub does: String,
    /// Tables that were there before, and what it does with each.
    pub works_through: Vec<(String, Work)>,
    /// What becomes of other engines; none: the store has one at a time.
    pub others: Option<Others>,
    /// The number of the newest migration that a binary has to know, at least, to work on these tables.
    pub oldest_binary: u32,
}

/// What a migration does with a table that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Only what is known of it changes: a column with a constant default, another part. No row is touched.
    Definition,
    /// It is read as a whole.
    Read,
    /// It is read as a whole to fill an index.
    Index,
    /// Its rows are written anew.
    Rows,
}

/// Whether engines on the same database can go on meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They store and deliver; a lock is had for a moment.
    GoOn,
    /// They cannot store until it is over.
    Wait,
}

/// What an upgrade of a store to the tables of this binary would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradePlan {
    /// The newest migration that was applied; none: there is no store yet.
    pub present: Option<u32>,
    /// The newest migration of this binary.
    pub known: u32,
    /// Migrations that would be applied, in order.
    pub steps: Vec<UpgradeStep>,
    /// What was applied by a newer binary; this one works on it all the same.
    pub newer: Vec<String>,
    /// Free on the disk; none: the store cannot tell.
    pub free_bytes: Option<u64>,
}

/// A migration that would be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeStep {
    pub number: u32,
    pub name: String,
    pub does: String,
    pub others: Option<Others>,
    pub tables: Vec<TableWork>,
}

/// What an upgrade does with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWork {
    pub table: String,
    pub work: Work,
    /// About.
    pub rows: u64,
    /// With its indexes.
    pub bytes: u64,
    /// There are more: counting was given up.
    pub at_least: bool,
}

/// What became of the tables of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// None: there was no store before.
    pub from: Option<u32>,
    pub to: u32,
    pub took: Duration,
}

/// The largest entry of an index, about: a few numbers and what goes with them.
const INDEX_ENTRY_BYTES: u64 = 64;

impl TableWork {
    /// Room it needs on the disk, at most about; what is written stands in the log of the store as well.
    pub fn room_bytes(&self) -> u64 {
        let written = match self.work {
            Work::Definition | Work::Read => 0,
            Work::Index => self.rows.saturating_mul(INDEX_ENTRY_BYTES),
            Work::Rows => self.bytes,
        };
        written.saturating_mul(2)
    }
}

impl UpgradeStep {
    /// Room it needs on the disk, at most about.
    pub fn room_bytes(&self) -> u64 {
        self.tables.iter().map(TableWork::room_bytes).fold(0, u64::saturating_add)
    }
}

impl UpgradePlan {
    /// There is no store yet, or nothing to change in it.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Room it needs on the disk, at most about.
    pub fn room_bytes(&self) -> u64 {
        self.steps.iter().map(UpgradeStep::room_bytes).fold(0, u64::saturating_add)
    }
}

impl Work {
    /// As a head names it.
    pub fn word(self) -> &'static str {
        match self {
            Work::Definition => "definition",
            Work::Read => "read",
            Work::Index => "index",
            Work::Rows => "rows",
        }
    }

    fn parse(word: &str) -> Option<Work> {
        [Work::Definition, Work::Read, Work::Index, Work::Rows].into_iter().find(|work| work.word() == word)
    }
}

/// A head that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the head of migration `{name}` {what}")]
pub struct HeadError {
    name: &'static str,
    what: String,
}

const DOES: &str = "Does";
const WORKS_THROUGH: &str = "Works through";
const OTHERS: &str = "Others";
const OLDEST_BINARY: &str = "Oldest binary";

impl Migration {
    /// The number that its name begins with.
    pub fn number(&self) -> u32 {
        self.name.split('_').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// Its statements, without the lines that are for people.
    pub fn statements(&self) -> String {
        let lines = self.text.lines().filter(|line| !line.trim_start().starts_with("--"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// What it says of itself.
    pub fn head(&self) -> Result<Head, HeadError> {
        let parts = self.parts();
        let part = |key: &str| parts.iter().find(|(known, _)| *known == key).map(|(_, text)| text.as_str());
        let needed = |key: &str| part(key).ok_or_else(|| self.wrong(format!("lacks `{key}`")));
        let does = needed(DOES)?;
        if !does.ends_with('.') {
            return Err(self.wrong(format!("says under `{DOES}` no sentence")));
        }
        let others = match part(OTHERS) {
            None => None,
            Some("go on") => Some(Others::GoOn),
            Some("wait") => Some(Others::Wait),
            Some(other) => return Err(self.wrong(format!("says `{other}` under `{OTHERS}`"))),
        };
        let oldest = needed(OLDEST_BINARY)?;
        let oldest_binary = oldest.parse().ok().filter(|oldest| (1..=self.number()).contains(oldest));
        Ok(Head {
            does: does.to_owned(),
            works_through: self.works_through(needed(WORKS_THROUGH)?)?,
            others,
            oldest_binary: oldest_binary
                .ok_or_else(|| self.wrong(format!("says `{oldest}` under `{OLDEST_BINARY}`")))?,
        })
    }

    /// The keys of the head with their texts.
    fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts: Vec<(&'static str, String)> = Vec::new();
        let lines = self.text.lines().map_while(|line| line.strip_prefix("--")).map(str::trim);
        for line in lines.take_while(|line| !line.is_empty()) {
            let key = [DOES, WORKS_THROUGH, OTHERS, OLDEST_BINARY]
                .into_iter()
                .find_map(|key| Some((key, line.strip_prefix(key)?.strip_prefix(':')?.trim())));
            match (key, parts.last_mut()) {
                (Some((key, text)), _) => parts.push((key, text.to_owned())),
                (None, Some((_, text))) => *text = format!("{text} {line}"),
                (None, None) => {}
            }
        }
        parts
    }

    fn works_through(&self, text: &str) -> Result<Vec<(String, Work)>, HeadError> {
        if text == "nothing" {
            return Ok(Vec::new());
        }
        let one = |part: &str| {
            let (table, work) = part.trim().strip_suffix(')')?.split_once(" (")?;
            Some((table.to_owned(), Work::parse(work)?))
        };
        let parts = text.split(',').map(|part| one(part).ok_or_else(|| part.trim().to_owned()));
        let parts: Result<_, String> = parts.collect();
        parts.map_err(|part| self.wrong(format!("says `{part}` under `{WORKS_THROUGH}`")))
    }

    fn wrong(&self, what: String) -> HeadError {
        HeadError { name: self.name, what }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Work::Definition => "gets another definition, no row is touched",
            Work::Read => "is read",
            Work::Index => "is read to fill an index",
            Work::Rows => "is written anew",
        })
    }
}

/// The oldest binary that works on tables, of the newest migrations that were applied to them.
pub fn oldest_binary(migrations: &[Migration], applied: impl Fn(u32) -> bool) -> u32 {
    let heads = migrations.iter().filter(|migration| applied(migration.number()));
    heads.filter_map(|migration| migration.head().ok()).map(|head| head.oldest_binary).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &'static str) -> Result<Head, String> {
        Migration { name: "0012_add_words", text }.head().map_err(|error| error.to_string())
    }

    #[test]
    fn a_head_is_read_as_it_is_written() {
        let text = "-- Does: adds words,\n--   and more.\n-- Works through: a (index), b (rows)\n-- Others: wait\n\
            -- Oldest binary: 11\n--\n-- Does: not this.\nCREATE";
        let expected = Head {
            does: "adds words, and more.".into(),
            works_through: vec![("a".into(), Work::Index), ("b".into(), Work::Rows)],
            others: Some(Others::Wait),
            oldest_binary: 11,
        };
        assert_eq!(head(text), Ok(expected));
        let text = "-- Does: little.\n-- Works through: nothing\n-- Oldest binary: 12\n";
        let expected =
            Head { does: "little.".into(), works_through: vec![], others: None, oldest_binary: 12 };
        assert_eq!(head(text), Ok(expected));
    }

    #[test]
    fn a_head_that_says_too_little_is_refused() {
        for (text, says) in [
            ("CREATE", "lacks `Does`"),
            ("-- Does: a b\n-- Works through: nothing\n-- Oldest binary: 1", "no sentence"),
            ("-- Does: a.\n-- Oldest binary: 1", "lacks `Works through`"),
            ("-- Does: a.\n-- Works through: nothing", "lacks `Oldest binary`"),
            ("-- Does: a.\n-- Works through: b\n-- Oldest binary: 1", "says `b` under"),
            ("-- Does: a.\n-- Works through: b (sorted)\n-- Oldest binary: 1", "says `b (sorted)` under"),
            ("-- Does: a.\n-- Works through: nothing\n-- Others: sleep\n-- Oldest binary: 1", "`sleep`"),
            ("-- Does: a.\n-- Works through: nothing\n-- Oldest binary: 13", "says `13` under"),
        ] {
            let error = head(text).unwrap_err();
            assert!(error.contains(says) && error.contains("0012_add_words"), "{text}: {error}");
        }
    }

    #[test]
    fn room_is_what_is_written_and_its_log() {
        let table = |work| TableWork { table: "t".into(), work, rows: 10, bytes: 5_000, at_least: false };
        let room =
            [Work::Definition, Work::Read, Work::Index, Work::Rows].map(|work| table(work).room_bytes());
        assert_eq!(room, [0, 0, 1_280, 10_000]);
    }

    #[test]
    fn only_what_is_for_people_is_no_statement() {
        let migration =
            Migration { name: "1", text: "-- Does: a.\nCREATE TABLE t (\n  -- What.\n  a int -- b\n);\n" };
        assert_eq!(migration.statements(), "CREATE TABLE t (\n  a int -- b\n);\n");
    }
}
