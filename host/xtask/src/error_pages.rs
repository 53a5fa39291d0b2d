//! The pages of errors: read from their folder, and the index that is made of them.
//!
//! What is wrong with a page is found by `check::errors`; the pages themselves are written by hand.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub const FOLDER: &str = "docs/reference/errors";
/// The generated index, which is no page.
pub const INDEX: &str = "README.md";

const INTRODUCTION: &str = "# Errors

<!-- Generated from the first sentences of the pages here; change those and run `cargo xtask gen`. -->

Every error that an operator can meet has a code, and every code has a page.
A code stands before or behind the text of a reason, in counts of `portway status` and `/metrics`, and below an error of a command.
`portway explain CODE` prints the page; for the status of a web service the code is the number.
Plugins of others have codes of their own.

| code | what happened |
|---|---|
";

/// One page as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The name of its file, without `.md`.
    pub code: String,
    pub text: String,
}

impl Page {
    /// The first line behind the title.
    pub fn summary(&self) -> &str {
        self.text.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default()
    }
}

/// All pages, by code.
pub fn read(root: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER)).context(FOLDER)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(code) = name.strip_suffix(".md").filter(|_| name != INDEX) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            pages.push(Page { code: code.to_owned(), text });
        }
    }
    pages.sort_by(|one, other| one.code.cmp(&other.code));
    Ok(pages)
}

/// The index of all pages.
pub fn index(pages: &[Page]) -> String {
    let rows = pages.iter().map(|page| {
        let summary = page.summary().replace('|', "\\|");
        format!("| [`{0}`]({0}.md) | {summary} |\n", page.code)
    });
    std::iter::once(INTRODUCTION.to_owned()).chain(rows).collect()
}

/// Writes the index anew.
pub fn write_index(root: &Path) -> Result<()> {
    let path = root.join(FOLDER).join(INDEX);
    fs::write(&path, index(&read(root)?)).with_context(|| path.display().to_string())
}
