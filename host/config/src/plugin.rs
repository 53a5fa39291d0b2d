//! The use of a plugin: its name, its settings, what it may reach.

use std::collections::BTreeMap;

use portway_model::code;
use serde_json::Value as Json;
use toml::de::DeValue;

use crate::grants::GrantSettings;
use crate::list::words;
use crate::reader::{Node, Reader};
use crate::schema::Definitions;
use crate::text::read_string;
use crate::value::Value;
use crate::{At, ByteSize, Name, Place, Problem, ProjectPath};

group! {
    /// A transform or a sender: `[[destination.transform]]` or `[destination.sender]`.
    PluginUse at "destination.transform, destination.sender" in "interfaces/*.toml" {
        /// The plugin: one that comes with Portway, or a name under `plugins` in `portway.toml`.
        plugin: At<Name>;
        /// Settings of the plugin; its page says which there are.
        settings: PluginSettings, marked(Env), absent(Defaults);
        /// What it may reach, by the names of the slots in its manifest.
        grants: BTreeMap<Name, At<GrantSettings>> = BTreeMap::new();
        /// `shared`: uses with the same plugin and the same grants share instances.
        /// `call`: every call has a fresh one.
        isolation: Isolation = Isolation::Shared;
        /// Fuel for each message, instead of the engine's.
        fuel_per_message: Option<u64>, within(1_000_000, 1_000_000_000_000);
        /// Memory of an instance, instead of the engine's.
        memory_bytes_max: Option<ByteSize>, within(ByteSize::mb(1), ByteSize::mb(4_096));
    }
}

group! {
    /// A plugin of your own, by the name that interfaces use.
    PluginByPath at "plugins.NAME" in "portway.toml" {
        /// The component file.
        path: At<ProjectPath>;
        /// Let it take the name of a plugin that comes with Portway.
        replaces: bool = false;
        /// What builds the component, as a command of the shell in the project folder.
        /// `portway dev` runs it when something under `watch` changes; nothing else ever does.
        build: Option<At<String>>;
        /// Files and folders that the component is built from.
        watch: Vec<ProjectPath> = Vec::new();
    }
}

impl PluginByPath {
    /// What its options do not say of themselves.
    pub(crate) fn check(&self) -> Option<Problem> {
        match &self.build {
            Some(build) if self.watch.is_empty() => {
                let text = "`build` says how the plugin is built, and nothing says from what";
                let hint = "add such as `watch = [\"plugins/mine/src\"]`";
                Some(Problem::new(build.place.clone(), code::OPTION_MISSING, text).hint(hint))
            }
            None if !self.watch.is_empty() => {
                let text = "`watch` has no effect on a plugin without `build`";
                let hint = "remove it; the component file itself is watched all the same";
                Some(Problem::new(self.path.place.clone(), code::OPTION_UNUSED, text).hint(hint))
            }
            Some(_) | None => None,
        }
    }
}

/// How instances of a plugin are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    #[default]
    Shared,
    Call,
}

words!(Isolation { "shared" => Isolation::Shared, "call" => Isolation::Call });

/// Settings of a plugin, as its manifest's schema describes them. Where they stand makes no
/// difference between two.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    /// An object.
    pub json: Json,
    /// Where each value stands, by its JSON pointer; the table itself is under ``.
    pub places: BTreeMap<String, Place>,
}

impl PartialEq for PluginSettings {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for PluginSettings {}

impl PluginSettings {
    /// The place of a JSON pointer, or of the nearest value above it.
    pub fn place_of(&self, pointer: &str) -> Option<&Place> {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return Some(place);
            }
            pointer = pointer.rsplit_once('/')?.0;
        }
    }

    /// As a plugin is given them.
    pub fn to_text(&self) -> String {
        self.json.to_string()
    }
}

impl Value for PluginSettings {
    fn type_name() -> String {
        "table".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        if !matches!(node.value, DeValue::Table(_)) {
            reader.report_type(node, "a table");
            return None;
        }
        let mut places = BTreeMap::new();
        let json = read_json(node, reader, String::new(), &mut places)?;
        Some(PluginSettings { json, places })
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        serde_json::json!({ "type": "object" })
    }

    fn show(&self) -> String {
        if self.json.as_object().is_some_and(serde_json::Map::is_empty) { "{}" } else { "{ … }" }.to_owned()
    }

    fn read_absent(_reader: &mut Reader<'_>) -> Option<Self> {
        Some(PluginSettings { json: Json::Object(serde_json::Map::new()), places: BTreeMap::new() })
    }
}

/// A TOML value as JSON. Depth is bounded by the parser.
fn read_json(
    node: &Node<'_>,
    reader: &mut Reader<'_>,
    pointer: String,
    places: &mut BTreeMap<String, Place>,
) -> Option<Json> {
    places.insert(pointer.clone(), reader.place(node.span.start));
    match node.value {
        DeValue::String(_) => read_string(node, reader, "a text", None).map(Json::String),
        DeValue::Boolean(value) => Some(Json::Bool(*value)),
        DeValue::Datetime(value) => Some(Json::String(value.to_string())),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Json::from);
            number.or_else(|| report_number(node, reader))
        }
        DeValue::Float(float) => {
            let number = float.as_str().replace('_', "").parse().ok().and_then(serde_json::Number::from_f64);
            number.map(Json::Number).or_else(|| report_number(node, reader))
        }
        DeValue::Array(array) => {
            let items = array.iter().enumerate().map(|(at, item)| {
                let item = Node { value: item.get_ref(), span: item.span(), ..node.clone() };
                read_json(&item, reader, format!("{pointer}/{at}"), places)
            });
            items.collect::<Option<Vec<_>>>().map(Json::Array)
        }
        DeValue::Table(table) => {
            let entries = table.iter().map(|(key, value)| {
                let key: &str = key.get_ref();
                let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                let entry = Node { value: value.get_ref(), span: value.span(), key, mark: node.mark };
                read_json(&entry, reader, below, places).map(|value| (key.to_owned(), value))
            });
            entries.collect::<Option<serde_json::Map<_, _>>>().map(Json::Object)
        }
    }
}

fn report_number(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Json> {
    let hint = "numbers are finite, whole ones have at most 63 bits".to_owned();
    let text = format!("`{}` is a number that plugins cannot be given", node.key);
    reader.report(node.span.start, code::OUTSIDE_LIMITS, text, Some(hint));
    None
}
