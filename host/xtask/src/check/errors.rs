//! Every code has a page, and every page says the same kinds of things.
//!
//! The registry is `portway_model::code`; that nobody goes around it is checked in `codes`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use portway_model::code;

use crate::error_pages::{self, FOLDER, INDEX, Page};

const HEADINGS: [&str; 3] = ["## Where you see it", "## Why", "## What to do"];
/// A page is read by somebody in a hurry.
const LINES_MAX: usize = 24;

/// Codes without a page, pages without a code, pages of another shape, and an index that is not
/// what the pages say.
pub fn findings(root: &Path) -> Result<Vec<String>> {
    let pages = error_pages::read(root)?;
    let codes: Vec<&str> = code::all().collect();
    let mut findings = of_registry(&codes, &pages);
    findings.extend(pages.iter().flat_map(of_page));
    let index = fs::read_to_string(root.join(FOLDER).join(INDEX)).unwrap_or_default();
    findings.extend(of_index(&index, &pages));
    Ok(findings)
}

fn of_registry(codes: &[&str], pages: &[Page]) -> Vec<String> {
    let written: BTreeSet<&str> = pages.iter().map(|page| page.code.as_str()).collect();
    let missing = codes.iter().filter(|code| !written.contains(*code)).map(|code| {
        format!(
            "{FOLDER}/{code}.md: write this page: a code that an operator can meet says what happened and what to do"
        )
    });
    let left_over = written.iter().filter(|page| !codes.contains(page)).map(|page| {
        format!("{FOLDER}/{page}.md: no such code in host/model/src/code: add it there, or remove the page")
    });
    missing.chain(left_over).collect()
}

fn of_page(page: &Page) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |rule: String| findings.push(format!("{FOLDER}/{}.md: {rule}", page.code));
    if page.text.lines().next() != Some(format!("# {}", page.code).as_str()) {
        find(format!("begin with the title `# {}`", page.code));
    }
    let summary = page.summary();
    if summary.starts_with('#') || !summary.ends_with('.') {
        find("behind the title stands one sentence on one line: what happened, and to what".to_owned());
    }
    let found: Vec<&str> = page.text.lines().filter(|line| line.starts_with("## ")).collect();
    if found != HEADINGS {
        find(format!("its headings are `{}`, in this order and no others", HEADINGS.join("`, `")));
    }
    let lines: Vec<&str> = page.text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_heading = |line: &&str| line.starts_with('#');
    if lines.windows(2).any(|two| two.iter().all(is_heading)) || lines.last().is_some_and(is_heading) {
        find("no heading without a sentence below it".to_owned());
    }
    if page.text.lines().count() > LINES_MAX {
        find(format!("more than {LINES_MAX} lines: it is read in a hurry; longer stories are guides"));
    }
    findings
}

fn of_index(index: &str, pages: &[Page]) -> Option<String> {
    let is_current = index == error_pages::index(pages);
    (!is_current).then(|| format!("{FOLDER}/{INDEX}: not what the pages say: run `cargo xtask gen`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(code: &str) -> Page {
        let text =
            format!("# {code}\n\nIt broke.\n\n{}\n", HEADINGS.map(|h| format!("{h}\n\nSo.\n")).join("\n"));
        Page { code: code.to_owned(), text }
    }

    #[test]
    fn a_code_without_a_page_and_a_page_without_a_code_are_found() {
        assert_eq!(of_registry(&["a"], &[page("a")]), Vec::<String>::new());
        let found = of_registry(&["a", "b"], &[page("a"), page("c")]);
        assert!(found[0].starts_with("docs/reference/errors/b.md: write this page"), "{found:?}");
        assert!(found[1].starts_with("docs/reference/errors/c.md: no such code"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_page_of_another_shape_is_found() {
        assert_eq!(of_page(&page("a")), Vec::<String>::new());
        let breaches: [(&str, &str, &str); 6] = [
            ("# a\n", "# b\n", "begin with the title"),
            ("It broke.", "It broke", "one sentence on one line"),
            ("## Why\n", "## Reasons\n", "its headings are"),
            ("## What to do\n\nSo.\n", "", "its headings are"),
            ("## Why\n\nSo.\n", "## Why\n", "no heading without"),
            ("So.\n", "So.\nSo.\nSo.\nSo.\nSo.\n", "more than 24 lines"),
        ];
        for (from, to, rule) in breaches {
            let found = of_page(&Page { text: page("a").text.replace(from, to), ..page("a") });
            assert!(found.iter().any(|finding| finding.contains(rule)), "{rule}: {found:?}");
        }
    }

    #[test]
    fn an_index_that_says_something_else_is_found() {
        let pages = [page("a")];
        assert_eq!(of_index(&error_pages::index(&pages), &pages), None);
        assert!(of_index(&error_pages::index(&[]), &pages).is_some());
    }
}
