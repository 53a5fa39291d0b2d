//! A whole map: a template or rules, and what becomes of everything else.

use std::borrow::Cow;

use portway_json::{Path, Value};
use portway_sdk::Problem;

use crate::made::Made;
use crate::make::{Maker, Scope};
use crate::node::{Node, Rule};
use crate::place::{put, remove};

/// What the settings of one destination say.
#[derive(Debug)]
pub(crate) struct Map {
    pub what: What,
    pub rest: Rest,
}

/// What is made.
#[derive(Debug)]
pub(crate) enum What {
    Template(Node),
    Rules(Vec<Rule>),
}

/// What becomes of everything else.
#[derive(Debug)]
pub(crate) enum Rest {
    Drop,
    /// It stays, without what these paths lead to.
    Keep {
        remove: Vec<Path>,
    },
}

impl Map {
    /// What the map makes of a document.
    pub(crate) fn apply<'m>(&'m self, document: &'m Value<'m>) -> Result<Made<'m>, Problem> {
        let scope = Scope { here: document, document };
        let mut maker = Maker::new();
        let mut output = self.rest(document);
        match &self.what {
            What::Rules(rules) => {
                for rule in rules {
                    if let Some(value) = maker.make(&rule.node, scope)? {
                        put(&mut output, &rule.to, value).map_err(|problem| at(&rule.place, problem))?;
                    }
                }
            }
            What::Template(node) => {
                let made = maker.make(node, scope)?;
                output = match (made, &self.rest) {
                    (Some(Made::Object(members)), Rest::Keep { .. }) => merge(output, members)?,
                    (Some(made), _) => made,
                    (None, _) => {
                        let text = "template: its value is not there, so nothing is left to deliver";
                        return Err(Problem::quarantine("missing-value", text));
                    }
                };
            }
        }
        Ok(output)
    }

    fn rest<'m>(&'m self, document: &'m Value<'m>) -> Made<'m> {
        let Rest::Keep { remove: removed } = &self.rest else { return Made::Object(Vec::new()) };
        let mut rest = Made::Given(document);
        let renamed = match &self.what {
            What::Rules(rules) => rules.as_slice(),
            What::Template(_) => &[],
        };
        let renamed = renamed.iter().filter_map(|rule| rule.renames.as_ref());
        removed.iter().chain(renamed).for_each(|path| remove(&mut rest, path));
        rest
    }
}

/// The members of a template over those of the rest.
fn merge<'m>(rest: Made<'m>, members: Vec<(Cow<'m, str>, Made<'m>)>) -> Result<Made<'m>, Problem> {
    let rest = rest.opened();
    let Made::Object(mut all) = rest else {
        let text = format!(
            "the document is {}, and `rest = \"keep\"` needs an object to put members into",
            rest.kind()
        );
        return Err(Problem::quarantine("no-place", text));
    };
    for (name, value) in members {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some(member) => member.1 = value,
            None => all.push((name, value)),
        }
    }
    Ok(Made::Object(all))
}

fn at(place: &str, problem: Problem) -> Problem {
    match problem {
        Problem::Quarantine(mut failure) => {
            failure.text = format!("{place}: {}", failure.text);
            Problem::Quarantine(failure)
        }
        other => other,
    }
}
