//! Answers every request with a greeting in JSON.
//!
//! A component of `wasi:http` as any host of it runs; only its manifest knows of Portway.

#[cfg(target_family = "wasm")]
mod component;

/// What is said without a setting.
pub const GREETING: &str = "hello";

/// The answer's body.
pub fn answer(greeting: &str, method: &str, path: &str) -> String {
    serde_json::json!({ "greeting": greeting, "method": method, "path": path }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_json_whatever_the_path_holds() {
        let text = answer(GREETING, "GET", "/a\"b");
        assert_eq!(text, r#"{"greeting":"hello","method":"GET","path":"/a\"b"}"#);
    }
}
