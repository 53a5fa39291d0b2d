//! What comes out of a case, as the files that are compared.
//!
//! `source.txt` says what the source found; each destination has a folder with `verdict.txt`,
//! its outputs, and the requests that its plugins make where the case states answers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use portway_config::{CaseFile, InterfaceSettings};
use portway_model::{AttemptNo, Attributes, Draft, Envelope, Key, MessageId, Timestamp};
use portway_runtime::Asked;

use crate::wiring::rehearsal::{Answers, Ended, Found, Input, Rehearsal};

/// One file, by its path without its ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    /// Chosen by what it holds.
    pub ending: &'static str,
    pub bytes: Vec<u8>,
}

/// Every file, by its path under `expected/` without its ending.
pub(super) type Produced = BTreeMap<String, File>;

/// Takes the inputs through source and destinations.
pub(super) async fn produce(
    interface: &InterfaceSettings,
    case: &CaseFile,
    inputs: &[Input],
    rehearsal: &mut Rehearsal<'_>,
) -> anyhow::Result<Produced> {
    let mut produced = Produced::new();
    let mut said = String::new();
    let mut of_source = Answers::of_source(case);
    let (mut messages, mut count) = (Vec::new(), 0_usize);
    for input in inputs {
        for found in rehearsal.receive(interface, case, input, &mut of_source).await? {
            match found {
                Found::Message(draft) => {
                    let draft = laid_over(draft, case)?;
                    count += 1;
                    say_message(&mut said, count, &draft);
                    // What is in doubt is stored and quarantined at once: no destination gets it.
                    if draft.doubt.is_none() {
                        messages.push(envelope(&draft, count - 1, case.clock.0));
                    }
                }
                other => {
                    let _ = writeln!(said, "{}", not_a_message(&other));
                }
            }
        }
    }
    produced.insert("source".to_owned(), text_file(said));
    let asked = of_source.take_asked(None);
    if of_source.are_stated_for(None) {
        insert_requests(&mut produced, "source-", &asked);
    }
    for destination in &interface.destinations {
        let name = destination.name.value.as_str();
        let mut answers = Answers::of(case, name);
        let (mut verdicts, mut outputs, mut requests) = (String::new(), Vec::new(), Vec::new());
        for message in &messages {
            let passed = rehearsal.pass(interface, destination, case, message.clone(), &mut answers).await?;
            let _ = writeln!(verdicts, "{}", one_line(&passed.ended));
            if matches!(passed.ended, Ended::Delivered(_) | Ended::Routed(..)) {
                outputs.extend(passed.outputs.iter().map(|output| output.body.to_vec()));
            }
            for (number, step) in (1..).zip(passed.steps) {
                requests.extend(step.asked.into_iter().filter(|_| answers.are_stated_for(Some(number))));
            }
            requests.extend(passed.asked.filter(|_| answers.are_stated_for(None)));
        }
        produced.insert(format!("{name}/verdict"), text_file(verdicts));
        for (number, bytes) in outputs.iter().enumerate() {
            let path = numbered(&format!("{name}/"), "output", number, outputs.len());
            produced.insert(path, File { ending: ending_of(bytes), bytes: bytes.clone() });
        }
        insert_requests(&mut produced, &format!("{name}/"), &requests);
    }
    Ok(produced)
}

fn text_file(text: String) -> File {
    File { ending: "txt", bytes: text.into_bytes() }
}

fn insert_requests(produced: &mut Produced, before: &str, requests: &[Asked]) {
    for (number, asked) in requests.iter().enumerate() {
        let path = numbered(before, "request", number, requests.len());
        produced.insert(path, File { ending: "http", bytes: request_text(asked) });
    }
}

/// `output` where there is one, `output-1` and so on where there are several.
fn numbered(before: &str, what: &str, number: usize, count: usize) -> String {
    match count {
        1 => format!("{before}{what}"),
        _ => format!("{before}{what}-{}", number + 1),
    }
}

/// A message with the key and the attributes that the case states.
fn laid_over(mut draft: Draft, case: &CaseFile) -> anyhow::Result<Draft> {
    if let Some(key) = &case.key {
        let key = Key::new(key);
        draft.key = Some(key.ok_or_else(|| anyhow::anyhow!("the key of the case is empty or too long"))?);
    }
    let stated = case.attributes.json.as_object().into_iter().flatten();
    let stated: Vec<(String, String)> =
        stated.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
    if !stated.is_empty() {
        draft.attributes = draft.attributes.overlay(&Attributes::new(stated)?)?;
    }
    Ok(draft)
}

/// The message as destinations get it; the number counts from 0.
pub(crate) fn envelope(draft: &Draft, number: usize, now: u64) -> Envelope {
    Envelope {
        id: MessageId(number as u64 + 1),
        received_at: Timestamp(now),
        attempt: AttemptNo(1),
        key: draft.key.clone(),
        attributes: Arc::new(draft.attributes.clone()),
        body: draft.body.clone(),
    }
}

fn say_message(said: &mut String, number: usize, draft: &Draft) {
    let _ = write!(said, "message {number}: {} bytes", draft.body.len());
    for (what, key) in [("key", &draft.key), ("dedupe", &draft.dedupe)] {
        if let Some(key) = key {
            let _ = write!(said, ", {what} {}", plain(key.as_str()));
        }
    }
    said.push('\n');
    if let Some(doubt) = &draft.doubt {
        let _ = writeln!(said, "  quarantined at once: {}", plain(&doubt.to_string()));
    }
    for (name, value) in draft.attributes.pairs() {
        let _ = writeln!(said, "  {} = {}", plain(name), plain(value));
    }
}

/// What a source found that is no message, as one line.
pub(crate) fn not_a_message(found: &Found) -> String {
    match found {
        Found::Message(_) => String::new(),
        Found::Refused(failure) => format!("refused: {}", plain(&failure.to_string())),
        Found::Control => "a part of the protocol without a message".to_owned(),
        Found::Answered { status, text } => format!("answered with {status}: {}", plain(text)),
        Found::Responded { status, text } => format!("responded with {status}: {}", plain(text)),
        Found::Failed(text) => format!("failed: {}", plain(text)),
    }
}

fn one_line(ended: &Ended) -> String {
    plain(&ended.to_string())
}

/// Text on one line.
fn plain(text: &str) -> String {
    crate::output::escape(text)
}

/// The request as it can be read; what the host adds is not in it.
pub(crate) fn request_text(asked: &Asked) -> Vec<u8> {
    let mut text = format!("{} {}:{}\n", asked.method, asked.slot, asked.path_or_url);
    for (name, value) in &asked.headers {
        let _ = writeln!(text, "{name}: {value}");
    }
    let mut bytes = text.into_bytes();
    bytes.push(b'\n');
    bytes.extend_from_slice(&asked.body);
    bytes
}

fn ending_of(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"MSH") {
        return "hl7";
    }
    let begins_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let may_be_json = begins_json.is_some_and(|byte| matches!(byte, b'{' | b'['));
    if may_be_json && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        return "json";
    }
    if std::str::from_utf8(bytes).is_ok() { "txt" } else { "bin" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_named_by_what_they_hold() {
        let endings = [&b"MSH|"[..], b" {\"a\":1}", b"[1", b"a,b\n", b"\xff"].map(ending_of);
        assert_eq!(endings, ["hl7", "json", "txt", "txt", "bin"]);
        assert_eq!(numbered("api/", "output", 0, 1), "api/output");
        assert_eq!(numbered("api/", "output", 1, 2), "api/output-2");
    }
}
