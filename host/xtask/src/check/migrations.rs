//! The migrations of both stores: every change of one is seen in review.
//!
//! Only statements count: what is said about them can be mended. What they may do is held by tests of the
//! stores.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

const HASHES: &str = "docs/reference/migration-hashes.txt";

/// Whether the list is that of the files.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let written = fs::read_to_string(root.join(HASHES)).unwrap_or_default();
    if written == hashes(root)? {
        return Ok(Vec::new());
    }
    let finding = "a migration has changed, which one that was released never does: run `cargo xtask fix`";
    Ok(vec![format!("{HASHES}: {finding}")])
}

/// Writes the list of hashes.
pub fn write(root: &Path) -> Result<()> {
    fs::write(root.join(HASHES), hashes(root)?).context(HASHES)
}

fn hashes(root: &Path) -> Result<String> {
    let mut text = String::new();
    for store in ["postgres", "sqlite"] {
        let folder = Path::new("migrations").join(store);
        let files = fs::read_dir(root.join(&folder)).with_context(|| folder.display().to_string())?;
        let mut names = files.map(|file| Ok(file?.file_name())).collect::<Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            let path = folder.join(name);
            let digest = Sha256::digest(statements(&fs::read_to_string(root.join(&path))?));
            let hex = digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            writeln!(text, "{hex}  {}", path.display())?;
        }
    }
    Ok(text)
}

/// Without the lines that are for people, as the stores take them.
fn statements(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_count() {
        assert_eq!(statements("-- Does: a.\n  -- more\nCREATE; -- b\n"), "CREATE; -- b\n");
    }
}
