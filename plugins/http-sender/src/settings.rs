//! The settings, as they are written.

use std::collections::BTreeMap;

use serde::Deserialize;

/// As in `plugin.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub method: Method,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub content_type: Option<String>,
    pub idempotency_header: String,
    pub on_unauthorized: OnRefusal,
    pub on_forbidden: OnRefusal,
    pub answer_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: Method::Post,
            path: "/".into(),
            headers: BTreeMap::new(),
            content_type: None,
            idempotency_header: "Idempotency-Key".into(),
            on_unauthorized: OnRefusal::Stop,
            on_forbidden: OnRefusal::Quarantine,
            answer_bytes_max: 1024,
        }
    }
}

/// The method of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Post,
    Put,
    Patch,
    Delete,
    Get,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Get => "GET",
        }
    }

    pub fn has_body(self) -> bool {
        match self {
            Method::Post | Method::Put | Method::Patch => true,
            Method::Delete | Method::Get => false,
        }
    }
}

/// What a refusal of access means: this message's fault, or that of the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRefusal {
    Quarantine,
    Stop,
}
