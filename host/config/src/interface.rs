//! One interface: a file under `interfaces/`.

use std::time::Duration;

use portway_model::{Quarantined, Term, Tier};

use serde_json::Value as Json;

use crate::list::words;
use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::value::{Value, read_form};
use crate::{DestinationSettings, Name, Place, Role, SourceSettings};

group! {
    /// One interface. The file's name is the interface's name.
    InterfaceFile at "" in "interfaces/*.toml" {
        /// What an acknowledgement promises.
        /// `strict`: the message survives a power loss. `relaxed`: it survives the end of the process only.
        durability: Durability = Durability::Strict;
        /// How long a message is known as a duplicate of an earlier one with the same dedupe key; `"0s"`: never.
        dedupe_window: Duration = Duration::from_secs(86_400), within(Duration::ZERO, Duration::from_secs(366 * 86_400));
        /// What messages are found by with `portway message list`: `key`, and names of attributes.
        /// Each costs an entry in an index for every message. If nothing is said: the key, and `hl7.control-id` of an `mllp` source.
        search: Option<Vec<SearchName>>;
        /// How long finished messages are kept, if not as long as `store.retention` says.
        /// A shorter one waits for `portway retention confirm`.
        retention: Option<Tier>;
        /// What becomes of quarantined messages that are as old.
        /// `keep`: they stay until somebody decides. `purge`: they go with the rest.
        quarantined: Quarantined = Quarantined::Keep;
        /// Where it receives from.
        source: Option<SourceSettings>;
        /// Where it delivers.
        destination: Vec<DestinationSettings> = Vec::new();
    }
}

/// One interface, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSettings {
    pub name: Name,
    /// Its file.
    pub place: Place,
    pub durability: Durability,
    /// None: dedupe keys are not looked up.
    pub dedupe_window: Option<Duration>,
    /// What its messages are found by: `key`, and names of attributes.
    pub search: Vec<String>,
    /// None: as the store says.
    pub retention: Option<Tier>,
    pub quarantined: Quarantined,
    /// None: only routes lead to it.
    pub source: Option<SourceSettings>,
    pub destinations: Vec<DestinationSettings>,
}

impl InterfaceSettings {
    pub(crate) fn new(name: Name, place: Place, file: InterfaceFile) -> Self {
        InterfaceSettings {
            name,
            place,
            durability: file.durability,
            dedupe_window: (!file.dedupe_window.is_zero()).then_some(file.dedupe_window),
            search: searchable(file.search, file.source.as_ref()),
            retention: file.retention,
            quarantined: file.quarantined,
            source: file.source,
            destinations: file.destination,
        }
    }

    /// The plugins it uses, each as often as it is used.
    pub fn plugins(&self) -> impl Iterator<Item = (Role, &str)> {
        let source = self.source.iter().map(|source| (Role::Source, &source.plugin));
        let transforms = self.destinations.iter().flat_map(|one| &one.transform);
        let transforms = transforms.map(|transform| (Role::Transform, &transform.plugin));
        let senders = self.destinations.iter().flat_map(|one| &one.sender);
        let senders = senders.map(|sender| (Role::Sender, &sender.plugin));
        source.chain(transforms).chain(senders).map(|(role, plugin)| (role, plugin.value.as_str()))
    }
}

/// Names that are given, or the usual ones of a source.
fn searchable(given: Option<Vec<SearchName>>, source: Option<&SourceSettings>) -> Vec<String> {
    if let Some(given) = given {
        return given.into_iter().map(|SearchName(name)| name).collect();
    }
    let is_mllp = source.is_some_and(|source| source.plugin.value.as_str() == "mllp");
    let usual = [Term::KEY].into_iter().chain(is_mllp.then_some("hl7.control-id"));
    usual.map(str::to_owned).collect()
}

/// `key`, or the name of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchName(String);

impl Value for SearchName {
    fn type_name() -> String {
        "name of an attribute".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write `\"key\"`, or such as `\"hl7.control-id\"`: lower-case ASCII, at most 64 bytes";
        read_form(node, reader, "the name of an attribute", hint, |text| {
            let is_name = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
            let is_good = (1..=64).contains(&text.len()) && text.bytes().all(is_name);
            is_good.then(|| SearchName(text.to_owned()))
        })
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

/// What an acknowledgement promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Strict,
    Relaxed,
}

words!(Durability { "strict" => Durability::Strict, "relaxed" => Durability::Relaxed });

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn problems(window: &str) -> String {
        crate::check_text("interfaces/t.toml", &format!("dedupe_window = {window}\n")).to_string()
    }

    #[test]
    fn what_is_searchable_is_named_or_usual_for_the_source() {
        let search = |more: &str, source: &str| {
            let text = format!("{more}\n{source}");
            let names = crate::secret::Names {
                environment: &crate::Environment::default(),
                secrets: &crate::secrets::Secrets::default(),
            };
            let path = std::path::Path::new("/p");
            let (file, _) = Reader::file("t.toml", &text, &names, path, InterfaceFile::read_table);
            let name = Name::new("t").unwrap();
            InterfaceSettings::new(name, Place::of_file("t.toml"), file.unwrap()).search
        };
        let mllp = "[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:1\"";
        assert_eq!(search("", ""), ["key"]);
        assert_eq!(search("", mllp), ["key", "hl7.control-id"]);
        assert_eq!(search("search = [\"hl7.type\"]", mllp), ["hl7.type"]);
        assert_eq!(search("search = []", mllp), [""; 0]);
        let problems = crate::check_text("interfaces/t.toml", "search = [\"No name\"]\n").to_string();
        assert!(problems.contains("`search` is not the name of an attribute"), "{problems}");
    }

    #[test]
    fn a_dedupe_window_has_its_limits() {
        for window in ["\"0s\"", "\"1s\"", "\"366d\""] {
            assert_eq!(problems(window), "", "{window}");
        }
        expect![[r#"
            interfaces/t.toml:1:17: `dedupe_window` is "367d", outside its limits
              hint: write something from "0s" to "366d"
            interfaces/t.toml:1:17: `dedupe_window` is not a duration
              hint: write such as `"500ms"`, `"30s"`, `"10m"`, `"2h"` or `"30d"`
            interfaces/t.toml:1:17: `dedupe_window` is an integer, not a duration
              hint: write such as `"500ms"`, `"30s"`, `"10m"`, `"2h"` or `"30d"`"#]]
        .assert_eq(&["\"367d\"", "\"-1s\"", "60"].map(problems).join("\n"));
    }
}
