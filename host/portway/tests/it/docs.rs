//! The generated reference pages are those that the code makes.

use std::path::Path;

use portway::commands::gen_docs::pages;

#[test]
fn the_reference_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, wanted) in pages().unwrap() {
        let path = folder.join(&name);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "docs/reference/{name} is not what the code makes: run `cargo xtask gen`");
    }
}

/// The schema of a file of a project, as it is committed.
fn schema(name: &str) -> jsonschema::Validator {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schema");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    jsonschema::options().offline().build(&serde_json::from_str(&text).unwrap()).unwrap()
}

fn from_toml(text: &str) -> serde_json::Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

fn errors(schema: &str, text: &str) -> Vec<String> {
    schema_errors(&self::schema(schema), text)
}

fn schema_errors(schema: &jsonschema::Validator, text: &str) -> Vec<String> {
    schema.iter_errors(&from_toml(text)).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_examples_and_what_init_makes_fit_the_schemas() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (project, interface) = (schema("portway.schema.json"), schema("interface.schema.json"));
    let mut checked = 0;
    for folder in ["../../examples/lab-results", "templates/lab", "templates/webhook", "templates/files"] {
        let folder = root.join(folder);
        let text = std::fs::read_to_string(folder.join("portway.toml")).unwrap();
        assert_eq!(schema_errors(&project, &text), [""; 0], "{}", folder.display());
        for entry in std::fs::read_dir(folder.join("interfaces")).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(schema_errors(&interface, &text), [""; 0], "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 4, "only {checked} interfaces were checked");
}

#[test]
fn the_schemas_find_what_is_wrong() {
    let one = |schema: &str, text: &str, words: &str| {
        let errors = errors(schema, text);
        assert!(errors.iter().any(|error| error.contains(words)), "{words}: {errors:?}");
    };
    one("portway.schema.json", "[store]\nkep = \"1d\"", "kep");
    one("portway.schema.json", "[store]\nretention = \"1 day\"", "/store/retention");
    one("portway.schema.json", "[limits]\nruns_max = 0", "/limits/runs_max");
    one("interface.schema.json", "[source]\nplugin = \"mllp\"\nsettings = { kee = \"PID-3\" }", "kee");
    one("interface.schema.json", "[source]\nplugin = \"file\"", "grants");
    one("interface.schema.json", "[[destination]]\norder = \"strict\"", "name");
    let sender = "[[destination]]\nname = \"a\"\n[destination.sender]\nplugin = \"http\"\n";
    one("interface.schema.json", &format!("{sender}settings = {{ method = \"HEAD\" }}"), "method");
    one("interface.schema.json", &format!("{sender}grants.api = {{ type = \"htp\" }}"), "/grants/api");
    one("case.schema.json", "[[answer]]\ndestination = \"a\"\nstatus = 99", "/answer/0/status");
    // A plugin of one's own may take what it likes.
    assert_eq!(errors("interface.schema.json", "[source]\nplugin = \"mine\"\nsettings = { a = 1 }"), [""; 0]);
}
