//! JSON Schema of project files, so that editors complete them and say what is wrong.
//!
//! The groups of options say what there is; what plugins take is asked of the caller. A schema
//! is a help while writing: what decides is the reader of the settings.

use serde_json::{Map, Value as Json, json};

use crate::case::CaseFile;
use crate::group::{OptionDoc, join_lines};
use crate::interface::InterfaceFile;
use crate::project::ProjectFile;
use crate::template::Mark;
use crate::value::Value;
use crate::{Name, Role};

/// Definitions of one schema by their names.
pub(crate) type Definitions = Map<String, Json>;

/// The dialect that editors of TOML know.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// A plugin as the schema of interfaces needs it.
#[derive(Clone, Debug)]
pub struct PluginSchema {
    pub role: Role,
    /// As a project writes it.
    pub name: String,
    pub description: String,
    /// The JSON Schema of its settings.
    pub settings: Json,
    pub slots: Vec<SlotSchema>,
}

/// Something a plugin may be granted.
#[derive(Clone, Debug)]
pub struct SlotSchema {
    pub name: String,
    pub description: String,
    pub required: bool,
}

/// The schema of every kind of project file: its file name and its text.
pub fn schemas(plugins: &[PluginSchema]) -> Vec<(&'static str, String)> {
    let mut interface = root::<InterfaceFile>("interfaces/*.toml");
    add_plugins(&mut interface, plugins);
    let schemas = [
        ("portway.schema.json", root::<ProjectFile>("portway.toml")),
        ("interface.schema.json", interface),
        ("case.schema.json", root::<CaseFile>("tests/INTERFACE/CASE/case.toml")),
    ];
    let text = |schema: &Json| serde_json::to_string_pretty(schema).unwrap_or_default() + "\n";
    schemas.iter().map(|(name, schema)| (*name, text(schema))).collect()
}

/// A whole schema; the group of the file itself stands at its top.
fn root<F: Value>(file: &str) -> Json {
    let mut definitions = Definitions::new();
    let reference = F::schema(&mut definitions);
    let name = reference["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let mut schema = definitions.remove(name).unwrap_or(Json::Null);
    schema["$schema"] = json!(DIALECT);
    schema["title"] = json!(file);
    schema["definitions"] = Json::Object(definitions);
    schema
}

/// A reference to a definition.
pub(crate) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// A string of which the schema says no more.
pub(crate) fn text() -> Json {
    json!({ "type": "string" })
}

/// A string of a form, which is a regular expression that editors know.
pub(crate) fn form(pattern: &str) -> Json {
    json!({ "type": "string", "pattern": pattern })
}

/// One group: a table with these options. A group that `type` chooses has the key `tag`.
pub(crate) fn of_group(docs: &[&str], tag: Option<&str>, options: &[OptionDoc], values: Vec<Json>) -> Json {
    let mut properties = Map::new();
    if let Some(tag) = tag {
        properties.insert(tag.to_owned(), text());
    }
    for (option, value) in options.iter().zip(values) {
        properties.insert(option.key.to_owned(), of_option(option, value));
    }
    let required: Vec<&str> =
        options.iter().filter(|option| option.required).map(|option| option.key).collect();
    let mut schema = json!({
        "type": "object",
        "description": join_lines(docs),
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn of_option(option: &OptionDoc, value: Json) -> Json {
    // Beside a reference everything else is ignored in this dialect.
    let mut schema = match value.get("$ref") {
        Some(_) => json!({ "allOf": [value] }),
        None => value,
    };
    let mut description = option.text.clone();
    if let Some((least, most)) = &option.limits {
        let whole = |shown: &str| shown.parse::<u64>().ok();
        match (whole(least), whole(most)) {
            (Some(least), Some(most)) => {
                schema["minimum"] = json!(least);
                schema["maximum"] = json!(most);
            }
            _ => description.push_str(&format!(" From `{least}` to `{most}`.")),
        }
    }
    match option.mark {
        Mark::None => {}
        Mark::Env => description.push_str(" `${env:NAME}` may stand in it."),
        Mark::Secret => description.push_str(" `${env:NAME}` and `${secret:NAME}` may stand in it."),
    }
    if !description.trim().is_empty() {
        schema["description"] = json!(description.trim());
    }
    if let Some(default) = option.default.as_deref().and_then(default_of) {
        schema["default"] = default;
    }
    schema
}

/// A default as it is written in a file, as JSON.
fn default_of(shown: &str) -> Option<Json> {
    let table: toml::Table = format!("value = {shown}").parse().ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

/// One of several groups, chosen by `type`.
pub(crate) fn by_type(groups: Vec<(&str, Json)>) -> Json {
    let one = |(word, group): (&str, Json)| {
        json!({
            "allOf": [group],
            "type": "object",
            "properties": { "type": { "const": word } },
            "required": ["type"],
        })
    };
    json!({ "oneOf": groups.into_iter().map(one).collect::<Vec<_>>() })
}

/// Lets the uses of plugins say which there are, and what each takes.
fn add_plugins(schema: &mut Json, plugins: &[PluginSchema]) {
    let mut roles = Vec::new();
    for role in [Role::Source, Role::Transform, Role::Sender] {
        roles.push((role.as_str(), of_role(role, plugins)));
    }
    let Some(definitions) = schema.get_mut("definitions").and_then(Json::as_object_mut) else {
        return;
    };
    for plugin in plugins {
        let name = definition_of(plugin);
        let mut settings = plugin.settings.clone();
        move_references(&mut settings, &name);
        definitions.insert(name, settings);
    }
    for (role, uses) in roles {
        definitions.insert(role.to_owned(), uses);
    }
    if let Some(source) = definitions.get_mut("SourceSettings") {
        source["allOf"] = json!([reference(Role::Source.as_str())]);
    }
    if let Some(destination) = definitions.get_mut("DestinationSettings") {
        let uses = |role: Role| json!([reference("PluginUse"), reference(role.as_str())]);
        destination["properties"]["transform"]["items"] = json!({ "allOf": uses(Role::Transform) });
        destination["properties"]["sender"]["allOf"] = uses(Role::Sender);
    }
}

fn definition_of(plugin: &PluginSchema) -> String {
    format!("{}.{}", plugin.role.as_str(), plugin.name)
}

/// What a use of a plugin in a role can be.
fn of_role(role: Role, plugins: &[PluginSchema]) -> Json {
    let mut names = Vec::new();
    let mut uses = Vec::new();
    for plugin in plugins.iter().filter(|plugin| plugin.role == role) {
        names.push(json!({ "const": plugin.name, "description": plugin.description }));
        uses.push(json!({
            "if": { "properties": { "plugin": { "const": plugin.name } }, "required": ["plugin"] },
            "then": use_of(plugin),
        }));
    }
    let own = json!({ "type": "string", "pattern": Name::PATTERN });
    names.push(own);
    let mut schema = json!({ "properties": { "plugin": { "anyOf": names } } });
    if !uses.is_empty() {
        schema["allOf"] = Json::Array(uses);
    }
    schema
}

fn use_of(plugin: &PluginSchema) -> Json {
    let mut slots = Map::new();
    for slot in &plugin.slots {
        slots.insert(slot.name.clone(), json!({ "description": slot.description }));
    }
    let needed: Vec<_> = plugin.slots.iter().filter(|slot| slot.required).map(|slot| &slot.name).collect();
    let mut grants = json!({ "properties": slots });
    let mut schema = json!({ "properties": { "settings": reference(&definition_of(plugin)) } });
    if !needed.is_empty() {
        grants["required"] = json!(needed);
        schema["required"] = json!(["grants"]);
    }
    schema["properties"]["grants"] = grants;
    schema
}

/// A schema that becomes a part of another finds its own parts there.
fn move_references(schema: &mut Json, to: &str) {
    match schema {
        Json::Object(object) => {
            if let Some(Json::String(target)) = object.get_mut("$ref")
                && let Some(path) = target.strip_prefix('#')
            {
                *target = format!("#/definitions/{to}{path}");
            }
            object.values_mut().for_each(|value| move_references(value, to));
        }
        Json::Array(array) => array.iter_mut().for_each(|value| move_references(value, to)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(file: &str) -> Json {
        let settings = json!({ "type": "object", "properties": { "when": { "$ref": "#/$defs/condition" } } });
        let slots = vec![SlotSchema { name: "api".into(), description: "where to".into(), required: true }];
        let sender = PluginSchema {
            role: Role::Sender,
            name: "http".into(),
            description: "Asks".into(),
            settings,
            slots,
        };
        let schemas = schemas(&[sender]);
        let (_, text) = schemas.iter().find(|(name, _)| *name == file).unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn options_have_their_types_limits_and_defaults() {
        let schema = schema("interface.schema.json");
        let destination = &schema["definitions"]["DestinationSettings"];
        let concurrency = &destination["properties"]["concurrency"];
        assert_eq!(concurrency["type"], "integer");
        assert_eq!((&concurrency["minimum"], &concurrency["maximum"]), (&json!(1), &json!(256)));
        assert_eq!(concurrency["default"], json!(4));
        assert_eq!(destination["required"], json!(["name"]));
        assert_eq!(destination["properties"]["order"]["enum"], json!(["strict", "key", "none"]));
        let timeout = destination["properties"]["timeout"]["description"].as_str().unwrap();
        assert!(timeout.ends_with("From `\"100ms\"` to `\"1h\"`."), "{timeout}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for file in ["portway.schema.json", "interface.schema.json", "case.schema.json"] {
            let schema = schema(file);
            let mut references = Vec::new();
            collect(&schema, &mut references);
            for reference in references {
                // Those of a plugin's own parts are the plugin's business.
                if !reference.contains("$defs") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(schema.pointer(pointer).is_some(), "{file}: {reference}");
                }
            }
        }
    }

    #[test]
    fn a_plugins_settings_and_slots_belong_to_its_name() {
        let schema = schema("interface.schema.json");
        let uses = &schema["definitions"]["sender"]["allOf"][0];
        assert_eq!(uses["if"]["properties"]["plugin"]["const"], "http");
        assert_eq!(uses["then"]["properties"]["grants"]["required"], json!(["api"]));
        let moved = &schema["definitions"]["sender.http"]["properties"]["when"]["$ref"];
        assert_eq!(moved, "#/definitions/sender.http/$defs/condition");
    }

    fn collect(schema: &Json, references: &mut Vec<String>) {
        match schema {
            Json::Object(object) => {
                references.extend(object.get("$ref").and_then(Json::as_str).map(str::to_owned));
                object.values().for_each(|value| collect(value, references));
            }
            Json::Array(array) => array.iter().for_each(|value| collect(value, references)),
            _ => {}
        }
    }
}
