//! `portway try`: one message through an interface, with every step shown.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use bytes::Bytes;
use portway_config::{CaseFile, InterfaceSettings};
use portway_model::{Attributes, Draft, Envelope};
use portway_runtime::Asked;
use serde::Serialize;

use super::{open, show};
use crate::cases::{envelope, not_a_message, read_input, request_text};
use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};
use crate::traffic::message::now;
use crate::wiring::rehearsal::{Answers, Ended, Found, Passage, Rehearsal, Stage};

/// Bytes of a body that are shown.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// Takes a message through an interface and shows every step.
///
/// FILE is what the source receives: a message of HL7 for `mllp` (its frame is put around it),
/// a body or a whole request in a `.http` file for `http` and for a component that answers itself,
/// bytes as they come for `tcp`, a body for any other. It goes through the real plugins; nothing is
/// stored and nothing is sent. Of an HTTP sender it is shown what it would ask for. Ends with 1
/// when a message would not arrive.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    project: ProjectArgs,
    /// The interface
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// What its source receives
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only through this destination
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
}

/// Everything that happened.
#[derive(Serialize)]
struct Trial {
    interface: String,
    source: Option<String>,
    /// What its plugin would ask of web services.
    requests: Vec<String>,
    found: Vec<FoundView>,
    /// What the source's plugin said beside it.
    said: Vec<String>,
}

/// One thing that the source found.
#[derive(Serialize)]
struct FoundView {
    /// None: it is no message, and `text` says what it is.
    message: Option<MessageView>,
    text: Option<String>,
    /// It was answered by a component that stores nothing: that is its end.
    responded: bool,
    destinations: Vec<DestinationView>,
}

#[derive(Serialize)]
struct MessageView {
    key: Option<String>,
    dedupe: Option<String>,
    attributes: Vec<(String, String)>,
    doubt: Option<String>,
    body: BodyView,
}

/// A body, its beginning as text.
#[derive(Serialize)]
struct BodyView {
    bytes: usize,
    text: String,
}

#[derive(Serialize)]
struct DestinationView {
    destination: String,
    steps: Vec<StepView>,
    sender: Option<String>,
    /// What an HTTP sender would ask for.
    request: Option<String>,
    verdict: String,
    arrives: bool,
    said: Vec<String>,
}

#[derive(Serialize)]
struct StepView {
    transform: String,
    /// None: the message goes on.
    verdict: Option<String>,
    /// What it would ask of web services.
    requests: Vec<String>,
    outputs: Vec<OutputView>,
}

#[derive(Serialize)]
struct OutputView {
    key: Option<String>,
    attributes: Vec<(String, String)>,
    body: BodyView,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let (project, catalog) = match open::open(&args.project, output)? {
        Ok(opened) => opened,
        Err(exit) => return Ok(exit),
    };
    let interface = project
        .interface(&args.interface)
        .ok_or_else(|| anyhow!("there is no interface `{}`", args.interface))?;
    let is_there = |name: &str| interface.destinations.iter().any(|one| one.name.value.as_str() == name);
    if let Some(name) = args.destination.as_deref().filter(|name| !is_there(name)) {
        bail!("interface `{}` has no destination `{name}`", args.interface);
    }
    let input = read_input(&args.file, project.limits.message_bytes_max.0)?;
    let mut case = CaseFile::default();
    case.clock.0 = now().0;
    let stage = Stage::new(&project)?;
    let mut rehearsal = stage.rehearse(&project, &catalog);
    let mut answers = Answers::of_source(&case);
    let all = rehearsal.receive(interface, &case, &input, &mut answers).await?;
    let requests = answers.take_asked(None).iter().map(shown_request).collect();
    let said = rehearsal.take_said();
    let mut found = Vec::with_capacity(all.len());
    for (number, one) in all.iter().enumerate() {
        found.push(try_found(&args, interface, &case, (number, one), &mut rehearsal).await?);
    }
    let source = interface.source.as_ref().map(|source| source.plugin.value.to_string());
    let trial = Trial { interface: args.interface, source, requests, found, said };
    output.data(&trial, show_trial)?;
    Ok(if trial.arrives() { Exit::Done } else { Exit::Failed })
}

async fn try_found(
    args: &Args,
    interface: &InterfaceSettings,
    case: &CaseFile,
    (number, found): (usize, &Found),
    rehearsal: &mut Rehearsal<'_>,
) -> anyhow::Result<FoundView> {
    let Found::Message(draft) = found else {
        let text = Some(not_a_message(found));
        let responded = matches!(found, Found::Responded { .. });
        return Ok(FoundView { message: None, text, responded, destinations: Vec::new() });
    };
    let message = Some(message_view(draft));
    let mut destinations = Vec::new();
    // What is in doubt is stored and quarantined at once.
    let delivered = interface.destinations.iter().filter(|_| draft.doubt.is_none());
    for destination in delivered {
        let name = destination.name.value.as_str();
        if args.destination.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let envelope = envelope(draft, number, case.clock.0);
        let mut answers = Answers::of(case, name);
        let passed = rehearsal.pass(interface, destination, case, envelope, &mut answers).await?;
        let sender = destination.sender.as_ref().map(|sender| sender.plugin.value.to_string());
        destinations.push(destination_view(name, sender, passed, rehearsal.take_said()));
    }
    Ok(FoundView { message, text: None, responded: false, destinations })
}

fn message_view(draft: &Draft) -> MessageView {
    let text = |key: &Option<portway_model::Key>| key.as_ref().map(|key| key.as_str().to_owned());
    MessageView {
        key: text(&draft.key),
        dedupe: text(&draft.dedupe),
        attributes: pairs(&draft.attributes),
        doubt: draft.doubt.as_ref().map(ToString::to_string),
        body: body_view(&draft.body),
    }
}

fn destination_view(
    name: &str,
    sender: Option<String>,
    passed: Passage,
    said: Vec<String>,
) -> DestinationView {
    let step = |step: &crate::wiring::rehearsal::Step| StepView {
        transform: step.plugin.clone(),
        verdict: step.ended.as_ref().map(ToString::to_string),
        requests: step.asked.iter().map(shown_request).collect(),
        outputs: step.outputs.iter().map(output_view).collect(),
    };
    let arrives = matches!(passed.ended, Ended::Delivered(_) | Ended::Routed(..) | Ended::Filtered(_));
    DestinationView {
        destination: name.to_owned(),
        steps: passed.steps.iter().map(step).collect(),
        sender,
        request: passed.asked.as_ref().map(shown_request),
        verdict: passed.ended.to_string(),
        arrives,
        said,
    }
}

fn shown_request(asked: &Asked) -> String {
    text_of(&request_text(asked))
}

fn output_view(output: &Envelope) -> OutputView {
    OutputView {
        key: output.key.as_ref().map(|key| key.as_str().to_owned()),
        attributes: pairs(&output.attributes),
        body: body_view(&output.body),
    }
}

fn pairs(attributes: &Attributes) -> Vec<(String, String)> {
    attributes.pairs().to_vec()
}

fn body_view(body: &Bytes) -> BodyView {
    BodyView { bytes: body.len(), text: text_of(body) }
}

/// The beginning of bytes as text; what is none is replaced.
fn text_of(bytes: &[u8]) -> String {
    let shown = bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes);
    let mut text = String::from_utf8_lossy(shown).into_owned();
    if shown.len() < bytes.len() {
        text.push('…');
    }
    text
}

impl Trial {
    /// Something was found, and all of it reaches an end that is meant.
    fn arrives(&self) -> bool {
        let all = |found: &FoundView| {
            let is_good = found.message.as_ref().is_some_and(|message| message.doubt.is_none());
            found.responded || is_good && found.destinations.iter().all(|destination| destination.arrives)
        };
        !self.found.is_empty() && self.found.iter().all(all)
    }
}

fn show_trial(trial: &Trial) -> String {
    let mut text = String::new();
    let source = trial.source.as_deref().unwrap_or("none, only routes lead here");
    let _ = writeln!(text, "source {source}");
    trial.requests.iter().for_each(|request| show_text(&mut text, "    > ", request));
    show_said(&mut text, "  ", &trial.said);
    if trial.found.is_empty() {
        text.push_str("  finds nothing\n");
    }
    for (number, found) in trial.found.iter().enumerate() {
        match (&found.message, &found.text) {
            (Some(message), _) => show_message(&mut text, number + 1, message),
            (None, what) => {
                let _ = writeln!(text, "  {}", what.as_deref().unwrap_or_default());
            }
        }
        found.destinations.iter().for_each(|destination| show_destination(&mut text, destination));
    }
    text
}

fn show_message(text: &mut String, number: usize, message: &MessageView) {
    let size = show::counted(message.body.bytes as u64, "byte");
    let _ = writeln!(text, "  message {number}: {size}");
    for (what, value) in [("key", &message.key), ("dedupe", &message.dedupe)] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {what} {value}");
        }
    }
    for (name, value) in &message.attributes {
        let _ = writeln!(text, "    {name} = {value}");
    }
    if let Some(doubt) = &message.doubt {
        let _ = writeln!(text, "    quarantined at once: {doubt}");
    }
    show_text(text, "    | ", &message.body.text);
}

fn show_destination(text: &mut String, destination: &DestinationView) {
    let _ = writeln!(text, "destination {}", destination.destination);
    for step in &destination.steps {
        let _ = writeln!(text, "  {}: {}", step.transform, step.verdict.as_deref().unwrap_or("goes on"));
        step.requests.iter().for_each(|request| show_text(text, "    > ", request));
        for output in &step.outputs {
            if let Some(key) = &output.key {
                let _ = writeln!(text, "    key {key}");
            }
            for (name, value) in &output.attributes {
                let _ = writeln!(text, "    {name} = {value}");
            }
            show_text(text, "    | ", &output.body.text);
        }
    }
    if let Some(sender) = &destination.sender {
        let _ = writeln!(text, "  sender {sender}");
    }
    if let Some(request) = &destination.request {
        show_text(text, "    > ", request);
    }
    show_said(text, "  ", &destination.said);
    let _ = writeln!(text, "  {}", destination.verdict);
}

fn show_said(text: &mut String, indent: &str, said: &[String]) {
    for line in said {
        let _ = writeln!(text, "{indent}says {line}");
    }
}

/// A body, a line a row; segments of HL7 end with carriage returns.
fn show_text(text: &mut String, mark: &str, body: &str) {
    for line in body.replace("\r\n", "\n").replace('\r', "\n").lines() {
        let _ = writeln!(text, "{mark}{line}");
    }
}
