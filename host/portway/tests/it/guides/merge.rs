//! What a guide adds to a project file that is there.

use toml::{Table, Value};

/// The file with what is added: tables grow, a table of an array is found by its `name` and else
/// comes behind the others, and any other value takes the place of the one before.
pub fn merged(there: &str, more: &str) -> Result<String, String> {
    let parse = |text: &str| text.parse::<Table>().map_err(|error| format!("it is no TOML: {error}"));
    let (mut there, more) = (parse(there)?, parse(more)?);
    merge(&mut there, more);
    toml::to_string(&there).map_err(|error| error.to_string())
}

fn merge(there: &mut Table, more: Table) {
    for (name, value) in more {
        match (there.get_mut(&name), value) {
            (Some(Value::Table(there)), Value::Table(more)) => merge(there, more),
            (Some(Value::Array(there)), Value::Array(more)) if is_tables(there) && is_tables(&more) => {
                more.into_iter().for_each(|one| add(there, one));
            }
            (_, value) => {
                there.insert(name, value);
            }
        }
    }
}

fn add(there: &mut Vec<Value>, one: Value) {
    let is_named = |value: &&mut Value| value.get("name").is_some() && value.get("name") == one.get("name");
    match (there.iter_mut().find(is_named), one) {
        (Some(Value::Table(there)), Value::Table(more)) => merge(there, more),
        (_, one) => there.push(one),
    }
}

fn is_tables(array: &[Value]) -> bool {
    array.iter().all(Value::is_table)
}

#[test]
fn what_is_added_grows_tables_and_replaces_values() {
    let there = "a = 1\n[source]\nlisten = \"x\"\n[[destination]]\nname = \"one\"\n";
    let more = "[source]\nlisten = \"y\"\nallow = [\"z\"]\n[[destination]]\nname = \"one\"\norder = \"key\"\n\
                [[destination]]\nname = \"two\"\n";
    let wanted = "a = 1\nsource = { listen = \"y\", allow = [\"z\"] }\n\
                  destination = [{ name = \"one\", order = \"key\" }, { name = \"two\" }]\n";
    let made: Table = merged(there, more).unwrap().parse().unwrap();
    assert_eq!(made, wanted.parse().unwrap());
    assert!(merged("a = ", "").is_err());
}
