//! What plugins' JSON Schemas say: of the settings of their uses, and for the editors of a project.
//!
//! A schema tells the form of settings. Whether they make sense is judged by the plugin itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, ValidationError, Validator};
use portway_config::{PluginSchema, PluginUse, Problem, Role, SlotSchema, nearest};
use portway_model::code::PLUGIN_BAD_MANIFEST;
use portway_model::code::plugin::BAD_SETTINGS;
use portway_runtime::Manifest;
use serde_json::Value as Json;

use super::catalog::{FindError, PluginCatalog};

/// Problems of one use that are said.
const PROBLEMS_MAX: usize = 20;

/// The schemas of a project's plugins, each made ready once however often it is used.
#[derive(Default)]
pub struct SettingsSchemas {
    ready: Mutex<BTreeMap<(Role, String), Arc<Ready>>>,
}

/// A schema, ready to check settings.
struct Ready {
    schema: Json,
    /// Or why it cannot be used.
    validator: Result<Validator, String>,
}

impl SettingsSchemas {
    /// What is wrong with the settings of a use, by the schema of its plugin. Of a schema that
    /// cannot be used there is a warning: the plugin judges its settings itself.
    pub fn check(&self, role: Role, manifest: &Manifest, plugin_use: &PluginUse) -> Vec<Problem> {
        let ready = self.ready(role, manifest, plugin_use.plugin.value.as_str());
        let plugin = &plugin_use.plugin;
        let validator = match &ready.validator {
            Ok(validator) => validator,
            Err(why) => {
                let text =
                    format!("the schema of the settings of plugin `{}` cannot be used: {why}", plugin.value);
                let problem = Problem::new(plugin.place.clone(), PLUGIN_BAD_MANIFEST, text).as_warning();
                return vec![problem.hint("correct `settings` in its `plugin.toml` and build it again")];
            }
        };
        let settings = &plugin_use.settings;
        let mut problems = Vec::new();
        for error in validator.iter_errors(&settings.json).take(PROBLEMS_MAX) {
            for finding in findings(&error, &ready.schema) {
                let place = settings.place_of(&finding.pointer).unwrap_or(&plugin.place).clone();
                let text = format!("plugin `{}`: {}", plugin.value, finding.text);
                let problem = Problem::new(place, BAD_SETTINGS, text);
                problems.push(match finding.hint {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                });
            }
        }
        problems
    }

    fn ready(&self, role: Role, manifest: &Manifest, name: &str) -> Arc<Ready> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let schema = schema_of(manifest);
            let options = jsonschema::options().with_draft(Draft::Draft202012).offline();
            let validator = options.build(&schema).map_err(|error| error.to_string());
            Arc::new(Ready { schema, validator })
        };
        ready.entry((role, name.to_owned())).or_insert_with(make).clone()
    }
}

/// Every plugin that a project can name, with what it takes. Fails where a plugin that comes with
/// Portway is not in this binary, since the schemas would be wrong without it.
pub fn plugin_schemas(catalog: &PluginCatalog) -> Result<Vec<PluginSchema>, FindError> {
    let mut schemas = Vec::new();
    for role in [Role::Source, Role::Transform, Role::Sender] {
        for name in portway_config::Catalog::names(catalog, role) {
            let manifest = match catalog.find(role, &name) {
                Ok(component) => component.manifest,
                Err(error @ FindError::NotBuilt { .. }) => return Err(error),
                // Of another kind, or not readable: `validate` says so.
                Err(_) => continue,
            };
            let slots = manifest.slots.iter().map(|slot| SlotSchema {
                name: slot.name.clone(),
                description: slot.description.clone(),
                required: slot.required,
            });
            schemas.push(PluginSchema {
                role,
                name,
                description: manifest.description.clone(),
                settings: schema_of(&manifest),
                slots: slots.collect(),
            });
        }
    }
    Ok(schemas)
}

fn schema_of(manifest: &Manifest) -> Json {
    serde_json::to_value(&manifest.settings).unwrap_or_default()
}

/// One thing a schema does not take.
struct Finding {
    pointer: String,
    text: String,
    hint: Option<String>,
}

fn findings(error: &ValidationError<'_>, schema: &Json) -> Vec<Finding> {
    let pointer = error.instance_path().as_str().to_owned();
    let name = shown(&pointer);
    let one = |text: String, hint: Option<String>| vec![Finding { pointer: pointer.clone(), text, hint }];
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|key| unknown(&pointer, key, schema)).collect()
        }
        ValidationErrorKind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            let of = if pointer.is_empty() { String::new() } else { format!(" in `{name}`") };
            one(format!("the setting `{property}` is missing{of}"), Some(format!("add `{property} = …`")))
        }
        ValidationErrorKind::Enum { options } => {
            let known: Vec<String> =
                options.as_array().into_iter().flatten().map(|option| format!("`{option}`")).collect();
            let hint = format!("write one of {}", known.join(", "));
            one(format!("the setting `{name}` has a value that is not known"), Some(hint))
        }
        ValidationErrorKind::Type { kind } => {
            one(format!("the setting `{name}` is not {}", types(kind)), None)
        }
        ValidationErrorKind::Minimum { limit } | ValidationErrorKind::ExclusiveMinimum { limit } => {
            one(format!("the setting `{name}` is too small"), Some(format!("the least is {limit}")))
        }
        ValidationErrorKind::Maximum { limit } | ValidationErrorKind::ExclusiveMaximum { limit } => {
            one(format!("the setting `{name}` is too large"), Some(format!("the most is {limit}")))
        }
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::AnyOf { .. } => {
            one(format!("the setting `{name}` has none of the forms that the plugin takes"), None)
        }
        // A value may come from the environment: what it is stays out of the text.
        _ => one(format!("the setting `{name}` does not fit: {}", error.masked()), None),
    }
}

fn unknown(pointer: &str, key: &str, schema: &Json) -> Finding {
    // Names further down are behind references; those at the top are the ones mistyped most.
    let known = schema.get("properties").and_then(Json::as_object).filter(|_| pointer.is_empty());
    let near = known.and_then(|known| nearest(key, known.keys().map(String::as_str)));
    let hint = match (near, known) {
        (Some(near), _) => Some(format!("did you mean `{near}`?")),
        (None, Some(known)) if known.is_empty() => Some("it takes no settings".to_owned()),
        (None, Some(known)) => {
            Some(format!("known are `{}`", known.keys().cloned().collect::<Vec<_>>().join("`, `")))
        }
        (None, None) => None,
    };
    let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    let of = if pointer.is_empty() { String::new() } else { format!(" in `{}`", shown(pointer)) };
    let key: String = key.chars().take(64).collect();
    Finding { pointer: below, text: format!("unknown setting `{key}`{of}"), hint }
}

/// `/rules/0/when` as people write it: `rules.0.when`.
fn shown(pointer: &str) -> String {
    match pointer.strip_prefix('/') {
        Some(path) => path.replace('/', ".").replace("~1", "/").replace("~0", "~"),
        None => "settings".to_owned(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => format!("of the type {one}"),
        TypeKind::Multiple(several) => {
            let names: Vec<String> = several.iter().map(|one| one.to_string()).collect();
            format!("of the type {}", names.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use portway_config::{At, Isolation, Name, Place, PluginSettings, Weight};
    use portway_runtime::PluginKind;
    use serde_json::json;

    use super::*;

    fn check(schema: &str, settings: Json) -> Vec<Problem> {
        let manifest = Manifest {
            name: "acme:x".into(),
            version: "1.0.0".into(),
            kind: PluginKind::Transform,
            contract: "0.1".into(),
            description: String::new(),
            control: false,
            slots: Vec::new(),
            limits: Default::default(),
            settings: schema.parse().unwrap(),
            is_assumed: false,
        };
        let place = Place::of_file("a.toml");
        let plugin_use = PluginUse {
            plugin: At { value: Name::new("x").unwrap(), place },
            settings: PluginSettings { json: settings, places: BTreeMap::new() },
            grants: BTreeMap::new(),
            isolation: Isolation::Shared,
            fuel_per_message: None,
            memory_bytes_max: None,
        };
        SettingsSchemas::default().check(Role::Transform, &manifest, &plugin_use)
    }

    #[test]
    fn what_a_schema_does_not_take_is_said_in_sentences() {
        let schema = "additionalProperties = false\nproperties.count = { type = \"integer\", minimum = 2, maximum = 4 }\n\
             properties.name = { type = [\"string\", \"array\"] }\nproperties.pattern = { pattern = \"^a\" }";
        let say = |settings| check(schema, settings).iter().map(|one| one.text.clone()).collect::<Vec<_>>();
        assert_eq!(say(json!({ "count": 3, "name": [] })), [""; 0]);
        assert_eq!(say(json!({ "count": 1 })), ["plugin `x`: the setting `count` is too small"]);
        assert_eq!(say(json!({ "count": 5 })), ["plugin `x`: the setting `count` is too large"]);
        assert_eq!(
            say(json!({ "count": "3" })),
            ["plugin `x`: the setting `count` is not of the type integer"]
        );
        assert_eq!(say(json!({ "cuont": 3 })), ["plugin `x`: unknown setting `cuont`"]);
        let pattern = say(json!({ "pattern": "hunter2" }));
        assert!(
            pattern[0].contains("`pattern` does not fit") && !pattern[0].contains("hunter2"),
            "{pattern:?}"
        );
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_a_warning() {
        for schema in ["type = 5", "\"$ref\" = \"https://schemas.example/x.json\""] {
            let problems = check(schema, json!({}));
            assert_eq!(problems.len(), 1, "{schema}");
            assert_eq!(problems[0].weight, Weight::Warning);
        }
    }
}
