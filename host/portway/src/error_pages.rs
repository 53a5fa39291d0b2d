//! The pages of `docs/reference/errors/`, which travel inside the binary.
//!
//! An operator has them where the error is, in the version of the program that made it.

use portway_model::code;
use serde::Serialize;

include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

/// One code's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorPage {
    pub code: &'static str,
    /// What happened, in a sentence.
    pub summary: &'static str,
    #[serde(skip)]
    pub text: &'static str,
}

/// Every page, in the order of the codes.
pub fn list() -> impl Iterator<Item = ErrorPage> {
    PAGES.iter().map(|(code, text)| ErrorPage { code, summary: summary(text), text })
}

/// The page that explains a code.
pub fn get(code: &str) -> Option<ErrorPage> {
    let code = code::registered(code)?;
    list().find(|page| page.code == code)
}

/// The line behind the title.
fn summary(text: &'static str) -> &'static str {
    text.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_in_the_binary() {
        for code in code::all() {
            let page = get(code).map(|page| (page.code, page.summary.ends_with('.')));
            assert_eq!(page, Some((code, true)), "docs/reference/errors/{code}.md");
        }
        assert_eq!(list().count(), code::all().count());
    }
}
