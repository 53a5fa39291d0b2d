//! Chooses destinations by values: one table, written at each destination of an interface.
//!
//! A transform knows its own destination alone: a message passes where the table names it and is
//! filtered elsewhere. What a condition means is `portway-condition`'s.

mod names;
mod settings;
mod table;

use portway_condition::{Compiler, Reader, Unreadable};
use portway_sdk::{Context, Failure, Message, Problem, Transform, TransformVerdict};

use crate::table::Table;

pub use names::Names;
pub use settings::{Matching, RuleSettings, Settings};
pub use table::NAMES_MAX;

/// The route of one destination.
#[derive(Debug)]
pub struct Route {
    table: Table,
    reader: Reader,
    unreadable: Unreadable,
}

impl Transform for Route {
    type Settings = Settings;

    fn open(settings: Settings, context: &Context) -> Result<Self, Failure> {
        let mut compiler = Compiler::new(&settings.body(), settings.case)?;
        let table = Table::compile(&settings, &context.destination, &mut compiler)?;
        Ok(Route { table, reader: compiler.finish(), unreadable: settings.unreadable })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let facts = self.reader.facts(&message);
        self.table.verdict(&facts).or_else(|error| self.unreadable.verdict(error))
    }
}

portway_sdk::export_transform!(Route);
