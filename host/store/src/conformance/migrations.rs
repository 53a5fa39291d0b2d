//! What a migration may do: add, and say truly what it works through.
//!
//! Not a case for a store but a rule for its files, which both stores keep.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Migration, Work};

/// What is wrong with the migrations of a store, in the order in which they are applied.
pub fn findings(migrations: &[Migration]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    for (index, migration) in migrations.iter().enumerate() {
        if migration.number() as usize != index + 1 {
            findings.push(format!("{}: its number is not the next one", migration.name));
        }
        findings.extend(look_at(migration, &mut known));
    }
    findings
}

/// What a migration was seen to do.
#[derive(Default)]
struct Seen {
    made: BTreeSet<String>,
    works: BTreeMap<String, Work>,
    changes_rows: bool,
    wrong: Vec<String>,
}

fn look_at(migration: &Migration, known: &mut BTreeSet<String>) -> Vec<String> {
    let mut seen = Seen::default();
    for statement in statements(migration.text) {
        seen.look_at(&statement, known);
    }
    known.append(&mut seen.made);
    let mut wrong = seen.wrong;
    match migration.head() {
        Err(error) => wrong.push(error.to_string()),
        Ok(head) => {
            let told: BTreeMap<String, Work> = head.works_through.into_iter().collect();
            if told != seen.works {
                wrong.push(format!("says that it works through {told:?}, and does through {:?}", seen.works));
            }
            if seen.changes_rows && head.oldest_binary != migration.number() {
                wrong.push("changes what is stored, so no older binary is known to work on it".to_owned());
            }
        }
    }
    wrong.into_iter().map(|wrong| format!("{}: {wrong}", migration.name)).collect()
}

impl Seen {
    fn look_at(&mut self, statement: &str, known: &BTreeSet<String>) {
        let spaced = statement.replace('(', " ( ").replace(')', " ) ").replace(',', " , ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let adds = match words.as_slice() {
            ["CREATE", "TABLE", "IF", "NOT", "EXISTS", table, rest @ ..] => self.table(table, rest, known),
            ["CREATE", "INDEX", "IF", "NOT", "EXISTS", _, "ON", table, ..] => {
                self.works_through(table, Work::Index, known);
                true
            }
            // On a table that others fill, it could refuse what an older binary stores.
            ["CREATE", "UNIQUE", "INDEX", "IF", "NOT", "EXISTS", _, "ON", table, ..] => {
                !known.contains(*table)
            }
            ["CREATE", "SEQUENCE", "IF", "NOT", "EXISTS", ..] | ["COMMENT", "ON", ..] => true,
            ["INSERT", "OR", "IGNORE", "INTO", table, rest @ ..] => self.insert(table, rest, known),
            ["INSERT", "INTO", table, rest @ .., "ON", "CONFLICT", "DO", "NOTHING"] => {
                self.insert(table, rest, known)
            }
            ["UPDATE", "OR", "IGNORE", table, ..] | ["UPDATE", table, ..] => {
                self.works_through(table, Work::Rows, known);
                self.changes_rows |= known.contains(*table);
                true
            }
            ["ALTER", "TABLE", table, "ADD", "COLUMN", rest @ ..] => {
                self.works_through(table, Work::Definition, known);
                is_harmless_column(rest)
            }
            _ => false,
        };
        if !adds {
            self.wrong.push(format!("does not only add, or not only once: `{}`", words.join(" ")));
        }
    }

    fn table(&mut self, table: &str, rest: &[&str], known: &BTreeSet<String>) -> bool {
        if let ["PARTITION", "OF", of, ..] = rest {
            self.works_through(of, Work::Definition, known);
        }
        self.made.insert(table.to_owned());
        !known.contains(table)
    }

    /// Into a table of its own, out of others.
    fn insert(&mut self, table: &str, rest: &[&str], known: &BTreeSet<String>) -> bool {
        let after = rest.iter().zip(rest.iter().skip(1));
        for (_, from) in after.filter(|(word, _)| ["FROM", "JOIN"].contains(word)) {
            self.works_through(from, Work::Read, known);
        }
        !known.contains(table)
    }

    fn works_through(&mut self, table: &str, work: Work, known: &BTreeSet<String>) {
        if known.contains(table) {
            let heaviest = |work: Work| match work {
                Work::Definition => 0,
                Work::Read => 1,
                Work::Index => 2,
                Work::Rows => 3,
            };
            let entry = self.works.entry(table.to_owned()).or_insert(work);
            if heaviest(*entry) < heaviest(work) {
                *entry = work;
            }
        }
    }
}

/// Whether an older binary can go on storing rows without knowing of a column, and no row is written anew.
fn is_harmless_column(definition: &[&str]) -> bool {
    let has = |words: &[&str]| definition.windows(words.len()).any(|window| window == words);
    let binds =
        ["PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "GENERATED"].into_iter().any(|word| has(&[word]));
    let is_filled = !has(&["NOT", "NULL"]) || has(&["DEFAULT"]);
    // What is computed anew for each row writes each row anew.
    let default = definition.iter().skip_while(|word| **word != "DEFAULT");
    let is_constant = !default.clone().any(|word| *word == "(");
    !binds && is_filled && is_constant
}

/// The statements of a script, without comments, and with nothing in quotes that could be taken for words.
fn statements(text: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    let (mut in_quotes, mut in_comment) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if in_comment {
            in_comment = character != '\n';
            continue;
        }
        match character {
            '\'' => in_quotes = !in_quotes,
            _ if in_quotes => continue,
            '-' if characters.peek() == Some(&'-') => {
                in_comment = true;
                continue;
            }
            ';' => {
                statements.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = statements.last_mut() {
            last.push(character);
        }
    }
    statements.retain(|statement| !statement.trim().is_empty());
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Migration = Migration {
        name: "0001_create",
        text: "-- Does: makes t.\n-- Works through: nothing\n-- Oldest binary: 1\n
            CREATE TABLE IF NOT EXISTS t (a int -- it's; a\n);\nCOMMENT ON TABLE t IS 'One; or two';",
    };

    fn second(head: &str, sql: &str) -> Vec<String> {
        let text = format!("-- Does: more.\n{head}\n-- Oldest binary: 1\n\n{sql};").leak();
        findings(&[FIRST, Migration { name: "0002_more", text }])
    }

    #[test]
    fn what_adds_and_says_so_is_accepted() {
        let index = "CREATE INDEX IF NOT EXISTS i ON t (a)";
        let column = "ALTER TABLE t ADD COLUMN IF NOT EXISTS b bigint NOT NULL DEFAULT 0";
        let table =
            "CREATE TABLE IF NOT EXISTS u (a int); INSERT INTO u SELECT a FROM t ON CONFLICT DO NOTHING";
        assert_eq!(second("-- Works through: t (index)", index), [""; 0]);
        assert_eq!(second("-- Works through: t (definition)", column), [""; 0]);
        assert_eq!(second("-- Works through: t (read)", table), [""; 0]);
        assert_eq!(second("-- Works through: t (index)", &format!("{index}; {column}")), [""; 0]);
    }

    #[test]
    fn what_an_older_binary_could_stumble_over_is_refused() {
        for sql in [
            "DROP TABLE t",
            "ALTER TABLE t RENAME TO u",
            "ALTER TABLE t RENAME COLUMN a TO b",
            "ALTER TABLE t DROP COLUMN a",
            "ALTER TABLE t ALTER COLUMN a TYPE text",
            "ALTER TABLE t ADD COLUMN b int NOT NULL",
            "ALTER TABLE t ADD COLUMN b int DEFAULT 1 CHECK (b > 0)",
            "ALTER TABLE t ADD COLUMN b int DEFAULT random()",
            "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a)",
            "CREATE TABLE u (a int)",
            "CREATE TRIGGER r BEFORE INSERT ON t EXECUTE FUNCTION f()",
            "DELETE FROM t",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        ] {
            let found = second("-- Works through: nothing", sql);
            assert!(found.iter().any(|found| found.contains("only add")), "{sql}: {found:?}");
        }
        let found = second("-- Works through: t (rows)", "UPDATE t SET a = 1");
        assert!(found[0].contains("no older binary"), "{found:?}");
    }

    #[test]
    fn what_it_works_through_is_told_in_full_and_nothing_else() {
        let index = "CREATE INDEX IF NOT EXISTS i ON t (a)";
        for head in ["nothing", "t (read)", "t (index), u (read)"] {
            let found = second(&format!("-- Works through: {head}"), index);
            assert!(found[0].contains("works through"), "{head}: {found:?}");
        }
        let twice = findings(&[FIRST, FIRST]);
        assert!(twice[0].contains("not the next one"), "{twice:?}");
    }
}
