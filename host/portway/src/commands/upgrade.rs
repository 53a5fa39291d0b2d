//! `portway upgrade`: what this program would change in the tables of a project's store, and changing it.

use portway_store::{Others, TableWork, UpgradePlan, UpgradeStep};
use serde::Serialize;

use super::{open, show};
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::wiring::store;

/// Brings the store of a project to the tables of this program, while no engine uses it.
///
/// `portway run` does the same when it starts; this is for whoever wants it at another time, because it
/// takes long. With `--check` nothing is changed and no engine is disturbed: it shows what would be done,
/// and ends with exit code 0 if that is nothing, with 6 if it is something.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// Only shows what would be done.
    #[arg(long)]
    check: bool,
}

/// What would be done.
#[derive(Serialize)]
struct Plan {
    store: String,
    /// The number of the newest migration that was applied; none: there is no store yet.
    present: Option<u32>,
    /// That of this program.
    known: u32,
    to_do: bool,
    migrations: Vec<Step>,
    /// Applied by a newer program; this one works on it.
    newer: Vec<String>,
    room_bytes: u64,
    free_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Step {
    number: u32,
    name: String,
    does: String,
    /// What engines on the same store do meanwhile.
    others: &'static str,
    tables: Vec<Table>,
    room_bytes: u64,
}

#[derive(Serialize)]
struct Table {
    table: String,
    work: &'static str,
    rows: u64,
    bytes: u64,
    at_least: bool,
    #[serde(skip)]
    what: String,
}

/// What was done.
#[derive(Serialize)]
struct Done {
    store: String,
    from: Option<u32>,
    to: u32,
    took_ms: u64,
    #[serde(skip)]
    took: String,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let (project, _) = match open::open(&args.project, output)? {
        Ok(opened) => opened,
        Err(exit) => return Ok(exit),
    };
    let place = store::place(&project);
    let plan = store::check_upgrade(&project).await?;
    if args.check || plan.is_empty() {
        let exit = if plan.is_empty() { Exit::Done } else { Exit::ToDo };
        output.data(&Plan::of(place, plan), Plan::text)?;
        return Ok(exit);
    }
    let upgraded = store::upgrade(&project).await?;
    let done = Done {
        store: place,
        from: upgraded.from,
        to: upgraded.to,
        took_ms: u64::try_from(upgraded.took.as_millis()).unwrap_or(u64::MAX),
        took: show::duration(upgraded.took),
    };
    output.data(&done, |done| {
        let from = done.from.map(|from| format!(" from {from}")).unwrap_or_default();
        format!("{}: the tables were brought{from} to {} in {}", done.store, done.to, done.took)
    })?;
    Ok(Exit::Done)
}

impl Plan {
    fn of(store: String, plan: UpgradePlan) -> Plan {
        Plan {
            store,
            present: plan.present,
            known: plan.known,
            to_do: !plan.is_empty(),
            room_bytes: plan.room_bytes(),
            free_bytes: plan.free_bytes,
            migrations: plan.steps.iter().map(Step::of).collect(),
            newer: plan.newer,
        }
    }

    fn text(&self) -> String {
        let Some(present) = self.present else {
            return format!("{}: there is no store yet; `portway run` makes it", self.store);
        };
        let mut text = match (self.migrations.len(), self.newer.as_slice()) {
            (0, []) => {
                format!("{}: the tables are those of this program ({present}), nothing to do", self.store)
            }
            (0, newer) => format!(
                "{}: a newer program changed the tables ({}); this one works on them, nothing to do",
                self.store,
                newer.join(", ")
            ),
            (count, _) => format!(
                "{}: the tables are at {present}, this program brings them to {}: {}",
                self.store,
                self.known,
                show::counted(count as u64, "migration")
            ),
        };
        for step in &self.migrations {
            text.push_str(&step.text());
        }
        if !self.migrations.is_empty() {
            let free = self.free_bytes.map(|free| format!(", {} are free", show::bytes(free)));
            let room = show::bytes(self.room_bytes);
            text.push_str(&format!("\n\nroom on the disk: about {room} at most{}", free.unwrap_or_default()));
        }
        text
    }
}

impl Step {
    fn of(step: &UpgradeStep) -> Step {
        Step {
            number: step.number,
            name: step.name.clone(),
            does: step.does.clone(),
            others: match step.others {
                None => "none",
                Some(Others::GoOn) => "go_on",
                Some(Others::Wait) => "wait",
            },
            tables: step.tables.iter().map(Table::of).collect(),
            room_bytes: step.room_bytes(),
        }
    }

    fn text(&self) -> String {
        let others = match self.others {
            "go_on" => "other engines go on meanwhile",
            "wait" => "other engines cannot store until it is over",
            _ => "no engine has the store meanwhile",
        };
        let mut text = format!("\n\n{}\n  {}\n  {others}", self.name, self.does);
        for table in &self.tables {
            let more = if table.at_least { "at least " } else { "about " };
            let (rows, bytes) = (show::counted(table.rows, "row"), show::bytes(table.bytes));
            text.push_str(&format!("\n  {}: {}; {more}{rows}, {bytes}", table.table, table.what));
        }
        if self.tables.is_empty() {
            text.push_str("\n  no table that is there is worked through");
        }
        text
    }
}

impl Table {
    fn of(table: &TableWork) -> Table {
        Table {
            table: table.table.clone(),
            work: table.work.word(),
            rows: table.rows,
            bytes: table.bytes,
            at_least: table.at_least,
            what: table.work.to_string(),
        }
    }
}
