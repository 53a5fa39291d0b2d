//! Lets messages through or filters them, by values.
//!
//! What a condition means is `portway-condition`'s; here rules are put in order, and a reason is made
//! of the one that a message does not pass.

mod rules;
mod settings;

use portway_condition::{Compiler, Reader, Unreadable};
use portway_sdk::{Context, Failure, Message, Problem, Transform, TransformVerdict};

use crate::rules::Rule;

pub use rules::RULES_MAX;
pub use settings::{RuleSettings, Settings};

/// The filter of one destination.
#[derive(Debug)]
pub struct Filter {
    rules: Vec<Rule>,
    reader: Reader,
    unreadable: Unreadable,
}

impl Transform for Filter {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        let mut compiler = Compiler::new(&settings.body(), settings.case)?;
        let rules = rules::compile(&settings.rules, &mut compiler)?;
        Ok(Filter { rules, reader: compiler.finish(), unreadable: settings.unreadable })
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let facts = self.reader.facts(&message);
        for rule in &self.rules {
            match rule.lets_pass(&facts) {
                Ok(true) => {}
                Ok(false) => return Ok(TransformVerdict::filter(rule.reason())),
                Err(error) => return self.unreadable.verdict(error),
            }
        }
        Ok(TransformVerdict::Pass)
    }
}

portway_sdk::export_transform!(Filter);
