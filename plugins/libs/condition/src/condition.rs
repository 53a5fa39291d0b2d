//! A condition, compiled: what it looks at and when it holds.

use std::fmt;

use crate::{
    Facts, ReadError,
    check::{Check, Scalars},
};

/// Whether something is so of a message.
#[derive(Debug)]
pub struct Condition(pub(crate) Node);

#[derive(Debug)]
pub(crate) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    None(Vec<Node>),
    Test(Test),
}

/// What is asked of the values of one place.
#[derive(Debug)]
pub(crate) struct Test {
    pub place: Place,
    /// There is a value for which all of these hold.
    pub each: Vec<Check>,
    /// No value is one of these.
    pub not: Option<Scalars>,
    pub exists: Option<bool>,
    pub empty: Option<bool>,
}

/// Where values stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The number of a path, and how it is written.
    Body {
        index: usize,
        path: String,
    },
    Attribute(String),
    Key,
}

impl Condition {
    /// Whether it holds. The body is read where that is needed to know.
    pub fn holds(&self, facts: &Facts<'_>) -> Result<bool, ReadError> {
        self.0.holds(facts)
    }
}

impl Node {
    fn holds(&self, facts: &Facts<'_>) -> Result<bool, ReadError> {
        match self {
            Node::All(nodes) => Ok(!find(nodes, facts, false)?),
            Node::Any(nodes) => find(nodes, facts, true),
            Node::None(nodes) => Ok(!find(nodes, facts, true)?),
            Node::Test(test) => test.holds(facts),
        }
    }
}

/// Whether one of them comes out like this; those behind it are not looked at.
fn find(nodes: &[Node], facts: &Facts<'_>, outcome: bool) -> Result<bool, ReadError> {
    for node in nodes {
        if node.holds(facts)? == outcome {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Test {
    fn holds(&self, facts: &Facts<'_>) -> Result<bool, ReadError> {
        let values = facts.values(&self.place)?;
        if self.exists.is_some_and(|wanted| values.is_empty() == wanted) {
            return Ok(false);
        }
        let is_empty = || values.iter().all(|value| value.is_empty());
        if self.empty.is_some_and(|wanted| is_empty() != wanted) {
            return Ok(false);
        }
        let is_one_of =
            |not: &Scalars| values.iter().filter_map(|value| value.text()).any(|text| not.contain(text));
        if self.not.as_ref().is_some_and(is_one_of) {
            return Ok(false);
        }
        if self.each.is_empty() {
            return Ok(true);
        }
        for value in values.iter() {
            let mut all_hold = true;
            for check in &self.each {
                if !check.holds(value)? {
                    all_hold = false;
                    break;
                }
            }
            if all_hold {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, nodes) = match self {
            Node::All(nodes) => ("all of", nodes),
            Node::Any(nodes) => ("any of", nodes),
            Node::None(nodes) => ("none of", nodes),
            Node::Test(test) => return test.fmt(f),
        };
        write!(f, "{name} (")?;
        for (index, node) in nodes.iter().enumerate() {
            write!(f, "{}{node}", if index == 0 { "" } else { "; " })?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut asked: Vec<String> = self.each.iter().map(Check::to_string).collect();
        asked.extend(self.not.as_ref().map(|not| format!("is not {not}")));
        asked.extend(self.exists.map(|exists| if exists { "exists" } else { "does not exist" }.to_owned()));
        asked.extend(self.empty.map(|empty| if empty { "is empty" } else { "is not empty" }.to_owned()));
        write!(f, "{} {}", self.place, asked.join(" and "))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Body { path, .. } => write!(f, "`{path}`"),
            Place::Attribute(name) => write!(f, "attribute `{name}`"),
            Place::Key => f.write_str("the key"),
        }
    }
}
