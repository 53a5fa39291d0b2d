//! Reading a template: instructions, texts with values, and what is to be as it is written.

use portway_json::Path;
use serde_json::{Map as Table, Value as Literal};

use crate::date::Reformat;
use crate::judge::{Judge, inside};
use crate::node::{FromNode, Missing, Node, TextNode};
use crate::settings::MISSING;
use crate::step::{Other, Step, ValueMap};
use crate::text::has_values;

/// What stands beside `from`.
pub(crate) const FROM_KEYS: &[&str] = &["default", "missing", "as", "each"];
/// Tables and lists inside one another.
const DEPTH_MAX: usize = 32;
const PATHS_MAX: usize = 16;
const STEPS_MAX: usize = 16;

/// Reads parts of a template.
pub(crate) struct Reader<'j> {
    pub judge: &'j mut Judge,
    /// Where a part does not say it itself.
    pub missing: Missing,
}

impl Reader<'_> {
    /// What stands at a place. Where something is wrong, it is said, and anything is returned.
    pub(crate) fn node(&mut self, place: &str, written: &Literal, depth: usize) -> Node {
        if depth > DEPTH_MAX {
            self.judge.say(place, format!("stands deeper than {DEPTH_MAX} levels"));
            return Node::Literal(Literal::Null);
        }
        match written {
            Literal::String(text) if has_values(text) => self.text(place, written),
            Literal::Null | Literal::Bool(_) | Literal::Number(_) | Literal::String(_) => {
                Node::Literal(written.clone())
            }
            Literal::Array(elements) => {
                let nodes = elements.iter().enumerate();
                Node::Array(
                    nodes
                        .map(|(number, node)| self.node(&format!("{place}[{number}]"), node, depth + 1))
                        .collect(),
                )
            }
            Literal::Object(table) => self.table(place, table, depth),
        }
    }

    fn text(&mut self, place: &str, written: &Literal) -> Node {
        match self.judge.parsed(place, written) {
            Some(template) => {
                Node::Text(TextNode { place: place.to_owned(), template, missing: self.missing })
            }
            None => Node::Literal(Literal::Null),
        }
    }

    /// An instruction, or an object of the output.
    fn table(&mut self, place: &str, table: &Table<String, Literal>, depth: usize) -> Node {
        if let Some(paths) = table.get("from") {
            let known: Vec<&str> = std::iter::once("from").chain(FROM_KEYS.iter().copied()).collect();
            self.instruction_keys(place, table, &known);
            return self.value_at(place, "from", paths, table, depth);
        }
        if let Some(literal) = table.get("literal") {
            self.instruction_keys(place, table, &["literal"]);
            return Node::Literal(literal.clone());
        }
        match table.get("object") {
            None => self.object(place, table, depth),
            Some(members) => {
                self.instruction_keys(place, table, &["object"]);
                let place = inside(place, "object");
                match members {
                    Literal::Object(members) => self.object(&place, members, depth),
                    _ => {
                        self.judge.say(&place, "is not a table of members");
                        Node::Literal(Literal::Null)
                    }
                }
            }
        }
    }

    fn object(&mut self, place: &str, table: &Table<String, Literal>, depth: usize) -> Node {
        let members = table.iter();
        Node::Object(
            members
                .map(|(name, node)| (name.clone(), self.node(&inside(place, name), node, depth + 1)))
                .collect(),
        )
    }

    /// A table with `from`, `literal` or `object` is an instruction; a member of the output may be
    /// called so, too, and then somebody has to be told how to write that.
    fn instruction_keys(&mut self, place: &str, table: &Table<String, Literal>, known: &[&str]) {
        if table.keys().all(|key| known.contains(&key.as_str())) {
            return;
        }
        self.judge.keys(place, table, known);
        self.judge.say(place, "if these are members of the output, write `{ object = { … } }` around them");
    }

    /// A value of the message, by `from` or `rename` and what stands beside it.
    pub(crate) fn value(
        &mut self,
        place: &str,
        key: &str,
        paths: &Literal,
        table: &Table<String, Literal>,
    ) -> Node {
        self.value_at(place, key, paths, table, 0)
    }

    fn value_at(
        &mut self,
        place: &str,
        key: &str,
        paths: &Literal,
        table: &Table<String, Literal>,
        depth: usize,
    ) -> Node {
        let paths = self.paths(&inside(place, key), paths);
        let missing = table.get("missing");
        let missing = missing.and_then(|value| self.judge.word(&inside(place, "missing"), value, MISSING));
        let each = table.get("each").map(|each| Box::new(self.node(&inside(place, "each"), each, depth + 1)));
        let steps = table.get("as").map_or_else(Vec::new, |steps| self.steps(&inside(place, "as"), steps));
        Node::From(FromNode {
            place: place.to_owned(),
            paths,
            default: table.get("default").cloned(),
            missing: missing.unwrap_or(self.missing),
            each,
            steps,
        })
    }

    fn paths(&mut self, place: &str, written: &Literal) -> Vec<Path> {
        match written {
            Literal::Array(paths) if (1..=PATHS_MAX).contains(&paths.len()) => {
                let paths = paths.iter().enumerate();
                paths
                    .filter_map(|(number, path)| self.judge.parsed(&format!("{place}[{number}]"), path))
                    .collect()
            }
            Literal::String(_) => self.judge.parsed(place, written).into_iter().collect(),
            _ => {
                self.judge.say(place, format!("is neither a path nor a list of 1 to {PATHS_MAX} paths"));
                Vec::new()
            }
        }
    }

    fn steps(&mut self, place: &str, written: &Literal) -> Vec<Step> {
        match written {
            Literal::Array(steps) if steps.len() <= STEPS_MAX => {
                let steps = steps.iter().enumerate();
                steps.filter_map(|(number, step)| self.step(&format!("{place}[{number}]"), step)).collect()
            }
            Literal::Array(_) => {
                self.judge.say(place, format!("has more than {STEPS_MAX} steps"));
                Vec::new()
            }
            _ => self.step(place, written).into_iter().collect(),
        }
    }

    fn step(&mut self, place: &str, written: &Literal) -> Option<Step> {
        let Literal::Object(table) = written else {
            let words = Step::WORDS.map(|word| (word, word));
            return Step::of_word(self.judge.word(place, written, &words)?);
        };
        let known: &[&str] =
            if table.contains_key("map") { &["map", "other"] } else { &["date", "join", "map", "split"] };
        self.judge.keys(place, table, known);
        let (key, written) = table.iter().find(|(key, _)| known.contains(&key.as_str()))?;
        let inner = inside(place, key);
        match key.as_str() {
            "split" => self.separator(&inner, written).map(Step::Split),
            "join" => self.judge.text(&inner, written).map(|text| Step::Join(text.to_owned())),
            "date" => self.date(&inner, written).map(Step::Date),
            _ if table.len() > 1 && !table.contains_key("map") => None,
            _ => self.value_map(place, table).map(Step::Map),
        }
    }

    fn separator(&mut self, place: &str, written: &Literal) -> Option<String> {
        let text = self.judge.text(place, written)?;
        if text.is_empty() {
            self.judge.say(place, "is empty, and a text cannot be split at nothing");
            return None;
        }
        Some(text.to_owned())
    }

    fn date(&mut self, place: &str, written: &Literal) -> Option<Reformat> {
        let Literal::Object(table) = written else {
            self.judge.say(place, "is not a table with `from` and `to`");
            return None;
        };
        self.judge.keys(place, table, &["from", "to"]);
        let mut form = |key| match table.get(key) {
            Some(form) => self.judge.text(&inside(place, key), form),
            None => {
                self.judge.say(place, format!("`{key}` is missing"));
                None
            }
        };
        let (from, to) = (form("from"), form("to"));
        match Reformat::new(from?, to?) {
            Ok(reformat) => Some(reformat),
            Err(text) => {
                self.judge.say(place, text);
                None
            }
        }
    }

    fn value_map(&mut self, place: &str, table: &Table<String, Literal>) -> Option<ValueMap> {
        let Some(Literal::Object(values)) = table.get("map") else {
            self.judge.say(&inside(place, "map"), "is not a table of values and what stands for them");
            return None;
        };
        let other = match table.get("other") {
            None => Other::Quarantine,
            Some(Literal::Object(literal)) if literal.len() == 1 && literal.contains_key("literal") => {
                Other::Literal(literal.get("literal").cloned().unwrap_or_default())
            }
            Some(word) => {
                let words = ["quarantine", "keep", "null"].map(|word| (word, word));
                match self.judge.word(&inside(place, "other"), word, &words)? {
                    "keep" => Other::Keep,
                    "null" => Other::Literal(Literal::Null),
                    _ => Other::Quarantine,
                }
            }
        };
        let values = values.iter().map(|(value, meant)| (value.clone(), meant.clone())).collect();
        Some(ValueMap { values, other })
    }
}
