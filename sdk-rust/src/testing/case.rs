//! Cases: folders of files that say what goes into a plugin and what must come out.
//!
//! - `settings.json`: the settings; none where it is missing.
//! - `call.json`: `{"ordered": true, "messages": [{"id": 1, "key": …, "attributes": {…}}]}`,
//!   all of it optional.
//! - `message.*`, or `message-1.*`, `message-2.*`, …: the bodies, in the order of their names.
//! - whatever else a kind needs; the rest is what is expected.
//!
//! `UPDATE_EXPECT=1 cargo test` writes what is expected anew; read the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{
    Attributes, Body, Call, Context, Failure, Message, SendVerdict, Transform, TransformVerdict, Trouble,
    parse_settings,
};

/// One folder.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub path: PathBuf,
    pub call: Call,
    pub messages: Vec<Message>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CallFile {
    ordered: bool,
    messages: Vec<MessageFile>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MessageFile {
    id: Option<u64>,
    key: Option<String>,
    received_ms: u64,
    attributes: BTreeMap<String, String>,
}

impl Case {
    /// All cases of a folder, by name. What cannot be read fails the test.
    pub fn all(folder: impl AsRef<Path>) -> Vec<Case> {
        let folder = folder.as_ref();
        let mut cases: Vec<Case> =
            names(folder).into_iter().map(|name| Case::load(folder.join(name))).collect();
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(!cases.is_empty(), "there are no cases in {}", folder.display());
        cases
    }

    fn load(path: PathBuf) -> Case {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let call: CallFile = read_json(&path.join("call.json")).unwrap_or_default();
        let mut described = call.messages.into_iter();
        let bodies = names(&path).into_iter().filter(|name| name.starts_with("message"));
        let messages = bodies.zip(1..).map(|(file, id)| {
            let described = described.next().unwrap_or_default();
            Message {
                id: described.id.unwrap_or(id),
                received_ms: described.received_ms,
                attempt: 1,
                key: described.key,
                attributes: Attributes::from_iter(described.attributes),
                body: Body::Inline(read(&path.join(file))),
            }
        });
        let messages = messages.collect();
        let call = Call::new("store", call.ordered, Duration::from_secs(600));
        Case { name, path, call, messages }
    }

    /// The settings as the plugin's own type.
    pub fn settings<S: DeserializeOwned>(&self) -> Result<S, Failure> {
        let json = self.text("settings.json").unwrap_or_default();
        parse_settings(&json)
    }

    /// What the plugin is opened for.
    pub fn context(&self) -> Context {
        Context {
            origin: "interface".into(),
            destination: "destination".into(),
            attributes: Attributes::new(),
        }
    }

    /// Opens a transform with the settings and gives it the messages, once; settings that it refuses
    /// are trouble.
    pub fn transform<T: Transform>(&mut self) -> Result<Vec<TransformVerdict>, Trouble> {
        let opened = self.settings().and_then(|settings| T::open(settings, &self.context()));
        let mut transform = opened.map_err(Trouble::Misconfigured)?;
        transform.transform_batch(&self.call, std::mem::take(&mut self.messages))
    }

    /// A file of the case as text; none: there is no such file.
    pub fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.path.join(file)).ok()
    }

    /// A file of the case as JSON; none: there is no such file.
    pub fn json<T: DeserializeOwned>(&self, file: &str) -> Option<T> {
        read_json(&self.path.join(file))
    }

    /// Files of a folder of the case, with paths relative to it.
    pub fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.path.join(folder);
        let mut files = BTreeMap::new();
        for name in names(&folder) {
            let path = folder.join(&name);
            if path.is_dir() {
                let inner = names(&path)
                    .into_iter()
                    .map(|inner| (format!("{name}/{inner}"), read(&path.join(inner))));
                files.extend(inner);
            } else {
                files.insert(name, read(&path));
            }
        }
        files
    }

    /// Compares with a file of the case, or writes it where `UPDATE_EXPECT` is set.
    pub fn expect(&self, file: &str, actual: impl AsRef<[u8]>) {
        let (path, actual) = (self.path.join(file), actual.as_ref());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let written =
                path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, actual));
            assert!(written.is_ok(), "cannot write {}: {written:?}", path.display());
            return;
        }
        let expected = fs::read(&path).unwrap_or_default();
        assert!(
            expected == actual,
            "case `{}`: {file} should be\n{}\nbut is\n{}",
            self.name,
            String::from_utf8_lossy(&expected),
            String::from_utf8_lossy(actual)
        );
    }
}

/// What became of a call of a sender, a line a message.
pub fn describe_sends(result: &Result<Vec<SendVerdict>, Trouble>) -> String {
    let verdicts = match result {
        Ok(verdicts) => verdicts,
        Err(trouble) => return format!("{}\n", describe_trouble(trouble)),
    };
    let lines = verdicts.iter().map(|verdict| match verdict {
        SendVerdict::Sent(answer) => format!("sent {}: {}\n", answer.code, answer.text),
        SendVerdict::Untried => "untried\n".to_owned(),
        SendVerdict::Retry(later) => format!("retry {}{}\n", later.failure, describe_wait(later.after_ms)),
        SendVerdict::Quarantine(failure) => format!("quarantine {failure}\n"),
    });
    lines.collect()
}

/// What became of a call of a transform: a line a message, and below it what it became.
pub fn describe_transforms(result: &Result<Vec<TransformVerdict>, Trouble>) -> String {
    let verdicts = match result {
        Ok(verdicts) => verdicts,
        Err(trouble) => return format!("{}\n", describe_trouble(trouble)),
    };
    let parts = verdicts.iter().map(|verdict| match verdict {
        TransformVerdict::Pass => "pass\n".to_owned(),
        TransformVerdict::Filter(reason) => format!("filter: {reason}\n"),
        TransformVerdict::Quarantine(failure) => format!("quarantine {failure}\n"),
        TransformVerdict::Retry(later) => {
            format!("retry {}{}\n", later.failure, describe_wait(later.after_ms))
        }
        TransformVerdict::Deliver(outputs) => {
            let bodies = outputs.iter().map(|output| {
                let bytes = output.body.bytes().unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if text.ends_with('\n') { text } else { text + "\n" }
            });
            std::iter::once("deliver\n".to_owned()).chain(bodies).collect()
        }
    });
    parts.collect()
}

fn describe_trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Unavailable(later) => {
            format!("unavailable {}{}", later.failure, describe_wait(later.after_ms))
        }
        Trouble::Misconfigured(failure) => format!("misconfigured {failure}"),
    }
}

fn describe_wait(after_ms: Option<u32>) -> String {
    after_ms.map_or_else(String::new, |ms| format!(" (not before {ms} ms)"))
}

/// Names in a folder, in order; none where there is no folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn read(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path);
    assert!(bytes.is_ok(), "cannot read {}: {bytes:?}", path.display());
    bytes.unwrap_or_default()
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let text = fs::read_to_string(path).ok()?;
    let value = serde_json::from_str(&text);
    assert!(
        value.is_ok(),
        "cannot read {}: {}",
        path.display(),
        value.err().map_or_else(String::new, |e| e.to_string())
    );
    value.ok()
}
