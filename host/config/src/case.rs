//! `case.toml`: what a test case of an interface lays down beside its input.
//!
//! How a case is run is the business of `portway test`.

use std::path::Path;

use portway_model::code;
use serde_json::{Value as Json, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toml::de::DeValue;

use crate::files::read_text;
use crate::list::words;
use crate::reader::{Node, Reader};
use crate::schema::Definitions;
use crate::secret::Names;
use crate::value::Value;
use crate::{At, Environment, Name, Place, PluginSettings, Problem, Problems};

group! {
    /// A test case, where its input alone does not say everything.
    CaseFile at "" in "tests/*/*/case.toml" {
        /// The time that plugins see, such as `2026-01-31T12:00:00Z`.
        clock: Moment = Moment::START;
        /// The key of the message, instead of what the source found.
        key: Option<String>;
        /// Attributes, laid over those that the source found.
        attributes: PluginSettings, absent(Defaults);
        /// Settings of plugins, laid over those of the interface.
        settings: Vec<CaseSettings> = Vec::new();
        /// What web services answer; without any for a destination its sender is not asked.
        answer: Vec<CaseAnswer> = Vec::new();
    }
}

group! {
    /// Settings of one plugin in a case, as `[[settings]]`.
    CaseSettings at "settings" in "tests/*/*/case.toml" {
        /// The destination; none: the source.
        destination: Option<At<Name>>;
        /// Which of its transforms, counted from 1; none: the sender.
        transform: Option<u32>, within(1, 16);
        /// What is laid over the settings of the interface, member by member.
        values: PluginSettings;
    }
}

group! {
    /// What a web service answers in a case, as `[[answer]]`.
    /// They are given in their order, one a request; the last also answers all that follow.
    CaseAnswer at "answer" in "tests/*/*/case.toml" {
        /// The destination whose plugin asks; none: the source.
        destination: Option<At<Name>>;
        /// Which of its transforms asks, counted from 1; none: the sender.
        transform: Option<u32>, within(1, 16);
        /// The status.
        status: u16 = 200, within(200, 599);
        /// Headers by their names.
        headers: PluginSettings, absent(Defaults);
        /// The body.
        body: Text = Text::default();
        /// Instead of an answer: the request takes too long, or nobody can be reached.
        fails: Option<AnswerFailure>;
    }
}

impl Default for CaseFile {
    fn default() -> Self {
        let nothing = PluginSettings { json: json!({}), places: std::collections::BTreeMap::new() };
        CaseFile {
            clock: Moment::START,
            key: None,
            attributes: nothing,
            settings: Vec::new(),
            answer: Vec::new(),
        }
    }
}

impl CaseFile {
    /// The file's name.
    pub const FILE: &str = "case.toml";
}

/// Why a web service gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFailure {
    Timeout,
    Unreachable,
}

words!(AnswerFailure { "timeout" => AnswerFailure::Timeout, "unreachable" => AnswerFailure::Unreachable });

/// A point in time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub u64);

impl Moment {
    /// 2026-01-01T00:00:00Z: what cases have that say nothing.
    pub const START: Moment = Moment(1_767_225_600_000);

    fn parse(text: &str) -> Option<Moment> {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok().map(Moment)
    }
}

impl Value for Moment {
    fn type_name() -> String {
        "date and time".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write such as `2026-01-31T12:00:00Z`, from 1970 on";
        let moment = match node.value {
            DeValue::Datetime(time) => Moment::parse(&time.to_string()),
            DeValue::String(text) => Moment::parse(text),
            _ => {
                reader.report_type_with(node, "a date and time", Some(hint.to_owned()));
                return None;
            }
        };
        if moment.is_none() {
            let text = format!("`{}` is not a date and time with its offset", node.key);
            reader.report(node.span.start, code::BAD_VALUE, text, Some(hint.to_owned()));
        }
        moment
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        json!({ "type": "string", "format": "date-time" })
    }

    fn show(&self) -> String {
        let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000);
        time.ok().and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
    }
}

/// A text with any characters and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub String);

impl Value for Text {
    fn type_name() -> String {
        "text, also of several lines".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        crate::text::read_string(node, reader, "a text", None).map(Text)
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        crate::schema::text()
    }

    fn show(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Reads the `case.toml` of a case's folder; without one everything is as it is by default.
pub fn read_case(folder: &Path, shown: &str) -> Result<CaseFile, Problems> {
    let path = folder.join(CaseFile::FILE);
    let shown = format!("{shown}/{}", CaseFile::FILE);
    let text = match path.exists() {
        true => read_text(&path).map_err(|why| {
            Problems::new(vec![Problem::new(Place::of_file(&shown), code::FILE_UNREADABLE, why)])
        })?,
        false => String::new(),
    };
    check_case(&shown, &text)
}

fn check_case(shown: &str, text: &str) -> Result<CaseFile, Problems> {
    let (environment, secrets) = (Environment::default(), crate::secrets::Secrets::default());
    let names = Names { environment: &environment, secrets: &secrets };
    let (case, mut problems) = Reader::file(shown, text, &names, Path::new(""), CaseFile::read_table);
    if let Some(case) = &case {
        let headers = case.answer.iter().map(|answer| &answer.headers);
        for table in headers.chain([&case.attributes]) {
            check_texts(table, shown, &mut problems);
        }
    }
    match case {
        Some(case) if problems.is_empty() => Ok(case),
        _ => Err(Problems::new(problems)),
    }
}

/// Attributes and headers are names and texts.
fn check_texts(table: &PluginSettings, shown: &str, problems: &mut Vec<Problem>) {
    for (name, value) in table.json.as_object().into_iter().flatten() {
        if !value.is_string() {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let place = table.place_of(&pointer).cloned().unwrap_or_else(|| Place::of_file(shown));
            let text = format!("`{}` is not a text", crate::reader::shorten(name));
            problems.push(Problem::new(place, code::WRONG_TYPE, text).hint("write it in quotes"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_says_its_clock_settings_and_answers() {
        let text = "clock = 2026-03-01T10:00:00+01:00\nattributes = { \"hl7.type\" = \"ORU^R01\" }\n\
             [[settings]]\nvalues = { key = \"PID-3\" }\n[[answer]]\ndestination = \"api\"\nstatus = 503\nbody = \"a\\nb\"\n";
        let case = check_case("case.toml", text).unwrap();
        assert_eq!(case.clock.show(), "2026-03-01T09:00:00Z");
        assert_eq!((case.answer[0].status, case.answer[0].body.0.as_str()), (503, "a\nb"));
        assert_eq!(check_case("case.toml", "").unwrap().clock, Moment::START);
        assert_eq!(Moment::START.show(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_wrong_in_a_case_has_its_place() {
        let problems = |text| check_case("case.toml", text).unwrap_err().to_string();
        assert!(problems("clock = 2026-03-01").contains("case.toml:1:9: `clock` is not a date"));
        assert!(problems("attributes = { a = 1 }").contains("`a` is not a text"));
        assert!(problems("[[answer]]\nstatus = 99\n").contains("`status` is 99, outside its limits"));
    }
}
