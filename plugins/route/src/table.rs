//! The table: rules in their order, seen from one destination.

use portway_condition::{Compiler, Condition, ConditionSettings, Facts, ReadError, shortened};
use portway_sdk::{Failure, TransformVerdict};

use crate::{Matching, Names, Settings};

/// Names in one table, each counted as often as it stands there.
pub const NAMES_MAX: usize = 10_000;

/// One destination's view of the table.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
    matching: Matching,
    otherwise: Otherwise,
    here: String,
}

#[derive(Debug)]
struct Row {
    condition: Condition,
    leads_here: bool,
    /// Why a message that it sends is not here.
    elsewhere: String,
}

/// What becomes of messages for which no rule holds.
#[derive(Debug)]
enum Otherwise {
    Quarantine,
    Here,
    Elsewhere(String),
}

impl Table {
    pub(crate) fn compile(
        settings: &Settings,
        here: &str,
        compiler: &mut Compiler,
    ) -> Result<Table, Failure> {
        let rules = rules(settings)?;
        let otherwise = settings.otherwise.as_ref();
        if otherwise.is_some_and(|otherwise| otherwise.is_single && !otherwise.hold("quarantine")) {
            return Err(refuse("setting `otherwise`: write `quarantine`, or a list of destinations"));
        }
        let otherwise = otherwise.filter(|otherwise| !otherwise.is_single);
        let named = rules.iter().map(|rule| rule.to).chain(otherwise);
        let count: usize = named.clone().map(|names| names.names.len()).sum();
        if count > NAMES_MAX {
            return Err(refuse(format!(
                "there are more than {NAMES_MAX} names of destinations in the table"
            )));
        }
        if !named.into_iter().any(|names| names.hold(here)) {
            return Err(refuse(format!(
                "no rule and not `otherwise` names this destination, `{here}`, so nothing would ever get here"
            )));
        }
        let otherwise = match otherwise {
            None => Otherwise::Quarantine,
            Some(names) if names.hold(here) => Otherwise::Here,
            Some(names) => Otherwise::Elsewhere(shortened(&format!("no rule holds, so it goes to {names}"))),
        };
        let rows = rules.iter().map(|rule| rule.compile(here, compiler)).collect::<Result<_, _>>()?;
        Ok(Table { rows, matching: settings.matching, otherwise, here: here.to_owned() })
    }

    pub(crate) fn verdict(&self, facts: &Facts<'_>) -> Result<TransformVerdict, ReadError> {
        let mut holds = false;
        for row in &self.rows {
            if !row.condition.holds(facts)? {
                continue;
            }
            if row.leads_here {
                return Ok(TransformVerdict::Pass);
            }
            if self.matching == Matching::First {
                return Ok(TransformVerdict::filter(row.elsewhere.as_str()));
            }
            holds = true;
        }
        if holds {
            return Ok(TransformVerdict::filter(format!("no rule that holds sends it to `{}`", self.here)));
        }
        Ok(match &self.otherwise {
            Otherwise::Quarantine => TransformVerdict::Quarantine(Failure::new(
                "no-rule",
                "no rule of the table holds for the message",
            )),
            Otherwise::Here => TransformVerdict::Pass,
            Otherwise::Elsewhere(reason) => TransformVerdict::filter(reason.as_str()),
        })
    }
}

/// A rule of either form.
struct Rule<'a> {
    /// Where it stands in the settings.
    at: String,
    /// How people call it.
    name: String,
    when: ConditionSettings,
    to: &'a Names,
}

impl Rule<'_> {
    fn compile(&self, here: &str, compiler: &mut Compiler) -> Result<Row, Failure> {
        let condition = compiler.condition(&self.when, &self.at)?;
        let elsewhere =
            format!("{} sends it to {}, not to `{here}`", self.name, shortened(&self.to.to_string()));
        Ok(Row { condition, leads_here: self.to.hold(here), elsewhere })
    }
}

fn rules(settings: &Settings) -> Result<Vec<Rule<'_>>, Failure> {
    match &settings.by {
        None if !settings.map.is_empty() => {
            Err(refuse("setting `map`: say with `by` which place has the values"))
        }
        None if settings.rules.is_empty() => {
            Err(refuse("the table is empty: write `rules`, or `by` and `map`"))
        }
        None => {
            let rules = settings.rules.iter().enumerate().map(|(index, rule)| Rule {
                at: format!("rules[{index}].when"),
                name: match &rule.name {
                    Some(name) => format!("rule `{}`", shortened(name)),
                    None => format!("rule {}", index + 1),
                },
                when: rule.when.clone(),
                to: &rule.to,
            });
            Ok(rules.collect())
        }
        Some(_) if !settings.rules.is_empty() => {
            Err(refuse("the table is written twice: as `rules`, and as `by` and `map`"))
        }
        Some(_) if settings.map.is_empty() => Err(refuse("setting `map`: there are no values to choose by")),
        Some(place) => {
            let rules = settings.map.iter().map(|(value, to)| Rule {
                at: "by".to_owned(),
                name: format!("the value `{}`", shortened(value)),
                when: ConditionSettings::equals(place, value),
                to,
            });
            Ok(rules.collect())
        }
    }
}

fn refuse(text: impl Into<String>) -> Failure {
    Failure::new("bad-settings", text)
}
