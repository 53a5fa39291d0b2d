//! The settings: what an operator has written becomes a map, or a list of all that is wrong with it.
//!
//! What stands in a template is read in `template`.

use std::collections::BTreeSet;

use portway_json::Path;
use portway_sdk::Failure;
use serde_json::{Map as Table, Value as Literal};

use crate::judge::{Judge, inside};
use crate::map::{Map, Rest, What};
use crate::node::{Missing, Node, Rule};
use crate::template::{FROM_KEYS, Reader};

const KEYS: &[&str] = &["template", "rules", "rest", "remove", "missing"];
const RULE_KEYS: &[&str] = &["to", "from", "rename", "value", "default", "missing", "as", "each"];
const RULES_MAX: usize = 1000;
pub(crate) const MISSING: &[(&str, Missing)] =
    &[("omit", Missing::Omit), ("null", Missing::Null), ("quarantine", Missing::Quarantine)];

/// The map that the settings say.
pub(crate) fn map(settings: &Literal) -> Result<Map, Failure> {
    let mut judge = Judge::default();
    let Literal::Object(settings) = settings else {
        return Err(Failure::new("bad-settings", "the settings are no table"));
    };
    judge.keys("", settings, KEYS);
    let missing = settings.get("missing").and_then(|value| judge.word("missing", value, MISSING));
    let missing = missing.unwrap_or(Missing::Omit);
    let keeps =
        settings.get("rest").and_then(|value| judge.word("rest", value, &[("drop", false), ("keep", true)]));
    let rest = rest(settings.get("remove"), keeps.unwrap_or(false), &mut judge);
    let what = what(settings, missing, &rest, &mut judge);
    judge.finish()?;
    Ok(Map { what, rest })
}

fn rest(removed: Option<&Literal>, keeps: bool, judge: &mut Judge) -> Rest {
    let mut remove = Vec::new();
    match removed {
        None => {}
        Some(_) if !keeps => judge.say("remove", "only what `rest = \"keep\"` keeps can be removed"),
        Some(Literal::Array(paths)) if paths.len() <= RULES_MAX => {
            for (number, written) in paths.iter().enumerate() {
                remove.extend(member_path(&format!("remove[{number}]"), written, judge));
            }
        }
        Some(_) => judge.say("remove", format!("is not a list of at most {RULES_MAX} paths")),
    }
    if keeps { Rest::Keep { remove } } else { Rest::Drop }
}

fn what(settings: &Table<String, Literal>, missing: Missing, rest: &Rest, judge: &mut Judge) -> What {
    match (settings.get("template"), settings.get("rules")) {
        (Some(_), Some(_)) => judge.say("", "settings `template` and `rules`: there can be only one of them"),
        (Some(template), None) => {
            let node = Reader { judge, missing }.node("template", template, 0);
            if matches!(rest, Rest::Keep { .. }) && !matches!(node, Node::Object(_)) {
                judge.say("template", "with `rest = \"keep\"` it is a table of the members that are new");
            }
            return What::Template(node);
        }
        (None, Some(Literal::Array(written))) if written.len() <= RULES_MAX => {
            return rules(written, missing, judge);
        }
        (None, Some(_)) => judge.say("rules", format!("is not a list of at most {RULES_MAX} rules")),
        (None, None) if matches!(rest, Rest::Keep { .. }) => {}
        (None, None) => judge.say("", "there is neither `template` nor `rules`, and `rest` is not kept"),
    }
    What::Rules(Vec::new())
}

fn rules(written: &[Literal], missing: Missing, judge: &mut Judge) -> What {
    let (mut rules, mut targets) = (Vec::new(), BTreeSet::new());
    for (number, rule) in written.iter().enumerate() {
        let place = format!("rules[{number}]");
        let Literal::Object(rule) = rule else {
            judge.say(&place, "is not a table");
            continue;
        };
        let Some(rule) = read_rule(place.clone(), rule, missing, judge) else { continue };
        let target: Vec<String> = rule.to.parts().map(|(name, _)| name.to_owned()).collect();
        if !targets.insert(target) {
            judge.say(&inside(&place, "to"), format!("an earlier rule writes to `{}` as well", rule.to));
        }
        rules.push(rule);
    }
    What::Rules(rules)
}

/// None: something is wrong, which has been said.
fn read_rule(
    place: String,
    rule: &Table<String, Literal>,
    missing: Missing,
    judge: &mut Judge,
) -> Option<Rule> {
    judge.keys(&place, rule, RULE_KEYS);
    let to = match rule.get("to") {
        Some(to) => member_path(&inside(&place, "to"), to, judge),
        None => {
            judge.say(&place, "`to` is missing");
            None
        }
    };
    let own = rule.get("missing").and_then(|value| judge.word(&inside(&place, "missing"), value, MISSING));
    let missing = own.unwrap_or(missing);
    let rename = rule.get("rename").map(|path| (path, member_path(&inside(&place, "rename"), path, judge)));
    let (renames, node) = match (rule.get("from"), rename, rule.get("value")) {
        (Some(paths), None, None) => (None, Reader { judge, missing }.value(&place, "from", paths, rule)),
        (None, Some((path, renames)), None) => {
            (renames, Reader { judge, missing }.value(&place, "rename", path, rule))
        }
        (None, None, Some(value)) => {
            for key in FROM_KEYS.iter().filter(|key| **key != "missing" && rule.contains_key(**key)) {
                judge.say(&inside(&place, key), "stands beside `from` or `rename` and not beside `value`");
            }
            (None, Reader { judge, missing }.node(&inside(&place, "value"), value, 0))
        }
        _ => {
            judge.say(&place, "has exactly one of `from`, `rename` and `value`");
            return None;
        }
    };
    Some(Rule { to: to?, place, node, renames })
}

/// A path to something inside the document.
fn member_path(place: &str, written: &Literal, judge: &mut Judge) -> Option<Path> {
    let path: Path = judge.parsed(place, written)?;
    if path.parts().next().is_none() {
        judge.say(place, "leads to the whole document, and not to a member of it");
        return None;
    }
    Some(path)
}
