//! The columns: what each is called, and where its value stands.

use std::collections::BTreeSet;

use portway_json::Path;
use portway_sdk::Failure;

use crate::settings::ColumnConfig;

const COLUMNS_MAX: usize = 1000;

/// A column that has been judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    pub path: Path,
    pub required: bool,
}

/// The columns, or everything that is wrong with them.
pub(crate) fn columns(written: Vec<ColumnConfig>) -> Result<Vec<Column>, Failure> {
    let mut problems = Vec::new();
    if written.is_empty() || written.len() > COLUMNS_MAX {
        problems.push(format!("setting `columns`: there are {}, not 1 to {COLUMNS_MAX}", written.len()));
    }
    let (mut names, mut columns) = (BTreeSet::new(), Vec::new());
    for (number, column) in written.into_iter().enumerate().take(COLUMNS_MAX) {
        let place = format!("setting `columns[{number}]");
        if column.name.is_empty() {
            problems.push(format!("{place}.name` is empty"));
        } else if !names.insert(column.name.clone()) {
            problems.push(format!("{place}.name`: an earlier column is called `{}` as well", column.name));
        }
        let path = column.path.map_or_else(|| Ok(Path::of_member(&column.name)), |path| path.parse());
        match path {
            Ok(path) => columns.push(Column { name: column.name, path, required: column.required }),
            Err(error) => problems.push(format!("{place}.path`: {error}")),
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(Failure::new("bad-settings", problems.join("; "))) }
}
