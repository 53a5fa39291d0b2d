//! `portway schema`: JSON Schemas of project files, for editors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value as Json;

use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::wiring::{PluginCatalog, plugin_schemas};

/// Where a project keeps the schemas that its files name.
pub const FOLDER: &str = ".portway/schema";

/// Prints or writes the JSON Schemas of project files.
///
/// They hold every option, what the plugins that come with Portway take, and what the project's
/// own plugins take. Editors that know TOML and JSON Schema complete files with them that begin
/// with `#:schema PATH`; `portway init` makes such files. Write them again after an update or
/// a new plugin.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// Write them into this folder, one file each, instead of printing them
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let draft = args.project.read();
    let catalog = draft.project().map(PluginCatalog::of).unwrap_or_default();
    let schemas = of_catalog(&catalog)?;
    let Some(folder) = args.out else {
        let by_name: BTreeMap<&str, Json> = schemas
            .iter()
            .map(|(name, text)| Ok((*name, serde_json::from_str(text)?)))
            .collect::<Result<_, serde_json::Error>>()?;
        let text = |schemas: &BTreeMap<&str, Json>| serde_json::to_string_pretty(schemas).unwrap_or_default();
        output.data(&by_name, text)?;
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    for (name, text) in schemas {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
        output.note(format!("wrote {}", path.display()));
    }
    Ok(Exit::Done)
}

/// The schemas with the plugins of a catalog: their file names and texts.
pub(crate) fn of_catalog(catalog: &PluginCatalog) -> anyhow::Result<Vec<(&'static str, String)>> {
    Ok(portway_config::schemas(&plugin_schemas(catalog)?))
}
