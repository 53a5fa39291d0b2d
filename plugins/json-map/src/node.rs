//! A template: what is to be made, as the settings say it.

use portway_json::Path;
use serde_json::Value as Literal;

use crate::step::Step;
use crate::text::TextTemplate;

/// A part of a template.
#[derive(Debug)]
pub(crate) enum Node {
    /// As it is written.
    Literal(Literal),
    Text(TextNode),
    From(FromNode),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A text with values in it.
#[derive(Debug)]
pub(crate) struct TextNode {
    /// Where it stands in the settings.
    pub place: String,
    pub template: TextTemplate,
    pub missing: Missing,
}

/// A value of the message.
#[derive(Debug)]
pub(crate) struct FromNode {
    /// Where it stands in the settings.
    pub place: String,
    /// The first that has a value counts.
    pub paths: Vec<Path>,
    pub default: Option<Literal>,
    pub missing: Missing,
    /// For every element of the array.
    pub each: Option<Box<Node>>,
    /// One after another, behind `each`.
    pub steps: Vec<Step>,
}

/// What becomes of a member whose value is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Omit,
    Null,
    Quarantine,
}

/// One rule: a member of the output.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Where it stands in the settings.
    pub place: String,
    pub to: Path,
    pub node: Node,
    /// Does not stay where it was.
    pub renames: Option<Path>,
}
