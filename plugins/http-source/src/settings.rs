//! The settings, as they are written and as they are used.

use std::collections::BTreeMap;

use portway_records::{Format, Limits, json};
use portway_sdk::Failure;
use serde::Deserialize;

use crate::place::{Place, Pointer};

/// Elements of one request.
const ELEMENTS_MAX: u32 = 100_000;
/// Names in each list, and attributes altogether: the contract has room for 64.
const LIST_MAX: usize = 16;
/// Bytes of an attribute's name, by the contract.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a fixed answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// As in `plugin.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub content_types: Vec<String>,
    pub empty: Empty,
    pub split: Split,
    pub require: Require,
    pub elements_max: u32,
    pub depth_max: u8,
    pub key: String,
    pub dedupe: String,
    pub idempotency_key: bool,
    pub headers: Vec<String>,
    pub query: Vec<String>,
    pub attributes: BTreeMap<String, String>,
    pub status: u16,
    pub answer: Answer,
    pub answer_text: String,
    pub answer_type: String,
}

/// What to do with a request that holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Empty {
    Refuse,
    Allow,
}

/// What becomes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    None,
    JsonArray,
    Ndjson,
}

/// What a body must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Require {
    None,
    Json,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Ids,
    None,
    Text,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            content_types: Vec::new(),
            empty: Empty::Refuse,
            split: Split::None,
            require: Require::None,
            elements_max: 10_000,
            depth_max: 64,
            key: String::new(),
            dedupe: String::new(),
            idempotency_key: false,
            headers: Vec::new(),
            query: Vec::new(),
            attributes: BTreeMap::new(),
            status: 202,
            answer: Answer::Ids,
            answer_text: String::new(),
            answer_type: "text/plain; charset=utf-8".into(),
        }
    }
}

/// Settings that fit together.
#[derive(Debug)]
pub struct Rules {
    /// In lower case; empty: all.
    pub content_types: Vec<String>,
    pub empty: Empty,
    /// None: the body is one message.
    pub format: Option<Format>,
    pub require: Require,
    pub elements_max: usize,
    pub limits: Limits,
    pub key: Option<Place>,
    pub dedupe: Dedupe,
    /// Of the request: names and where their values stand.
    pub attributes: Vec<(String, Place)>,
    /// Of each element.
    pub element_attributes: Vec<(String, Pointer)>,
    pub success: Success,
}

/// What a repeated message is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dedupe {
    No,
    At(Place),
    /// The request's header and the number of the element.
    IdempotencyKey,
}

/// The answer once everything is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Success {
    pub status: u16,
    pub body: SuccessBody,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuccessBody {
    Ids,
    None,
    Text { content_type: String, text: String },
}

impl Rules {
    /// Settings that do not fit together are refused with a sentence.
    pub fn of(settings: Settings) -> Result<Rules, Failure> {
        if !(1..=ELEMENTS_MAX).contains(&settings.elements_max) {
            return Err(bad("elements_max", format!("must be from 1 to {ELEMENTS_MAX}")));
        }
        if !(1..=json::DEPTH_MAX).contains(&settings.depth_max) {
            return Err(bad("depth_max", format!("must be from 1 to {}", json::DEPTH_MAX)));
        }
        if settings.content_types.len() > LIST_MAX {
            return Err(bad("content_types", format!("at most {LIST_MAX} are possible")));
        }
        let format = match settings.split {
            Split::None => None,
            Split::JsonArray => Some(Format::JsonArray),
            Split::Ndjson => Some(Format::Ndjson),
        };
        let (attributes, element_attributes) = attributes(&settings)?;
        Ok(Rules {
            content_types: settings.content_types.iter().map(|name| name.to_ascii_lowercase()).collect(),
            empty: settings.empty,
            format,
            require: settings.require,
            elements_max: usize::try_from(settings.elements_max).unwrap_or(usize::MAX),
            limits: Limits { record_bytes_max: u64::from(u32::MAX), depth_max: settings.depth_max },
            key: place("key", &settings.key)?,
            dedupe: dedupe(&settings)?,
            attributes,
            element_attributes,
            success: success(settings)?,
        })
    }
}

fn dedupe(settings: &Settings) -> Result<Dedupe, Failure> {
    match (place("dedupe", &settings.dedupe)?, settings.idempotency_key) {
        (Some(_), true) => Err(bad("dedupe", "set either this or `idempotency_key`")),
        (Some(place), false) => Ok(Dedupe::At(place)),
        (None, true) => Ok(Dedupe::IdempotencyKey),
        (None, false) => Ok(Dedupe::No),
    }
}

fn success(settings: Settings) -> Result<Success, Failure> {
    if !matches!(settings.status, 200 | 201 | 202 | 204) {
        return Err(bad("status", "must be 200, 201, 202 or 204"));
    }
    if settings.answer_text.len() > ANSWER_BYTES_MAX {
        return Err(bad("answer_text", format!("is longer than {ANSWER_BYTES_MAX} bytes")));
    }
    if settings.answer_type.is_empty()
        || !settings.answer_type.bytes().all(|byte| (0x20..0x7F).contains(&byte))
    {
        return Err(bad("answer_type", "must be a content type, such as `text/plain`"));
    }
    let body = match settings.answer {
        _ if settings.status == 204 => SuccessBody::None,
        Answer::Ids => SuccessBody::Ids,
        Answer::None => SuccessBody::None,
        Answer::Text => SuccessBody::Text { content_type: settings.answer_type, text: settings.answer_text },
    };
    Ok(Success { status: settings.status, body })
}

type OfRequest = Vec<(String, Place)>;
type OfElement = Vec<(String, Pointer)>;

fn attributes(settings: &Settings) -> Result<(OfRequest, OfElement), Failure> {
    let (mut of_request, mut of_element) = (Vec::new(), Vec::new());
    let lists = [
        ("headers", settings.headers.len()),
        ("query", settings.query.len()),
        ("attributes", settings.attributes.len()),
    ];
    if let Some((list, _)) = lists.iter().find(|(_, len)| *len > LIST_MAX) {
        return Err(bad(list, format!("at most {LIST_MAX} are possible")));
    }
    for name in &settings.headers {
        let header = name.to_ascii_lowercase();
        of_request.push((named("headers", format!("http.header.{header}"))?, Place::Header(header)));
    }
    for name in &settings.query {
        let attribute = format!("http.query.{}", name.to_lowercase());
        of_request.push((named("query", attribute)?, Place::Query(name.clone())));
    }
    for (name, text) in &settings.attributes {
        let setting = format!("attributes.{name}");
        let name = named(&setting, name.clone())?;
        match place(&setting, text)? {
            Some(Place::Json(pointer)) => of_element.push((name, pointer)),
            Some(place) => of_request.push((name, place)),
            None => return Err(bad(&setting, "must say where the value stands")),
        }
    }
    Ok((of_request, of_element))
}

/// A name that an attribute may have.
fn named(setting: &str, name: String) -> Result<String, Failure> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    let is_free = !name.starts_with("portway.");
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !is_plain || !is_free {
        let text =
            format!("`{name}` can be no attribute: at most {NAME_BYTES_MAX} bytes of ASCII in lower case");
        return Err(bad(setting, text));
    }
    Ok(name)
}

fn place(setting: &str, text: &str) -> Result<Option<Place>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    Place::parse(text).map(Some).ok_or_else(|| {
        bad(setting, format!("`{text}` is no place; write `header:NAME`, `query:NAME` or `json:/POINTER`"))
    })
}

fn bad(name: &str, text: impl std::fmt::Display) -> Failure {
    Failure::new("bad-settings", format!("setting `{name}`: {text}"))
}
