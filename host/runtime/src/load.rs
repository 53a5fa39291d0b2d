//! From a component's bytes to a plugin that can be opened: looked at, compiled or taken from
//! the cache, linked.

use std::sync::Arc;

use portway_model::code;
use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use crate::compile::CompileError;
use crate::inspect::{self, CONTRACT};
use crate::manifest::{Manifest, ManifestError, PluginKind};
use crate::plugin::{Plugin, PluginInner};
use crate::runtime::RuntimeInner;
use crate::settings::COMPONENT_BYTES_MAX;

/// Why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("plugin `{plugin}` has {bytes} bytes, at most {COMPONENT_BYTES_MAX} are allowed")]
    TooLarge { plugin: String, bytes: usize },
    #[error("plugin `{plugin}` is no WebAssembly component: {reason}")]
    NoComponent { plugin: String, reason: String },
    #[error("plugin `{plugin}` is a core WebAssembly module, not a component")]
    CoreModule { plugin: String },
    #[error("plugin `{plugin}` has no manifest")]
    NoManifest { plugin: String },
    #[error("the manifest of plugin `{plugin}` {source}")]
    Manifest { plugin: String, source: ManifestError },
    #[error("plugin `{plugin}` is built for contract {found}, this engine knows {CONTRACT}")]
    Contract { plugin: String, found: String },
    #[error("plugin `{plugin}` exports none of the kinds this engine calls")]
    NoKind { plugin: String },
    #[error("plugin `{plugin}` exports `{kind}`, a kind this engine does not call")]
    UnknownKind { plugin: String, kind: String },
    #[error("plugin `{plugin}` exports several kinds: `{kinds}`")]
    ManyKinds { plugin: String, kinds: String },
    #[error("plugin `{plugin}` says that it is a `{manifest}`, but it exports `{exported}`")]
    Kind { plugin: String, manifest: PluginKind, exported: PluginKind },
    #[error("plugin `{plugin}` imports `{import}`, which this engine does not offer")]
    UnknownImport { plugin: String, import: String },
    #[error("plugin `{plugin}` does not compile")]
    Compile { plugin: String, source: CompileError },
    #[error("plugin `{plugin}` does not fit the contract: {reason}")]
    Link { plugin: String, reason: String },
}

impl LoadError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            LoadError::TooLarge { .. } => "build it in release mode, without debug information".into(),
            LoadError::NoComponent { .. } => "check that the path names the `.wasm` file the build made".into(),
            LoadError::CoreModule { .. } => {
                "build it for the target `wasm32-wasip2`, or turn it into a component with `wasm-tools component new`".into()
            }
            LoadError::NoManifest { .. } => {
                "build it with a Portway SDK, which puts `plugin.toml` into the section `portway:manifest`".into()
            }
            LoadError::Manifest { .. } => "correct its `plugin.toml` and build it again".into(),
            LoadError::Contract { .. } => {
                format!("build it with an SDK for contract {CONTRACT}, or run an engine that knows its contract")
            }
            LoadError::NoKind { .. } | LoadError::UnknownKind { .. } => {
                let of_ours = PluginKind::ALL.iter().filter(|kind| **kind != PluginKind::Respond);
                let kinds: Vec<_> = of_ours.map(|kind| kind.as_str()).collect();
                let kinds = kinds.join("`, `");
                format!("export one of `{kinds}` from `portway:plugin`, or `wasi:http/incoming-handler`")
            }
            LoadError::ManyKinds { .. } => "make one component of each kind".into(),
            LoadError::Kind { exported, .. } => {
                format!("write `kind = \"{exported}\"` in its `plugin.toml`, or export what it says")
            }
            LoadError::UnknownImport { .. } => {
                "remove what needs it, or run an engine that offers it".into()
            }
            LoadError::Compile { source, .. } => source.hint().into(),
            LoadError::Link { .. } => "build it against the WIT packages of this engine".into(),
        }
    }
}

impl LoadError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::TooLarge { .. } => code::PLUGIN_TOO_LARGE,
            LoadError::NoComponent { .. } => code::PLUGIN_NO_COMPONENT,
            LoadError::CoreModule { .. } => code::PLUGIN_CORE_MODULE,
            LoadError::NoManifest { .. } => code::PLUGIN_NO_MANIFEST,
            LoadError::Manifest { .. } => code::PLUGIN_BAD_MANIFEST,
            LoadError::Contract { .. } => code::PLUGIN_CONTRACT,
            LoadError::NoKind { .. } | LoadError::UnknownKind { .. } | LoadError::ManyKinds { .. } => {
                code::PLUGIN_KIND_UNKNOWN
            }
            LoadError::Kind { .. } => code::PLUGIN_KIND_MISMATCH,
            LoadError::UnknownImport { .. } => code::PLUGIN_UNKNOWN_IMPORT,
            LoadError::Compile { source, .. } => source.code(),
            LoadError::Link { .. } => code::PLUGIN_DOES_NOT_FIT,
        }
    }
}

/// Loads a component; `name` is what the project calls it.
pub(crate) async fn load(runtime: &Arc<RuntimeInner>, name: &str, bytes: &[u8]) -> Result<Plugin, LoadError> {
    let manifest = inspect::inspect(name, bytes)?;
    let digest = hex(&Sha256::digest(bytes));
    let component = runtime
        .native
        .component(&runtime.engines_for(manifest.kind), &digest, bytes)
        .await
        .map_err(|source| LoadError::Compile { plugin: name.into(), source })?;
    link(runtime, name, digest, manifest, &component)
}

fn link(
    runtime: &Arc<RuntimeInner>,
    name: &str,
    digest: String,
    manifest: Manifest,
    component: &Component,
) -> Result<Plugin, LoadError> {
    let refused =
        |error: wasmtime::Error| LoadError::Link { plugin: name.into(), reason: format!("{error:#}") };
    let pre = runtime.linker_of(component).instantiate_pre(component).map_err(refused)?;
    let inner = PluginInner::new(runtime.clone(), name, digest, manifest, pre).map_err(refused)?;
    Ok(Plugin { inner: Arc::new(inner) })
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
