//! From settings to conditions and the reader of the bodies they look at.

use portway_sdk::Failure;

use crate::{
    BodySettings, Case, Condition, ConditionSettings, PlaceSettings, Reader, Scalar,
    body::Paths,
    check::{Check, Scalars},
    condition::{Node, Place, Test},
    settings::unfit,
};

/// Conditions of one plugin, nested ones counted.
pub const CONDITIONS_MAX: usize = 1_000;
/// How deeply conditions stand in one another.
pub const DEPTH_MAX: usize = 16;
/// Values of one plugin to compare with.
pub const SCALARS_MAX: usize = 10_000;

/// Collects what conditions look at.
pub struct Compiler {
    case: Case,
    paths: Paths,
    conditions: usize,
    scalars: usize,
}

impl Compiler {
    /// Fails where the bodies cannot be read like this.
    pub fn new(body: &BodySettings, case: Case) -> Result<Compiler, Failure> {
        Ok(Compiler { case, paths: Paths::new(body)?, conditions: 0, scalars: 0 })
    }

    /// The condition at a place of the settings, which is named in a failure.
    pub fn condition(&mut self, settings: &ConditionSettings, at: &str) -> Result<Condition, Failure> {
        self.node(settings, at, 1).map(Condition)
    }

    /// The reader of the bodies.
    pub fn finish(self) -> Reader {
        Reader { paths: self.paths }
    }

    fn node(&mut self, settings: &ConditionSettings, at: &str, depth: usize) -> Result<Node, Failure> {
        self.conditions += 1;
        if self.conditions > CONDITIONS_MAX {
            return Err(unfit(at, format!("there are more than {CONDITIONS_MAX} conditions")));
        }
        if depth > DEPTH_MAX {
            return Err(unfit(at, format!("conditions stand more than {DEPTH_MAX} deep in one another")));
        }
        let groups = [("all", &settings.all), ("any", &settings.any), ("none", &settings.none)];
        let mut given = groups.iter().filter_map(|(name, list)| Some((*name, list.as_ref()?)));
        let Some((name, list)) = given.next() else { return self.test(settings, at).map(Node::Test) };
        if given.next().is_some() {
            return Err(unfit(at, "write one of `all`, `any` and `none`; nest them to combine them"));
        }
        let rest = ConditionSettings { all: None, any: None, none: None, ..settings.clone() };
        if rest != ConditionSettings::default() {
            return Err(unfit(at, format!("beside `{name}` nothing else is asked; put it into the list")));
        }
        if list.is_empty() {
            return Err(unfit(at, format!("`{name}` is an empty list")));
        }
        let mut nodes = Vec::with_capacity(list.len());
        for (index, inner) in list.iter().enumerate() {
            nodes.push(self.node(inner, &format!("{at}.{name}[{index}]"), depth + 1)?);
        }
        Ok(match name {
            "all" => Node::All(nodes),
            "any" => Node::Any(nodes),
            _ => Node::None(nodes),
        })
    }

    fn test(&mut self, settings: &ConditionSettings, at: &str) -> Result<Test, Failure> {
        let place = self.place(&settings.place(), at)?;
        let case = self.case;
        let mut each = Vec::new();
        if let Some(scalar) = &settings.equals {
            each.push(Check::IsOneOf(self.scalars(std::slice::from_ref(scalar), at)?));
        }
        if let Some(scalars) = &settings.one_of {
            each.push(Check::IsOneOf(self.scalars(scalars, at)?));
        }
        each.extend(settings.begins_with.as_ref().map(|text| Check::begins_with(text, case)));
        each.extend(settings.contains.as_ref().map(|text| Check::contains(text, case)));
        if let Some(pattern) = &settings.matches {
            let check = Check::matches(pattern, case)
                .map_err(|error| unfit(at, format!("`{pattern}` is no usable pattern: {error}")))?;
            each.push(check);
        }
        each.extend(settings.greater.map(Check::Greater));
        each.extend(settings.less.map(Check::Less));
        each.extend(settings.at_least.map(Check::AtLeast));
        each.extend(settings.at_most.map(Check::AtMost));
        let not = settings.not.as_ref().map(|scalars| self.scalars(scalars, at)).transpose()?;
        let test = Test { place, each, not, exists: settings.exists, empty: settings.empty };
        let asks_nothing =
            test.each.is_empty() && test.not.is_none() && test.exists.is_none() && test.empty.is_none();
        if asks_nothing {
            return Err(unfit(at, format!("nothing is asked of {}, such as `equals`", test.place)));
        }
        Ok(test)
    }

    fn scalars(&mut self, scalars: &[Scalar], at: &str) -> Result<Scalars, Failure> {
        if scalars.is_empty() {
            return Err(unfit(at, "a list of values is empty"));
        }
        self.scalars += scalars.len();
        if self.scalars > SCALARS_MAX {
            return Err(unfit(at, format!("there are more than {SCALARS_MAX} values to compare with")));
        }
        Ok(Scalars::new(scalars, self.case))
    }

    fn place(&mut self, settings: &PlaceSettings, at: &str) -> Result<Place, Failure> {
        let place = match (&settings.path, &settings.attribute, settings.key) {
            (Some(path), None, false) => {
                let index = self.paths.add(path).map_err(|why| unfit(at, why))?;
                Place::Body { index, path: path.clone() }
            }
            (None, Some(name), false) => Place::Attribute(name.to_lowercase()),
            (None, None, true) => Place::Key,
            (None, None, false) => {
                return Err(unfit(
                    at,
                    "a condition says where it looks: `path`, `attribute` or `key = true`",
                ));
            }
            _ => return Err(unfit(at, "a condition looks at one of `path`, `attribute` and `key`")),
        };
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use portway_sdk::Message;

    use super::*;
    use crate::{BodyKind, ReadError};

    fn compile(kind: BodyKind, json: &str) -> Result<(Condition, Reader), String> {
        let settings = portway_sdk::parse_settings(json).map_err(|failure| failure.text)?;
        let body = BodySettings { kind, ..BodySettings::default() };
        let mut compiler = Compiler::new(&body, Case::Sensitive).map_err(|failure| failure.text)?;
        let condition = compiler.condition(&settings, "when").map_err(|failure| failure.text)?;
        Ok((condition, compiler.finish()))
    }

    fn refused(kind: BodyKind, json: &str) -> String {
        compile(kind, json).map_or_else(|text| text, |(condition, _)| format!("compiled: {condition}"))
    }

    /// Whether a condition on JSON holds for a body, with a key and an attribute beside it.
    fn holds(json: &str, body: &str) -> Result<bool, ReadError> {
        let (condition, reader) = compile(BodyKind::Json, json).unwrap();
        let message =
            Message::new(body).with_key("k1").with_attribute("type", "oru").with_attribute("type", "x");
        condition.holds(&reader.facts(&message))
    }

    #[test]
    fn every_operator_asks_what_its_name_says() {
        let body = r#"{"a":[5,"abc",null],"e":"","o":{}}"#;
        let table = [
            (r#"{"path":"/a/*","equals":"abc"}"#, true),
            (r#"{"path":"/a/*","equals":"ab"}"#, false),
            (r#"{"path":"/a/*","one_of":["x",5]}"#, true),
            (r#"{"path":"/a/*","not":"abc"}"#, false),
            (r#"{"path":"/a/*","not":["x","y"]}"#, true),
            (r#"{"path":"/x","not":"abc"}"#, true),
            (r#"{"path":"/a/1","begins_with":"ab"}"#, true),
            (r#"{"path":"/a/1","contains":"bc"}"#, true),
            (r#"{"path":"/a/*","matches":"^[a-c]+$"}"#, true),
            (r#"{"path":"/a/2","exists":true}"#, true),
            (r#"{"path":"/a/3","exists":false}"#, true),
            (r#"{"path":"/a/2","empty":true}"#, true),
            (r#"{"path":"/x","empty":true}"#, true),
            (r#"{"path":"/o","empty":true}"#, true),
            (r#"{"path":"/a","empty":false}"#, true),
            (r#"{"path":"/e","equals":""}"#, true),
            (r#"{"path":"/a/0","greater":4.9,"less":5.1}"#, true),
            (r#"{"path":"/a/0","at_least":5,"at_most":5}"#, true),
            (r#"{"path":"/a/0","greater":5}"#, false),
            (r#"{"path":"/a/*","begins_with":"a","equals":5}"#, false),
            (r#"{"key":true,"equals":"k1"}"#, true),
            (r#"{"attribute":"Type","equals":"x"}"#, true),
            (r#"{"attribute":"other","exists":false}"#, true),
        ];
        for (condition, expected) in table {
            assert_eq!(holds(condition, body), Ok(expected), "{condition}");
        }
    }

    #[test]
    fn groups_combine_and_nest() {
        let (yes, no) = (r#"{"key":true,"exists":true}"#, r#"{"key":true,"exists":false}"#);
        let group = |name: &str, list: &[&str]| format!(r#"{{"{name}":[{}]}}"#, list.join(","));
        for (name, expected) in
            [("all", [true, false, false]), ("any", [true, true, false]), ("none", [false, false, true])]
        {
            let outcomes =
                [[yes, yes], [yes, no], [no, no]].map(|list| holds(&group(name, &list), "{}").unwrap());
            assert_eq!(outcomes, expected, "{name}");
        }
        let nested = group("all", &[&group("any", &[no, yes]), &group("none", &[no])]);
        assert_eq!(holds(&nested, "{}"), Ok(true));
    }

    #[test]
    fn a_body_is_read_once_and_only_where_an_answer_needs_it() {
        let condition = r#"{"any":[{"attribute":"type","equals":"oru"},{"path":"/a","equals":1}]}"#;
        let (condition, reader) = compile(BodyKind::Json, condition).unwrap();
        let known = Message::new("no JSON").with_attribute("type", "oru");
        let facts = reader.facts(&known);
        assert_eq!((condition.holds(&facts), facts.is_read()), (Ok(true), false));
        let unknown = Message::new("no JSON");
        let facts = reader.facts(&unknown);
        assert!(condition.holds(&facts).is_err() && facts.is_read());
    }

    #[test]
    fn a_body_that_is_too_long_is_not_read() {
        let body = "1".repeat(crate::BODY_BYTES_MAX as usize + 1);
        let error = holds(r#"{"path":"","equals":1}"#, &body).unwrap_err();
        assert!(matches!(error, ReadError::Unreadable(text) if text.contains("is not read for its values")));
    }

    #[test]
    fn a_condition_is_told_in_words() {
        let told = |json| compile(BodyKind::Hl7, json).unwrap().0.to_string();
        assert_eq!(
            told(r#"{"all":[{"path":"MSH-9.2","one_of":["A01",2]},{"any":[{"key":true,"empty":false}]}]}"#),
            "all of (`MSH-9.2` is one of `A01`, 2; any of (the key is not empty))"
        );
        assert_eq!(
            told(r#"{"attribute":"a","not":"x","at_least":1,"matches":"^b"}"#),
            "attribute `a` matches `^b` and is at least 1 and is not `x`"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_place() {
        let table = [
            ("{}", "setting `when`: a condition says where it looks"),
            (r#"{"key":true}"#, "setting `when`: nothing is asked of the key"),
            (r#"{"key":true,"path":"MSH-9","exists":true}"#, "looks at one of"),
            (r#"{"path":"MSH9","exists":true}"#, "`MSH9` is no path like"),
            (r#"{"any":[],"key":true}"#, "beside `any` nothing else is asked"),
            (r#"{"any":[]}"#, "`any` is an empty list"),
            (r#"{"any":[{}],"all":[{}]}"#, "write one of `all`, `any` and `none`"),
            (r#"{"any":[{"key":true,"matches":"("}]}"#, "setting `when.any[0]`: `(` is no usable pattern"),
            (r#"{"key":true,"one_of":[]}"#, "a list of values is empty"),
        ];
        for (json, expected) in table {
            let text = refused(BodyKind::Hl7, json);
            assert!(text.contains(expected), "{json}: {text}");
        }
        let text = refused(BodyKind::Attributes, r#"{"path":"MSH-9","exists":true}"#);
        assert!(text.contains("leads into the body: say with `body` what it is"), "{text}");
    }

    #[test]
    fn conditions_are_limited_in_number_depth_and_values() {
        let one = r#"{"key":true,"exists":true}"#;
        let many = format!(r#"{{"any":[{}]}}"#, vec![one; CONDITIONS_MAX].join(","));
        assert!(refused(BodyKind::Hl7, &many).contains("more than 1000 conditions"));
        let deep = format!("{}{one}{}", r#"{"any":["#.repeat(DEPTH_MAX), "]}".repeat(DEPTH_MAX));
        assert!(refused(BodyKind::Hl7, &deep).contains("more than 16 deep"));
        let values = format!(r#"{{"key":true,"one_of":[{}1]}}"#, "1,".repeat(SCALARS_MAX));
        assert!(refused(BodyKind::Hl7, &values).contains("more than 10000 values"));
    }
}
