//! The names of the columns: each has one, and no two the same.
//!
//! An object cannot have a name twice, and what stands below no name is nobody's.

use std::collections::BTreeSet;

use portway_json::Value;

/// Columns at most.
const COLUMNS_MAX: usize = 4096;

/// The columns in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    /// What is written before a value: `{"id":` for the first, `,"name":` for the others.
    keys: Vec<Vec<u8>>,
}

impl Columns {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// The columns of these names, or the sentence that says why they are none.
pub(crate) fn columns<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Result<Columns, String> {
    if names.len() == 0 {
        return Err("there are no columns".into());
    }
    if names.len() > COLUMNS_MAX {
        return Err(format!("there are {} columns, and {COLUMNS_MAX} are allowed", names.len()));
    }
    let (mut seen, mut keys) = (BTreeSet::new(), Vec::with_capacity(names.len()));
    let mut before = '{';
    for (name, number) in names.zip(1_usize..) {
        if name.is_empty() {
            return Err(format!("column {number} has no name"));
        }
        if !seen.insert(name) {
            let shown: String = name.chars().take(80).collect();
            return Err(format!("column {number} has the name `{shown}`, as an earlier one has"));
        }
        keys.push(format!("{before}{}:", Value::Text(name.into()).to_json()).into_bytes());
        before = ',';
    }
    Ok(Columns { keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Result<Vec<Vec<u8>>, String> {
        columns(names.iter().copied()).map(|columns| columns.keys)
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        assert_eq!(
            of(&["id", "Id", " "]),
            Ok(vec![b"{\"id\":".into(), b",\"Id\":".into(), b",\" \":".into()])
        );
        assert_eq!(of(&[]), Err("there are no columns".into()));
        assert_eq!(of(&["a", ""]), Err("column 2 has no name".into()));
        assert_eq!(of(&["a", "b", "a"]), Err("column 3 has the name `a`, as an earlier one has".into()));
        let many: Vec<String> = (0..=COLUMNS_MAX).map(|number| number.to_string()).collect();
        assert!(columns(many.iter().map(String::as_str)).unwrap_err().contains("4096 are allowed"));
    }
}
