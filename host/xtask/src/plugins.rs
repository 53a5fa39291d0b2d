//! `cargo xtask plugins`: builds the plugins of this repository as components that carry
//! their manifests.
//!
//! A folder with a `plugin.toml` is a first-party plugin and becomes
//! `plugins/<folder>.wasm` in the target directory, where the binary's build finds it. The
//! hostile guests of the tests are the examples of `plugins/hostile`, each with a manifest
//! beside it, and become `plugins-test/<name>.wasm`. What a manifest says in full is
//! checked by the runtime that loads it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::process::{cargo, run};

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "plugin";
const SECTION: &str = "portway:manifest";
const KINDS: &[&str] =
    &["transform", "stream-source", "poll-source", "http-source", "sender", "http-sender", "respond"];

/// Components that are made for any host, and have no manifest.
const FOREIGN: &str = "plugin-foreign";

/// Which plugins to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that travel inside the binary.
    FirstParty,
    /// Those that misbehave on purpose, for the tests.
    Hostile,
}

/// One component to be made.
struct Plugin {
    /// Of the file it becomes, without `.wasm`.
    name: String,
    /// What `cargo build` is told to build.
    arguments: Vec<String>,
    /// None: it is made for any host of `wasi:http`.
    manifest: Option<PathBuf>,
    /// Where cargo leaves it, below the profile's folder.
    artifact: String,
}

/// Builds them with one call of cargo; a file that did not change is not written, so that
/// the binary is not built anew for nothing.
pub fn build(root: &Path, which: Which) -> Result<()> {
    let workspace = workspace(root)?;
    let plugins = match which {
        Which::FirstParty => first_party(&workspace)?,
        Which::Hostile => hostile(root)?,
    };
    ensure!(!plugins.is_empty(), "there are no plugins to build");
    let contract = contract(root)?;
    let manifests: Vec<Option<String>> =
        plugins.iter().map(|plugin| manifest(plugin, &contract)).collect::<Result<_>>()?;

    add_target(root)?;
    let mut command = cargo(root);
    command.args(["build", "--profile", PROFILE, "--target", TARGET]);
    run(command.args(plugins.iter().flat_map(|plugin| &plugin.arguments)))?;

    let built = workspace.target_directory.join(TARGET).join(PROFILE);
    let folder = workspace.target_directory.join(which.folder());
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (plugin, manifest) in plugins.iter().zip(&manifests) {
        let artifact = built.join(&plugin.artifact);
        let mut component = fs::read(&artifact).with_context(|| artifact.display().to_string())?;
        if let Some(manifest) = manifest {
            component.extend_from_slice(&custom_section(SECTION, manifest.as_bytes()));
        }
        let file = folder.join(format!("{}.wasm", plugin.name));
        let change = write_if_changed(&file, &component)?;
        println!("{} ({} KiB, {change})", file.display(), component.len() / 1024);
    }
    Ok(())
}

impl Which {
    fn folder(self) -> &'static str {
        match self {
            Which::FirstParty => "plugins",
            Which::Hostile => "plugins-test",
        }
    }
}

/// What `cargo metadata` says of the workspace.
#[derive(Deserialize)]
struct Workspace {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

fn workspace(root: &Path) -> Result<Workspace> {
    let mut command = cargo(root);
    command.args(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "`cargo metadata` ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("cannot read what `cargo metadata` says")
}

fn first_party(workspace: &Workspace) -> Result<Vec<Plugin>> {
    let plugins_folder = workspace.workspace_root.join("plugins");
    let mut plugins = Vec::new();
    for package in &workspace.packages {
        let Some(folder) = package.manifest_path.parent() else { continue };
        let manifest = folder.join("plugin.toml");
        if folder.parent() != Some(&plugins_folder) || !manifest.is_file() {
            continue;
        }
        let is_component = |target: &&Target| target.crate_types.iter().any(|kind| kind == "cdylib");
        let Some(target) = package.targets.iter().find(is_component) else {
            bail!(
                "`{}` has a `plugin.toml` but no library with `crate-type = [\"cdylib\", …]`",
                package.name
            );
        };
        plugins.push(Plugin {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            arguments: vec!["--package".into(), package.name.clone()],
            manifest: Some(manifest),
            artifact: format!("{}.wasm", target.name.replace('-', "_")),
        });
    }
    Ok(plugins)
}

fn hostile(root: &Path) -> Result<Vec<Plugin>> {
    let folder = root.join("plugins/hostile/examples");
    let mut plugins = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let manifest = entry?.path();
        if manifest.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = manifest.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let arguments = ["--package", "plugin-hostile", "--example", &name].map(String::from).to_vec();
        let artifact = format!("examples/{}.wasm", name.replace('-', "_"));
        plugins.push(Plugin { name, arguments, manifest: Some(manifest), artifact });
    }
    let foreign = |name: &str, target: &[&str], artifact: &str| Plugin {
        name: name.into(),
        arguments: ["--package", FOREIGN].iter().chain(target).map(|word| (*word).to_owned()).collect(),
        manifest: None,
        artifact: artifact.into(),
    };
    plugins.push(foreign("foreign-respond", &["--lib"], "foreign_respond.wasm"));
    plugins.push(foreign("quotes", &["--example", "quotes"], "examples/quotes.wasm"));
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(plugins)
}

/// The version of the contract that a manifest names: `0.1` for `portway:plugin@0.1.0`.
fn contract(root: &Path) -> Result<String> {
    let path = root.join("wit/worlds.wit");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let version =
        text.lines().find_map(|line| line.strip_prefix("package portway:plugin@")?.strip_suffix(';'));
    let version = version.with_context(|| format!("{} names no version of its package", path.display()))?;
    Ok(version.rsplit_once('.').map_or(version, |(version, _)| version).to_owned())
}

/// Reads a manifest and checks what would otherwise be found out when it is loaded.
fn manifest(plugin: &Plugin, contract: &str) -> Result<Option<String>> {
    let Some(manifest) = &plugin.manifest else { return Ok(None) };
    let path = manifest.display();
    let text = fs::read_to_string(manifest).with_context(|| path.to_string())?;
    let get = |key: &str| top_level(&text, key).with_context(|| format!("{path}: `{key}` is missing"));
    let (name, kind, built_for) = (get("name")?, get("kind")?, get("contract")?);
    let expected = format!("portway:{}", plugin.name);
    ensure!(name == expected, "{path}: name is `{name}`, its folder says `{expected}`");
    ensure!(KINDS.contains(&kind), "{path}: kind `{kind}` is not one of {}", KINDS.join(", "));
    ensure!(built_for == contract, "{path}: contract is `{built_for}`, `wit/` is `{contract}`");
    Ok(Some(text))
}

/// A string above the first table. Enough for the few keys needed here, and spares every
/// build of this program a TOML parser.
fn top_level<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let mut values = lines.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then_some(value.trim())
    });
    values.next()?.strip_prefix('"')?.split('"').next()
}

/// Adds the target where the toolchain lacks it.
fn add_target(root: &Path) -> Result<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .current_dir(root)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .context("cannot start rustc")?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && folder.is_dir() {
        return Ok(());
    }
    println!("adding the target {TARGET}");
    run(Command::new("rustup").current_dir(root).args(["target", "add", TARGET]))
        .with_context(|| format!("the Rust target `{TARGET}` is missing: install it, or rustup"))
}

/// A custom section of a component, to be put behind its last one.
fn custom_section(name: &str, content: &[u8]) -> Vec<u8> {
    let mut payload = leb128(name.len());
    payload.extend_from_slice(name.as_bytes());
    payload.extend_from_slice(content);
    let mut section = vec![0];
    section.extend(leb128(payload.len()));
    section.extend(payload);
    section
}

/// An unsigned number, seven bits a byte, the lowest first.
fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7F).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Written beside and renamed: a build that reads it meanwhile sees the old or the new one.
fn write_if_changed(file: &Path, bytes: &[u8]) -> Result<&'static str> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok("unchanged");
    }
    let beside = file.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, bytes).with_context(|| beside.display().to_string())?;
    fs::rename(&beside, file).with_context(|| file.display().to_string())?;
    Ok("written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_id_size_name_and_content() {
        assert_eq!(custom_section("ab", b"xyz"), b"\x00\x06\x02abxyz");
        assert_eq!(leb128(0), [0]);
        assert_eq!(leb128(300), [0xAC, 0x02]);
    }

    #[test]
    fn only_what_stands_above_the_first_table_is_read() {
        let text =
            "# a plugin\nname = \"portway:x\" # its name\nkind= \"sender\"\n[[slot]]\ncontract = \"0.1\"\n";
        assert_eq!(top_level(text, "name"), Some("portway:x"));
        assert_eq!(top_level(text, "kind"), Some("sender"));
        assert_eq!(top_level(text, "contract"), None);
    }
}
