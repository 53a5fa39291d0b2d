//! Texts of a project file: strings, names, secrets, paths, addresses, URLs.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use portway_model::code;
use serde_json::Value as Json;
use toml::de::DeValue;
use url::Url;

use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::template::{self, Mark};
use crate::value::{Value, read_form};
use crate::{Name, Secret};

/// Bytes in a text.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The string of a node with its references replaced.
pub(crate) fn read_string(
    node: &Node<'_>,
    reader: &mut Reader<'_>,
    wanted: &str,
    hint: Option<&str>,
) -> Option<String> {
    let DeValue::String(text) = node.value else {
        reader.report_type_with(node, wanted, hint.map(str::to_owned));
        return None;
    };
    if text.len() > TEXT_BYTES_MAX {
        let hint = format!("at most {TEXT_BYTES_MAX} bytes are taken");
        let text = format!("`{}` is too long", node.key);
        reader.report(node.span.start, code::OUTSIDE_LIMITS, text, Some(hint));
        return None;
    }
    match template::resolve(text, node.mark, reader.names) {
        Ok(resolved) => Some(resolved),
        Err(unresolved) => {
            let text = format!("`{}`: {}", node.key, unresolved.text);
            reader.report(node.span.start, code::BAD_REFERENCE, text, Some(unresolved.hint));
            None
        }
    }
}

impl Value for String {
    fn type_name() -> String {
        "text".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let form = "a text without line breaks";
        read_form(node, reader, form, "write it on one line, and not empty", |text| {
            let good = !text.is_empty() && !text.chars().any(char::is_control);
            good.then(|| text.to_owned())
        })
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Value for Secret {
    fn type_name() -> String {
        "text".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let node = Node { mark: Mark::Secret, ..node.clone() };
        let (form, hint) = ("a text without line breaks", "write it on one line, best as `${secret:NAME}`");
        let secret = Secret::new(read_string(&node, reader, form, Some(hint))?);
        let text = secret.reveal();
        if text.is_empty() || text.chars().any(char::is_control) {
            let text = format!("`{}` is not {form}", node.key);
            reader.report(node.span.start, code::BAD_VALUE, text, Some(hint.to_owned()));
            return None;
        }
        Some(secret)
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        "\"…\"".to_owned()
    }
}

impl Value for Name {
    fn type_name() -> String {
        "name".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        read_form(node, reader, "a name", Name::RULE, Name::new)
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::form(Name::PATTERN)
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Value for SocketAddr {
    fn type_name() -> String {
        "address and port".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write an IP address and a port, such as `\"127.0.0.1:2575\"` or `\"[::1]:2575\"`";
        read_form(node, reader, "an address with a port", hint, |text| text.parse().ok())
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Value for IpNet {
    fn type_name() -> String {
        "address or network".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write an IP address or a network, such as `\"10.0.0.7\"` or `\"10.0.0.0/8\"`";
        read_form(node, reader, "an address or network", hint, |text| {
            text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        })
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Value for Url {
    fn type_name() -> String {
        "URL".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint =
            "write `http://` or `https://`, a host and a path; user and password belong in `credentials`";
        read_form(node, reader, "a URL that can be called", hint, |text| {
            let url = Url::parse(text).ok()?;
            let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
            let called = matches!(url.scheme(), "http" | "https") && url.has_host();
            (plain && called).then_some(url)
        })
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

/// A path of the project: absolute once read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPath(PathBuf);

impl ProjectPath {
    /// A default, relative to the project until it is adopted.
    pub(crate) fn relative(path: &str) -> Self {
        ProjectPath(path.into())
    }

    /// A path that stands in no file.
    pub(crate) fn new(path: PathBuf) -> Self {
        ProjectPath(path)
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for ProjectPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Value for ProjectPath {
    fn type_name() -> String {
        "path".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write a path relative to the project, or an absolute one";
        let path = read_form(node, reader, "a path", hint, |text| {
            let good = !text.is_empty() && !text.contains('\0');
            good.then(|| PathBuf::from(text))
        })?;
        Some(ProjectPath(path).adopt(reader))
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::text()
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.0.display())
    }

    fn adopt(self, reader: &Reader<'_>) -> Self {
        ProjectPath(reader.base.join(&self.0))
    }
}
