//! What the tests share: a runtime, the components, an observer that remembers, and batches.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use portway_model::{AttemptNo, Attributes, Envelope, MessageId, Timestamp};
use portway_runtime::{
    Batch, Call, CallError, CallLimits, Fault, Level, Observer, Opening, Plugin, Runtime, RuntimeSettings,
};
use tokio::sync::OnceCell;

/// The bytes of a component that an xtask made.
pub fn component(folder: &str, name: &str) -> Vec<u8> {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let path = target.join(folder).join(format!("{name}.wasm"));
    let command = if folder == "plugins" { "cargo xtask plugins" } else { "cargo xtask plugins --test" };
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{error}: `{}`\nhint: run `{command}` first", path.display());
    })
}

/// One runtime for all tests.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new(settings()).unwrap())
}

/// With native code kept between runs, since a compiler built for tests is slow.
pub fn settings() -> RuntimeSettings {
    let cache_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native");
    RuntimeSettings { cache_dir: Some(cache_dir), ..RuntimeSettings::default() }
}

/// A component, compiled once for all tests.
pub async fn plugin(folder: &'static str, name: &'static str) -> Plugin {
    type Loaded = Vec<(&'static str, Arc<OnceCell<Plugin>>)>;
    static LOADED: OnceLock<Mutex<Loaded>> = OnceLock::new();
    let cell = {
        let mut loaded = LOADED.get_or_init(Mutex::default).lock().unwrap();
        match loaded.iter().find(|(known, _)| *known == name) {
            Some((_, cell)) => cell.clone(),
            None => {
                loaded.push((name, Arc::default()));
                loaded.last().unwrap().1.clone()
            }
        }
    };
    let load = || async { runtime().load(name, &component(folder, name)).await.unwrap() };
    cell.get_or_init(load).await.clone()
}

pub async fn hostile_transform() -> Plugin {
    plugin("plugins-test", "hostile-transform").await
}

pub async fn hostile_sender() -> Plugin {
    plugin("plugins-test", "hostile-sender").await
}

pub async fn hostile_source() -> Plugin {
    plugin("plugins-test", "hostile-stream-source").await
}

/// Remembers all it hears.
#[derive(Default)]
pub struct Heard {
    lines: Mutex<Vec<String>>,
}

impl Observer for Heard {
    fn log(&self, level: Level, text: &str) {
        self.lines.lock().unwrap().push(format!("{} {text}", level.as_str()));
    }

    fn notice(&self, code: &str, text: &str) {
        self.lines.lock().unwrap().push(format!("notice {code}: {text}"));
    }

    fn fault(&self, fault: &Fault) {
        self.lines.lock().unwrap().push(format!("fault {}", fault.kind.as_str()));
    }
}

impl Heard {
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

/// An opening of a hostile plugin: what it does wrong, and on which text.
pub fn deed(deed: &str, on: &str) -> Opening {
    deed_with(deed, on, CallLimits::default())
}

pub fn deed_with(deed: &str, on: &str, limits: CallLimits) -> Opening {
    let settings = format!(r#"{{"deed": "{deed}", "on": "{on}"}}"#);
    Opening { limits, ..Opening::new("lab", "archive", settings) }
}

/// The same, with someone who listens.
pub fn heard(mut opening: Opening) -> (Arc<Heard>, Opening) {
    let heard = Arc::new(Heard::default());
    opening.observer = heard.clone();
    (heard, opening)
}

pub fn limits() -> CallLimits {
    CallLimits::default()
}

/// Messages with these bodies, numbered from 1.
pub fn batch(bodies: &[&str]) -> Batch {
    bytes_batch(bodies.iter().map(|body| Bytes::copy_from_slice(body.as_bytes())).collect())
}

pub fn bytes_batch(bodies: Vec<Bytes>) -> Batch {
    let messages = (1..).zip(bodies).map(|(id, body)| Envelope {
        id: MessageId(id),
        received_at: Timestamp(1_000),
        attempt: AttemptNo(1),
        key: None,
        attributes: Arc::new(Attributes::new(vec![("type".into(), "ORU^R01".into())]).unwrap()),
        body,
    });
    Batch {
        store: "test".into(),
        ordered: false,
        timeout: Duration::from_secs(30),
        messages: messages.collect(),
        watch: None,
    }
}

/// The fault a call ended with.
pub fn fault<T: std::fmt::Debug>(call: Call<T>) -> Fault {
    match call.result {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("no fault: {other:?}"),
    }
}

/// A component with another manifest in place of its own.
pub fn with_manifest(mut component: Vec<u8>, manifest: &str) -> Vec<u8> {
    let range = wasmparser::Parser::new(0)
        .parse_all(&component)
        .find_map(|payload| match payload.unwrap() {
            wasmparser::Payload::CustomSection(section) if section.name() == "portway:manifest" => {
                Some(section.range())
            }
            _ => None,
        })
        .unwrap();
    // The tools put it at the end: id, size, then the section's range.
    assert_eq!(range.end, component.len());
    let mut size_bytes = 1;
    let mut size = range.len();
    while size >= 0x80 {
        size >>= 7;
        size_bytes += 1;
    }
    component.truncate(range.start - size_bytes - 1);
    if !manifest.is_empty() {
        component.extend(custom_section("portway:manifest", manifest.as_bytes()));
    }
    component
}

/// A custom section as it stands in a component.
pub fn custom_section(name: &str, content: &[u8]) -> Vec<u8> {
    let leb = |mut number: usize| {
        let mut bytes = Vec::new();
        loop {
            let byte = (number & 0x7f) as u8;
            number >>= 7;
            if number == 0 {
                bytes.push(byte);
                return bytes;
            }
            bytes.push(byte | 0x80);
        }
    };
    let mut body = leb(name.len());
    body.extend(name.as_bytes());
    body.extend(content);
    let mut section = vec![0];
    section.extend(leb(body.len()));
    section.extend(body);
    section
}
