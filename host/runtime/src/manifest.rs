//! The manifest a component carries in its custom section `portway:manifest`.
//!
//! It says what a plugin is and what it wants; what it gets is the project's to decide.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::inspect::CONTRACT;

/// Name of the custom section.
pub const SECTION: &str = "portway:manifest";
/// Bytes of a manifest at most.
pub(crate) const BYTES_MAX: usize = 64 << 10;
const SLOTS_MAX: usize = 32;

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// `namespace:name-kind`, such as `portway:mllp-source`.
    pub name: String,
    pub version: String,
    pub kind: PluginKind,
    /// The version of the WIT packages it is built for, such as `0.1`.
    pub contract: String,
    #[serde(default)]
    pub description: String,
    /// A source that answers parts of its protocol that carry no message.
    #[serde(default)]
    pub control: bool,
    #[serde(default, rename = "slot")]
    pub slots: Vec<Slot>,
    #[serde(default)]
    pub limits: WantedLimits,
    /// A JSON Schema of the settings, as TOML.
    #[serde(default = "no_settings")]
    pub settings: toml::Table,
    /// The component carries none, since it is made for any host of `wasi:http`.
    #[serde(skip)]
    pub is_assumed: bool,
}

/// The kinds of plugins the engine calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginKind {
    Transform,
    StreamSource,
    PollSource,
    HttpSource,
    Sender,
    HttpSender,
    /// A component of `wasi:http` that answers requests itself.
    Respond,
}

/// Something a plugin wants to reach, by a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: SlotKind,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub description: String,
}

/// What can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotKind {
    Http,
    Folder,
    Tcp,
    /// A secret whose value the plugin reads.
    Reveal,
    /// A secret that the host signs with.
    Sign,
    /// Small values of its own; at most one slot, and none of a source.
    State,
}

/// Limits a plugin asks for; the project may give less or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedLimits {
    pub fuel_per_message: Option<u64>,
    pub memory_bytes: Option<usize>,
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("is there twice")]
    Twice,
    #[error("is longer than {BYTES_MAX} bytes")]
    TooLong,
    #[error("is no text in UTF-8")]
    NotText,
    #[error("is no valid manifest: {0}")]
    Invalid(String),
}

impl Manifest {
    /// Reads and checks the text of the section.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        if bytes.len() > BYTES_MAX {
            return Err(ManifestError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| ManifestError::NotText)?;
        let manifest: Manifest =
            toml::from_str(text).map_err(|error| ManifestError::Invalid(error.message().to_owned()))?;
        manifest.check().map_err(ManifestError::Invalid)?;
        Ok(manifest)
    }

    /// Of a component that carries no manifest.
    pub(crate) fn assumed(name: &str) -> Manifest {
        let settings = toml::Table::from_iter([("type".to_owned(), "object".into())]);
        Manifest {
            name: format!("local:{name}"),
            version: "0".into(),
            kind: PluginKind::Respond,
            contract: CONTRACT.into(),
            description: String::new(),
            control: false,
            slots: Vec::new(),
            limits: WantedLimits::default(),
            settings,
            is_assumed: true,
        }
    }

    /// What a grant of this name has to be; none: it takes no such grant. A component without a
    /// manifest knows no names: it takes APIs under any.
    pub fn takes(&self, name: &str) -> Option<SlotKind> {
        match self.slot(name) {
            Some(slot) => Some(slot.kind),
            None => self.is_assumed.then_some(SlotKind::Http),
        }
    }

    /// The slot of a name.
    pub fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }

    fn check(&self) -> Result<(), String> {
        let well_named =
            self.name.split_once(':').is_some_and(|(space, name)| is_word(space) && is_word(name));
        if !well_named {
            return Err(format!("name `{}` is not `namespace:name` in lower case", self.name));
        }
        if self.version.is_empty() || self.version.len() > 64 {
            return Err("version is empty or too long".into());
        }
        if self.slots.len() > SLOTS_MAX {
            return Err(format!("more than {SLOTS_MAX} slots"));
        }
        let states = self.slots.iter().filter(|slot| slot.kind == SlotKind::State).count();
        if states > 1 {
            return Err("more than one slot of type `state`: a plugin has one state".into());
        }
        if states > 0 && self.kind.is_source() {
            return Err("a source has no `state`: what it keeps is its cursor".into());
        }
        for (n, slot) in self.slots.iter().enumerate() {
            if !is_word(&slot.name) {
                return Err(format!("slot name `{}` is not a word in lower case", slot.name));
            }
            if self.slots.iter().take(n).any(|earlier| earlier.name == slot.name) {
                return Err(format!("slot `{}` is declared twice", slot.name));
            }
        }
        Ok(())
    }
}

impl PluginKind {
    pub const ALL: &[PluginKind] = &[
        PluginKind::Transform,
        PluginKind::StreamSource,
        PluginKind::PollSource,
        PluginKind::HttpSource,
        PluginKind::Sender,
        PluginKind::HttpSender,
        PluginKind::Respond,
    ];

    pub const fn is_source(self) -> bool {
        match self {
            PluginKind::StreamSource
            | PluginKind::PollSource
            | PluginKind::HttpSource
            | PluginKind::Respond => true,
            PluginKind::Transform | PluginKind::Sender | PluginKind::HttpSender => false,
        }
    }

    /// As in a manifest; but for `respond` also the name of the WIT interface it exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            PluginKind::Transform => "transform",
            PluginKind::StreamSource => "stream-source",
            PluginKind::PollSource => "poll-source",
            PluginKind::HttpSource => "http-source",
            PluginKind::Sender => "sender",
            PluginKind::HttpSender => "http-sender",
            PluginKind::Respond => "respond",
        }
    }
}

impl fmt::Display for PluginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PluginKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        PluginKind::ALL.iter().copied().find(|kind| kind.as_str() == text).ok_or(())
    }
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SlotKind::Http => "http",
            SlotKind::Folder => "folder",
            SlotKind::Tcp => "tcp",
            SlotKind::Reveal => "reveal",
            SlotKind::Sign => "sign",
            SlotKind::State => "state",
        })
    }
}

fn is_word(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    plain && !text.is_empty() && text.len() <= 64
}

fn no_settings() -> toml::Table {
    toml::Table::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        name = "acme:lab-sender"
        version = "1.2.3"
        kind = "http-sender"
        contract = "0.1"
        [[slot]]
        name = "api"
        type = "http"
        required = true
        [limits]
        memory_bytes = 1048576
        [settings]
        type = "object"
        properties.method = { type = "string", default = "POST" }
    "#;

    #[test]
    fn a_manifest_is_read() {
        let manifest = Manifest::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(manifest.kind, PluginKind::HttpSender);
        assert_eq!(manifest.slot("api").map(|slot| (slot.kind, slot.required)), Some((SlotKind::Http, true)));
        assert_eq!(manifest.limits.memory_bytes, Some(1 << 20));
        assert!(!manifest.control);
    }

    #[test]
    fn a_bad_manifest_is_refused_with_its_reason() {
        let cases = [
            (GOOD.replace("acme:lab-sender", "Lab"), "namespace:name"),
            (GOOD.replace("\"http-sender\"", "\"receiver\""), "unknown variant"),
            (GOOD.replace("required = true", "must = true"), "unknown field"),
            (GOOD.replace("[limits]", "[[slot]]\nname = \"api\"\ntype = \"tcp\"\n[limits]"), "twice"),
            (GOOD.replace("\"http\"", "\"state\"").replace("http-sender", "poll-source"), "its cursor"),
            (GOOD.replace("[limits]", "[[slot]]\nname = \"a\"\ntype = \"state\"\n[[slot]]\nname = \"b\"\ntype = \"state\"\n[limits]"), "more than one slot of type `state`"),
            ("name = ".to_owned(), ""),
        ];
        for (text, reason) in cases {
            let error = Manifest::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(Manifest::parse(&[0xff]), Err(ManifestError::NotText));
    }
}
