//! A look at a component before anything of it is compiled: what it is, which contract it
//! speaks, what it imports and exports, and its manifest.
//!
//! Reads the outermost layer only. Whether the code inside is valid is found by the compiler.

use wasmparser::{Encoding, Parser, Payload};

use crate::fault_text::shortened;
use crate::load::LoadError;
use crate::manifest::{Manifest, ManifestError, PluginKind, SECTION};
use crate::settings::COMPONENT_BYTES_MAX;

/// The contract this engine speaks: minor versions below 1.0 exclude each other.
pub const CONTRACT: &str = "0.1";

/// WIT interfaces of `portway:host` that are linked.
const SERVICES: &[&str] =
    &["log", "progress", "text", "blobs", "files", "connect", "http", "secrets", "state"];
/// WIT interfaces of `portway:plugin` a component may import: for their types alone.
const TYPES: &[&str] = &["types", "sender"];
/// WASI packages that are linked, in 0.2.
const WASI: &[&str] = &["cli", "clocks", "filesystem", "http", "io", "random", "sockets"];

/// What a component exports, of `wasi:http`, that answers requests itself.
const RESPONDS: &str = "incoming-handler";

/// A versioned name such as `portway:host/log@0.1.0`.
struct Name<'a> {
    package: &'a str,
    interface: &'a str,
    version: &'a str,
}

/// The manifest of a component that this engine could load, without compiling it.
pub fn read_manifest(name: &str, bytes: &[u8]) -> Result<Manifest, LoadError> {
    inspect(name, bytes)
}

/// Refuses what cannot be a plugin of this engine, with a sentence that says what to do.
pub(crate) fn inspect(name: &str, bytes: &[u8]) -> Result<Manifest, LoadError> {
    if bytes.len() > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge { plugin: name.into(), bytes: bytes.len() });
    }
    let surface = Surface::read(name, bytes)?;
    let kind = surface.kind(name)?;
    for import in &surface.imports {
        check_import(name, import)?;
    }
    let section = match surface.manifest {
        Some(section) => section,
        // It is made for any host of `wasi:http`.
        None if kind == PluginKind::Respond => return Ok(Manifest::assumed(name)),
        None => return Err(LoadError::NoManifest { plugin: name.into() }),
    };
    let manifest =
        Manifest::parse(section).map_err(|source| LoadError::Manifest { plugin: name.into(), source })?;
    if !speaks_ours(&manifest.contract) {
        return Err(LoadError::Contract { plugin: name.into(), found: shortened(&manifest.contract) });
    }
    if manifest.kind != kind {
        return Err(LoadError::Kind { plugin: name.into(), manifest: manifest.kind, exported: kind });
    }
    Ok(manifest)
}

/// What the outermost layer says.
struct Surface<'a> {
    imports: Vec<String>,
    exports: Vec<String>,
    manifest: Option<&'a [u8]>,
}

impl<'a> Surface<'a> {
    fn read(name: &str, bytes: &'a [u8]) -> Result<Surface<'a>, LoadError> {
        let damaged = |error: wasmparser::BinaryReaderError| LoadError::NoComponent {
            plugin: name.into(),
            reason: error.to_string(),
        };
        if !bytes.starts_with(b"\0asm") {
            let reason = "it does not begin as WebAssembly does".into();
            return Err(LoadError::NoComponent { plugin: name.into(), reason });
        }
        let mut surface = Surface { imports: Vec::new(), exports: Vec::new(), manifest: None };
        let mut depth = 0_u32;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(damaged)? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(LoadError::CoreModule { plugin: name.into() });
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        surface.imports.push(import.map_err(damaged)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        surface.exports.push(export.map_err(damaged)?.name.name.to_owned());
                    }
                }
                Payload::CustomSection(section) if depth == 0 && section.name() == SECTION => {
                    if surface.manifest.is_some() {
                        let source = ManifestError::Twice;
                        return Err(LoadError::Manifest { plugin: name.into(), source });
                    }
                    surface.manifest = Some(section.data());
                }
                _ => {}
            }
        }
        Ok(surface)
    }

    /// The one kind it exports.
    fn kind(&self, name: &str) -> Result<PluginKind, LoadError> {
        let mut kinds = Vec::new();
        for export in self.exports.iter().filter_map(|export| Name::parse(export)) {
            if export.package == "wasi:http" && export.interface == RESPONDS {
                if !is_wasi(export.version) {
                    return Err(LoadError::Contract { plugin: name.into(), found: export.shown() });
                }
                kinds.push(PluginKind::Respond);
            }
            if export.package != "portway:plugin" || export.interface == "types" {
                continue;
            }
            if !speaks_ours(export.version) {
                return Err(LoadError::Contract { plugin: name.into(), found: shortened(export.version) });
            }
            match export.interface.parse() {
                Ok(kind) if kind != PluginKind::Respond => kinds.push(kind),
                Ok(_) | Err(()) => {
                    return Err(LoadError::UnknownKind {
                        plugin: name.into(),
                        kind: shortened(export.interface),
                    });
                }
            }
        }
        match kinds.as_slice() {
            [kind] => Ok(*kind),
            [] => Err(LoadError::NoKind { plugin: name.into() }),
            _ => {
                let kinds = kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join("`, `");
                Err(LoadError::ManyKinds { plugin: name.into(), kinds })
            }
        }
    }
}

impl<'a> Name<'a> {
    fn parse(text: &'a str) -> Option<Name<'a>> {
        let (path, version) = text.split_once('@').unwrap_or((text, ""));
        let (package, interface) = path.split_once('/')?;
        Some(Name { package, interface, version })
    }

    fn shown(&self) -> String {
        shortened(&format!("{}/{}@{}", self.package, self.interface, self.version))
    }
}

/// The version of WASI that is linked.
fn is_wasi(version: &str) -> bool {
    version.starts_with("0.2.")
}

fn check_import(plugin: &str, import: &str) -> Result<(), LoadError> {
    let unknown = || LoadError::UnknownImport { plugin: plugin.into(), import: shortened(import) };
    let name = Name::parse(import).ok_or_else(unknown)?;
    let (known, ours) = match name.package.split_once(':') {
        Some(("portway", "host")) => (SERVICES.contains(&name.interface), speaks_ours(name.version)),
        Some(("portway", "plugin")) => (TYPES.contains(&name.interface), speaks_ours(name.version)),
        Some(("wasi", package)) => {
            let is_known = WASI.contains(&package) && name.interface != RESPONDS;
            (is_known && is_wasi(name.version), true)
        }
        _ => (false, true),
    };
    if !ours {
        return Err(LoadError::Contract { plugin: plugin.into(), found: shortened(name.version) });
    }
    if known { Ok(()) } else { Err(unknown()) }
}

/// Below 1.0 the minor version is the contract.
fn speaks_ours(version: &str) -> bool {
    version == CONTRACT || version.strip_prefix(CONTRACT).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_is_its_minor_version() {
        assert!(["0.1", "0.1.0", "0.1.7"].into_iter().all(speaks_ours));
        assert!(!["0.2.0", "0.10.0", "1.0.0", "", "0.1-draft"].into_iter().any(speaks_ours));
    }

    #[test]
    fn what_is_not_linked_is_named() {
        for import in [
            "portway:host/sql@0.1.0",
            "wasi:http/incoming-handler@0.2.3",
            "wasi:http/types@0.3.0",
            "wasi:cli/stdout@0.3.0",
            "env",
        ] {
            let error = check_import("p", import).unwrap_err();
            assert!(
                matches!(&error, LoadError::UnknownImport { import: named, .. } if named == import),
                "{error}"
            );
        }
        let error = check_import("p", "portway:host/log@0.2.0").unwrap_err();
        assert!(matches!(error, LoadError::Contract { .. }), "{error}");
        assert!(check_import("p", "wasi:io/streams@0.2.6").is_ok());
        assert!(check_import("p", "wasi:http/types@0.2.0").is_ok());
    }
}
