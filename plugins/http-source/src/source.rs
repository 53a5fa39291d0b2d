//! The source as the host sees it: requests in, messages and answers out.

use portway_sdk::{Accepted, Context, Decision, Failure, HttpAnswer, HttpRequest, HttpSource, Receipt};

use crate::answer::{of_receipts, refusal};
use crate::draft::Drafter;
use crate::elements::{Elements, Wrong};
use crate::settings::{Empty, Rules, Settings};

/// One interface's HTTP source.
#[derive(Debug)]
pub struct HttpMessages {
    rules: Rules,
}

impl HttpSource for HttpMessages {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(HttpMessages { rules: Rules::of(settings)? })
    }

    fn receive(&mut self, request: HttpRequest) -> Result<Decision, Failure> {
        let rules = &self.rules;
        if let Some(answer) = wrong_type(rules, &request) {
            return Ok(Decision::Refuse(answer));
        }
        let is_empty = request.body.is_empty();
        if is_empty && rules.empty == Empty::Refuse {
            return Ok(Decision::Refuse(refusal(400, "empty-body", "the request has no body", None)));
        }
        if is_empty && rules.format.is_some() {
            return Ok(Decision::Accept(Accepted::default()));
        }
        if request.body.len() > u64::from(u32::MAX) {
            return Ok(Decision::Refuse(refusal(
                413,
                "too-large",
                "the body is larger than a message may be",
                None,
            )));
        }
        let mut drafter = Drafter::new(rules, &request);
        let mut items = Vec::new();
        let found = Elements::of(&request.body).each(rules, Drafter::wants_bytes(rules), |record, bytes| {
            items.push(drafter.draft(record, bytes, items.len() + 1));
        });
        match found {
            Err(wrong) => of_wrong(rules, wrong).map(Decision::Refuse),
            Ok(()) if items.is_empty() && rules.empty == Empty::Refuse => {
                Ok(Decision::Refuse(refusal(400, "no-elements", "the body holds no element", None)))
            }
            Ok(()) => Ok(Decision::Accept(Accepted { items, ticket: Vec::new() })),
        }
    }

    fn settle(&mut self, _ticket: &[u8], receipts: Vec<Receipt>) -> Result<HttpAnswer, Failure> {
        Ok(of_receipts(&self.rules.success, &receipts))
    }
}

/// The answer to a content type that is not taken.
fn wrong_type(rules: &Rules, request: &HttpRequest) -> Option<HttpAnswer> {
    if rules.content_types.is_empty() {
        return None;
    }
    let written = request.header("content-type").unwrap_or_default();
    let media_type = written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let takes = |known: &String| match known.strip_suffix('*') {
        Some(kind) => media_type.starts_with(kind) && !media_type.is_empty(),
        None => *known == media_type,
    };
    if rules.content_types.iter().any(takes) {
        return None;
    }
    let known = rules.content_types.join(", ");
    let mut answer = refusal(
        415,
        "content-type",
        &format!("content type `{media_type}` is not taken, only {known}"),
        None,
    );
    answer.headers.push(("accept".into(), known));
    Some(answer)
}

fn of_wrong(rules: &Rules, wrong: Wrong) -> Result<HttpAnswer, Failure> {
    match wrong {
        Wrong::Broken(broken) => {
            let message = format!("{} at byte {}", broken.text, broken.at);
            Ok(refusal(400, broken.code, &message, Some(broken.at)))
        }
        Wrong::TooMany => {
            let message = format!("the body holds more than {} elements", rules.elements_max);
            Ok(refusal(413, "too-many-elements", &message, None))
        }
        Wrong::Body(error) => Err(Failure::new("body", error.to_string())),
    }
}
