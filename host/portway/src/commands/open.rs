//! A project that a command needs whole: read, judged by its plugins' manifests, without a problem.

use anyhow::anyhow;
use portway_config::Project;

use super::validate::note_pages;
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::wiring::PluginCatalog;

/// The project and the plugins it can use; or how the command ends, after it said what is wrong.
pub(super) fn open(
    args: &ProjectArgs,
    output: &mut Output,
) -> anyhow::Result<Result<(Project, PluginCatalog), Exit>> {
    let mut draft = args.read();
    let catalog = draft.project().map(PluginCatalog::of);
    if let Some(catalog) = &catalog {
        draft.check_plugins(catalog);
    }
    match (draft.finish(), catalog) {
        (Ok(project), Some(catalog)) => Ok(Ok((project, catalog))),
        (Ok(_), None) => Err(anyhow!("the project cannot be read")),
        (Err(problems), _) => {
            output.note(&problems);
            note_pages(&problems, output);
            Ok(Err(Exit::Problems))
        }
    }
}
