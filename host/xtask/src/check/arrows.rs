//! Which crate may know which: the arrows of the architecture page.

use serde_json::Value;

/// A crate and the workspace crates it may depend on. Tests may use more.
const ARROWS: &[(&str, &[&str])] = &[
    ("portway-model", &[]),
    ("portway-config", &["portway-model"]),
    ("portway-bindings", &[]),
    ("portway-net", &["portway-model"]),
    ("portway-runtime", &["portway-model", "portway-bindings", "portway-net"]),
    ("portway-store", &["portway-model"]),
    ("portway-store-postgres", &["portway-model", "portway-store"]),
    ("portway-store-sqlite", &["portway-model", "portway-store"]),
    ("portway-engine", &["portway-model", "portway-store"]),
    ("portway-sources", &["portway-model", "portway-net", "portway-runtime", "portway-engine"]),
    ("portway-admin", &["portway-model", "portway-engine", "portway-store"]),
    ("portway-traces", &["portway-model", "portway-net"]),
    ("portway-testkit", &["portway-model", "portway-store", "portway-engine"]),
    ("portway-testkit-postgres", &[]),
];

/// What a crate must not use, whatever it is for.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("portway-model", &["tokio", "rusqlite", "sqlx", "wasmtime", "hyper"]),
    ("portway-config", &["tokio", "rusqlite", "sqlx", "wasmtime", "hyper"]),
    ("portway-net", &["rusqlite", "sqlx", "wasmtime"]),
    ("portway-runtime", &["rusqlite", "sqlx"]),
    ("portway-store", &["rusqlite", "sqlx", "wasmtime", "hyper"]),
    ("portway-store-postgres", &["rusqlite", "wasmtime", "hyper"]),
    ("portway-store-sqlite", &["sqlx", "wasmtime", "hyper"]),
    ("portway-engine", &["rusqlite", "sqlx", "wasmtime", "hyper"]),
    ("portway-admin", &["rusqlite", "sqlx", "wasmtime"]),
    ("portway-traces", &["rusqlite", "sqlx", "wasmtime", "hyper", "tonic", "reqwest"]),
    ("portway-testkit-postgres", &["rusqlite", "sqlx", "tokio", "wasmtime"]),
];

/// Arrows that point where they must not.
pub fn findings(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for package in array(metadata, "packages") {
        let name = package["name"].as_str().unwrap_or_default();
        let allowed = ARROWS.iter().find(|(of, _)| *of == name).map(|(_, to)| *to);
        let forbidden = FORBIDDEN.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, what)| *what);
        for dependency in array(package, "dependencies") {
            let other = dependency["name"].as_str().unwrap_or_default();
            let is_for_tests = dependency["kind"] == "dev";
            let is_ours = other.starts_with("portway-");
            let wrong = match allowed {
                Some(allowed) => is_ours && !allowed.contains(&other),
                None => false,
            };
            if !is_for_tests && (wrong || forbidden.contains(&other)) {
                findings.push(format!("{name}: must not depend on `{other}` (docs/architecture.md, arrows)"));
            }
        }
    }
    findings
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_up_is_found_and_tests_may_do_it() {
        let dependency = |kind: Option<&str>| {
            serde_json::json!({"packages": [{"name": "portway-engine",
                "dependencies": [{"name": "portway-runtime", "kind": kind}, {"name": "sqlx", "kind": kind}]}]})
        };
        assert_eq!(findings(&dependency(None)).len(), 2);
        assert_eq!(findings(&dependency(Some("dev"))).len(), 0);
    }
}
