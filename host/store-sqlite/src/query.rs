//! Running queries and reading their rows.

use portway_store::StoreError;
use rusqlite::{Connection, Params, Row};

use crate::error::{damaged, failed};

/// All rows of a query. A query outside of a transaction is one by itself, which ends here: no reader
/// keeps the log from being moved into the main file.
pub(crate) fn rows<T>(
    connection: &Connection,
    what: &str,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let error = |error| failed(what, error);
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let mut rows = statement.query(params).map_err(error)?;
    let mut items = Vec::new();
    while let Some(row) = rows.next().map_err(error)? {
        items.push(read(row)?);
    }
    Ok(items)
}

/// The first row of a query, if there is one.
pub(crate) fn row<T>(
    connection: &Connection,
    what: &str,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let error = |error| failed(what, error);
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    let mut rows = statement.query(params).map_err(error)?;
    rows.next().map_err(error)?.map(read).transpose()
}

/// An integer of a row.
pub(crate) fn int(row: &Row<'_>, column: usize) -> Result<i64, StoreError> {
    row.get(column).map_err(|_| damaged("a number cannot be read"))
}

/// An integer of a row, or none.
pub(crate) fn maybe_int(row: &Row<'_>, column: usize) -> Result<Option<i64>, StoreError> {
    row.get(column).map_err(|_| damaged("a number cannot be read"))
}

/// A text of a row, or none.
pub(crate) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, StoreError> {
    let text = row.get_ref(column).map_err(|_| damaged("a text cannot be read"))?;
    text.as_str_or_null().map_err(|_| damaged("a text cannot be read"))
}

/// Bytes of a row.
pub(crate) fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], StoreError> {
    let bytes = row.get_ref(column).map_err(|_| damaged("bytes cannot be read"))?;
    bytes.as_blob().map_err(|_| damaged("bytes cannot be read"))
}
