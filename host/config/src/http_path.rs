//! Paths and methods that an HTTP source takes.

use std::fmt;

use serde_json::Value as Json;

use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::value::{Value, read_form};

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1_024;

/// A path such as `/orders`, or `/orders/*` with all that is below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HttpPath(String);

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
    Head,
    Options,
}

impl HttpPath {
    const RULE: &str =
        "write a path such as `\"/orders\"`; `\"/orders/*\"` is all below it, `\"/*\"` is everything";

    /// Everything.
    pub fn any() -> Self {
        HttpPath("/*".to_owned())
    }

    /// None: it is no path.
    pub fn new(text: &str) -> Option<Self> {
        let plain = text.strip_suffix("/*").unwrap_or(text);
        let is_root = plain.is_empty() && text == "/*" || text == "/";
        let segments = || plain.split('/').skip(1);
        let is_path = plain.starts_with('/')
            && segments().all(|segment| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain));
        (text.len() <= PATH_BYTES_MAX && (is_root || is_path)).then(|| HttpPath(text.to_owned()))
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path without its last `*`, if it has one.
    pub fn below(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }
}

/// As in RFC 3986, and no `*`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@%".contains(&byte)
}

impl fmt::Display for HttpPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Value for HttpPath {
    fn type_name() -> String {
        "path".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        read_form(node, reader, "a path of a web address", Self::RULE, HttpPath::new)
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
        }
    }
}

crate::list::words!(Method {
    "GET" => Method::Get,
    "POST" => Method::Post,
    "PUT" => Method::Put,
    "PATCH" => Method::Patch,
    "DELETE" => Method::Delete,
    "HEAD" => Method::Head,
    "OPTIONS" => Method::Options,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_exact_or_all_below() {
        for good in ["/", "/*", "/a", "/a/b.c", "/a/*", "/%20"] {
            assert!(HttpPath::new(good).is_some(), "{good}");
        }
        for bad in ["", "a", "//", "/a//b", "/a/", "/../b", "/a*", "/*/a", "/a b", "/a?b"] {
            assert!(HttpPath::new(bad).is_none(), "{bad}");
        }
        assert_eq!(HttpPath::new("/a/*").unwrap().below(), Some("/a/"));
        assert_eq!(HttpPath::new("/a").unwrap().below(), None);
    }
}
