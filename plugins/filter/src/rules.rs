//! Rules in their order, and the reasons they give.

use portway_condition::{Compiler, Condition, Facts, ReadError, shortened};
use portway_sdk::Failure;

use crate::RuleSettings;

/// Rules of one filter.
pub const RULES_MAX: usize = 200;

/// One rule, compiled.
#[derive(Debug)]
pub(crate) struct Rule {
    condition: Condition,
    /// Whether messages pass for which it holds, or the others.
    passes_if: bool,
    reason: String,
}

impl Rule {
    pub(crate) fn lets_pass(&self, facts: &Facts<'_>) -> Result<bool, ReadError> {
        Ok(self.condition.holds(facts)? == self.passes_if)
    }

    /// Why a message was filtered. It holds what the settings say and nothing of the message.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }
}

pub(crate) fn compile(rules: &[RuleSettings], compiler: &mut Compiler) -> Result<Vec<Rule>, Failure> {
    let refuse = |text: String| Failure::new("bad-settings", text);
    if rules.is_empty() {
        return Err(refuse("setting `rules`: without a rule there is nothing to filter".into()));
    }
    if rules.len() > RULES_MAX {
        return Err(refuse(format!("setting `rules`: there are more than {RULES_MAX} rules")));
    }
    let mut compiled = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let at = format!("rules[{index}]");
        let (settings, word, passes_if) = match (&rule.only, &rule.except) {
            (Some(condition), None) => (condition, "only", true),
            (None, Some(condition)) => (condition, "except", false),
            _ => return Err(refuse(format!("setting `{at}`: a rule has either `only` or `except`"))),
        };
        let condition = compiler.condition(settings, &format!("{at}.{word}"))?;
        let name = match &rule.name {
            Some(name) => format!("rule `{}`", shortened(name)),
            None => format!("rule {}", index + 1),
        };
        let said = shortened(&condition.to_string());
        let reason = match passes_if {
            true => format!("{name} lets only messages through for which {said}"),
            false => format!("{name} holds messages back for which {said}"),
        };
        compiled.push(Rule { condition, passes_if, reason });
    }
    Ok(compiled)
}
