//! The names of the columns: each has one, and no two the same.
//!
//! An object cannot have a name twice, and what stands below no name is nobody's.

use std::collections::BTreeSet;

/// Columns at most.
pub(crate) const COLUMNS_MAX: usize = 4096;

/// The names, or the sentence that says why they are none.
pub(crate) fn columns<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Result<Vec<String>, String> {
    if names.len() == 0 {
        return Err("there are no columns".into());
    }
    if names.len() > COLUMNS_MAX {
        return Err(format!("there are {} columns, and {COLUMNS_MAX} are allowed", names.len()));
    }
    let (mut seen, mut columns) = (BTreeSet::new(), Vec::with_capacity(names.len()));
    for (name, number) in names.zip(1_usize..) {
        if name.is_empty() {
            return Err(format!("column {number} has no name"));
        }
        if !seen.insert(name) {
            let first = columns.iter().position(|earlier| earlier == name).unwrap_or_default() + 1;
            let shown: String = name.chars().take(80).collect();
            return Err(format!("columns {first} and {number} have the same name `{shown}`"));
        }
        columns.push(name.to_owned());
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Result<Vec<String>, String> {
        columns(names.iter().copied())
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        assert_eq!(of(&["id", "Id", " "]), Ok(vec!["id".into(), "Id".into(), " ".into()]));
        assert_eq!(of(&[]), Err("there are no columns".into()));
        assert_eq!(of(&["a", ""]), Err("column 2 has no name".into()));
        assert_eq!(of(&["a", "b", "a"]), Err("columns 1 and 3 have the same name `a`".into()));
        let many: Vec<String> = (0..=COLUMNS_MAX).map(|number| number.to_string()).collect();
        assert!(columns(many.iter().map(String::as_str)).unwrap_err().contains("4096 are allowed"));
    }
}
