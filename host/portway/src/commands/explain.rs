//! `portway explain`: what a code means and what to do, from the pages inside the binary.

use anyhow::anyhow;
use portway_config::nearest;
use serde::Serialize;

use super::show;
use crate::error_pages::{self, ErrorPage};
use crate::output::{Exit, Output};

/// Says what the code of an error means and what to do; without a code it lists all of them.
///
/// The code stands before the text of a reason, as in `ack-timeout: the peer did not acknowledge`, and in the hint
/// below an error. For the status of a web service, the code is the number.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The code.
    code: Option<String>,
}

/// A page as data.
#[derive(Serialize)]
struct Explanation {
    code: &'static str,
    summary: &'static str,
    text: &'static str,
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let Some(code) = args.code else {
        let pages: Vec<ErrorPage> = error_pages::list().collect();
        output.data(&pages, |pages| show_list(pages))?;
        return Ok(Exit::Done);
    };
    match error_pages::get(&code) {
        Some(ErrorPage { code, summary, text }) => {
            output.data(&Explanation { code, summary, text }, |page| page.text.to_owned())?;
            Ok(Exit::Done)
        }
        None => {
            output.error(&anyhow!("there is no page about `{code}`"), Some(&hint(&code)), None);
            Ok(Exit::Failed)
        }
    }
}

fn hint(code: &str) -> String {
    match nearest(code, error_pages::list().map(|page| page.code)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`portway explain` lists every code; a plugin or a peer may have others".to_owned(),
    }
}

fn show_list(pages: &[ErrorPage]) -> String {
    let rows: Vec<_> = pages.iter().map(|page| [page.code.to_owned(), page.summary.to_owned()]).collect();
    show::table(["CODE", "WHAT HAPPENED"], &rows)
}
