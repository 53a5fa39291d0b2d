//! What is asked for a message.

use portway_sdk::{Call, Failure, Message, Problem, Request, RequestContent, Template, TemplateError};

use crate::settings::{Method, Settings};

/// The slot of the manifest.
const API: &str = "api";
const CONTENT_TYPE: &str = "content-type";
const CONTENT_TYPE_UNKNOWN: &str = "application/octet-stream";

/// Makes requests.
pub struct Asking {
    method: Method,
    path: Template,
    query: Option<Template>,
    headers: Vec<(String, Template)>,
    content_type: Option<Template>,
    idempotency_header: String,
}

impl Asking {
    pub fn new(settings: Settings) -> Result<Self, Failure> {
        let (path, query) = match settings.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (settings.path.as_str(), None),
        };
        if !path.starts_with('/') || path.contains("//") {
            return Err(bad("path", "it begins with one `/` and holds no `//`"));
        }
        if !settings.path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(bad("path", "blanks, `#` and other than ASCII characters are written as `%20`"));
        }
        let mut headers = Vec::new();
        for (name, value) in &settings.headers {
            let setting = format!("headers.{name}");
            if !is_token(name) {
                return Err(bad(&setting, "this is no name of a header"));
            }
            if name.eq_ignore_ascii_case(CONTENT_TYPE) {
                return Err(bad(&setting, "set `content_type` instead"));
            }
            headers.push((name.to_ascii_lowercase(), template(&setting, value)?));
        }
        let idempotency_header = settings.idempotency_header.to_ascii_lowercase();
        if !idempotency_header.is_empty() && !is_token(&idempotency_header) {
            return Err(bad("idempotency_header", "this is no name of a header"));
        }
        Ok(Asking {
            method: settings.method,
            path: template("path", path)?,
            query: query.map(|query| template("path", query)).transpose()?,
            headers,
            content_type: settings.content_type.map(|text| template("content_type", &text)).transpose()?,
            idempotency_header,
        })
    }

    /// The request of one message.
    pub fn request(&self, call: &Call, message: &Message) -> Result<Request, Problem> {
        let mut headers = Vec::with_capacity(self.headers.len() + 2);
        let content = match self.method.has_body() {
            true => RequestContent::OfMessage,
            false => RequestContent::None,
        };
        if self.method.has_body() {
            headers.push((CONTENT_TYPE.to_owned(), self.content_type(call, message)));
        }
        if !self.idempotency_header.is_empty() {
            headers.push((self.idempotency_header.clone(), format!("{}-{}", call.store, message.id)));
        }
        for (name, value) in &self.headers {
            if let Some(value) = header_value(value, call, message) {
                headers.push((name.clone(), value));
            }
        }
        Ok(Request {
            method: self.method.as_str().to_owned(),
            url: self.url(call, message)?,
            headers,
            content,
            timeout_ms: None,
        })
    }

    fn content_type(&self, call: &Call, message: &Message) -> String {
        let set = match &self.content_type {
            Some(template) => header_value(template, call, message),
            None => message.attributes.get(CONTENT_TYPE).map(str::to_owned),
        };
        set.unwrap_or_else(|| CONTENT_TYPE_UNKNOWN.to_owned())
    }

    fn url(&self, call: &Call, message: &Message) -> Result<String, Problem> {
        let mut url = format!("{API}:{}", self.path.render_path(call, message)?);
        if let Some(query) = &self.query {
            url.push('?');
            url.push_str(&query.render_query(call, message)?);
        }
        Ok(url)
    }
}

fn bad(setting: &str, text: &str) -> Failure {
    Failure::new("bad-settings", format!("setting `{setting}`: {text}"))
}

fn template(setting: &str, text: &str) -> Result<Template, Failure> {
    text.parse().map_err(|error: TemplateError| bad(setting, &error.to_string()))
}

/// None: the message does not have what it needs.
fn header_value(template: &Template, call: &Call, message: &Message) -> Option<String> {
    let value = template.render(call, message, |text, value| text.push_str(value)).ok()?;
    Some(value.into_owned())
}

fn is_token(name: &str) -> bool {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(settings: Settings) -> String {
        Asking::new(settings).map_or_else(|failure| failure.text, |_| "fine".into())
    }

    #[test]
    fn settings_that_make_no_request_are_refused() {
        let of_path = |path: &str| complaint(Settings { path: path.into(), ..Settings::default() });
        assert_eq!(of_path("/results/{id}?by={key}"), "fine");
        assert_eq!(of_path("results"), "setting `path`: it begins with one `/` and holds no `//`");
        for path in ["//host/", "/a b", "/ü", "/a#b", "/{nothing}", "/?{"] {
            assert_ne!(of_path(path), "fine", "{path}");
        }
        let of_header = |name: &str| {
            complaint(Settings { headers: [(name.into(), "x".into())].into(), ..Settings::default() })
        };
        assert_eq!(of_header("X-Type"), "fine");
        assert_eq!(of_header("Content-Type"), "setting `headers.Content-Type`: set `content_type` instead");
        assert_ne!(of_header("X Type"), "fine");
    }
}
