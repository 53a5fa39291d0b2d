//! Places of values: a header, a query parameter, or a JSON Pointer into an element.

use std::fmt;

use portway_sdk::HttpRequest;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Levels of a pointer: what reads values nests no deeper.
const LEVELS_MAX: usize = 64;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A header by its name in lower case.
    Header(String),
    Query(String),
    Json(Pointer),
}

/// A JSON Pointer (RFC 6901), its parts unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

impl Place {
    /// `header:NAME`, `query:NAME` or `json:/POINTER`.
    pub fn parse(text: &str) -> Option<Place> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "header" if !rest.is_empty() => Some(Place::Header(rest.to_ascii_lowercase())),
            "query" if !rest.is_empty() => Some(Place::Query(rest.to_owned())),
            "json" => Pointer::parse(rest).map(Place::Json),
            _ => None,
        }
    }

    /// The value, as far as the request itself holds it.
    pub fn of_request(&self, request: &HttpRequest) -> Option<String> {
        match self {
            Place::Header(name) => request.header(name).map(str::to_owned),
            Place::Query(name) => {
                let (_, query) = request.target.split_once('?')?;
                let mut pairs = form_urlencoded::parse(query.as_bytes());
                pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
            }
            Place::Json(_) => None,
        }
    }
}

impl Pointer {
    fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let parts: Vec<String> = text.strip_prefix('/')?.split('/').map(unescaped).collect::<Option<_>>()?;
        (parts.len() <= LEVELS_MAX).then_some(Pointer(parts))
    }

    /// A string's text, or a number's, `true` or `false` as they are written. None: nothing
    /// stands there, or something else does. The bytes may end before the value does.
    pub fn find(&self, bytes: &[u8]) -> Option<String> {
        let mut found = None;
        let mut json = serde_json::Deserializer::from_slice(bytes);
        // What is found ends the search with an error, and so does what is no JSON.
        let _ = Seek { path: &self.0, found: &mut found }.deserialize(&mut json);
        found
    }
}

/// `~1` is a slash and `~0` a tilde.
fn unescaped(part: &str) -> Option<String> {
    let tildes = part.matches('~').count();
    let known = part.matches("~0").count() + part.matches("~1").count();
    (tildes == known).then(|| part.replace("~1", "/").replace("~0", "~"))
}

struct Seek<'p, 'f> {
    path: &'p [String],
    found: &'f mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Seek<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.path.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        *self.found = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).ok(),
            Some(b'{' | b'[' | b'n') | None => None,
            Some(_) => Some(raw.to_owned()),
        };
        Err(D::Error::custom("the search is over"))
    }
}

impl<'de> Visitor<'de> for Seek<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((first, rest)) = self.path.split_first() else { return Ok(()) };
        while let Some(is_wanted) = map.next_key_seed(Named(first))? {
            if is_wanted {
                return map.next_value_seed(Seek { path: rest, found: self.found });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((first, rest)) = self.path.split_first() else { return Ok(()) };
        let has_zeros = first.len() > 1 && first.starts_with('0');
        let Some(index) = first.parse::<u32>().ok().filter(|_| !has_zeros && !first.starts_with('+')) else {
            return Ok(());
        };
        for _ in 0..index {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        seq.next_element_seed(Seek { path: rest, found: self.found })?;
        Ok(())
    }
}

/// Whether a name is this one, without keeping it.
struct Named<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pointer: &str, json: &str) -> Option<String> {
        Pointer::parse(pointer).unwrap().find(json.as_bytes())
    }

    #[test]
    fn a_pointer_finds_texts_numbers_and_truths() {
        let json = r#" {"a/b":{"~":[1,"x\u00e4",[true]]},"n":12345678901234567890.50,"z":null,"o":{},"":7,"a/b":9} "#;
        assert_eq!(find("/a~1b/~0/1", json).as_deref(), Some("xä"));
        assert_eq!(find("/a~1b/~0/2/0", json).as_deref(), Some("true"));
        assert_eq!(find("/n", json).as_deref(), Some("12345678901234567890.50"));
        assert_eq!(find("/", json).as_deref(), Some("7"));
        for nothing in ["/z", "/o", "/x", "/a~1b/~0/3", "/a~1b/~0/01", "/a~1b/~0/-", "/n/0", ""] {
            assert_eq!(find(nothing, json), None, "{nothing}");
        }
        assert_eq!(find("", "\"x\"").as_deref(), Some("x"));
    }

    #[test]
    fn what_follows_the_value_may_be_missing_or_broken() {
        assert_eq!(find("/id", r#"{"x":[1,{}],"id":"7","rest":"#).as_deref(), Some("7"));
        assert_eq!(find("/id", r#"{"x":[1,{}],"id":"7"#), None);
        assert_eq!(find("/id", "id: 7"), None);
        assert_eq!(find("/id", &"[".repeat(100_000)), None);
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for wrong in ["", "x-tenant", "header:", "query:", "json:id", "json:/~2", "body:x"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Place::parse("header:X-Tenant"), Some(Place::Header("x-tenant".into())));
    }
}
