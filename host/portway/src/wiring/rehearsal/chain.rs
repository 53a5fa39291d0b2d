//! One message through one destination: each transform, then what its sender would do.
//!
//! Verdicts are those of `deliver`, so that a rehearsal ends as a delivery would.

use std::sync::Arc;
use std::time::Duration;

use portway_config::{CaseFile, DestinationSettings, InterfaceSettings, PluginUse, Role};
use portway_engine::ports::{Stop, Verdict};
use portway_model::{Envelope, Failure, SendVerdict};
use portway_runtime::{Asked, Batch, CallError, PluginKind, Rehearsed};

use super::super::assemble::AssembleError;
use super::super::deliver::{self, Step as Delivering};
use super::super::openings::Owner;
use super::answers::{Answers, Desk};
use super::{Rehearsal, with_case};

/// The store's name in idempotency keys.
const STORE: &str = "rehearsal";

/// What became of one message in one destination.
#[derive(Debug)]
pub struct Passage {
    pub steps: Vec<Step>,
    /// What the sender or the routes get; several only before a route.
    pub outputs: Vec<Envelope>,
    pub ended: Ended,
    /// What an HTTP sender would ask for.
    pub asked: Option<Asked>,
}

/// One transform's part.
#[derive(Debug)]
pub struct Step {
    pub plugin: String,
    pub ended: Option<Ended>,
    /// What it asked of web services.
    pub asked: Vec<Asked>,
    /// What goes on, if the transform did not end it.
    pub outputs: Vec<Envelope>,
}

/// How a message's way ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The sender would get it; with the answer where one was stated.
    Delivered(Option<String>),
    /// To another interface, so many messages.
    Routed(String, usize),
    Filtered(String),
    Quarantined(Failure),
    Retry(Failure),
    /// The plugin used up its limits.
    Runaway(Failure),
    /// The destination would stop or wait; no message is blamed.
    Stopped(Failure),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Delivered(None) => f.write_str("delivered"),
            Ended::Delivered(Some(answer)) => write!(f, "delivered: {answer}"),
            Ended::Routed(interface, 1) => write!(f, "routed to {interface}"),
            Ended::Routed(interface, count) => write!(f, "routed to {interface}: {count} messages"),
            Ended::Filtered(reason) => write!(f, "filtered: {reason}"),
            Ended::Quarantined(failure) => write!(f, "quarantined: {failure}"),
            Ended::Retry(failure) => write!(f, "retry: {failure}"),
            Ended::Runaway(failure) => write!(f, "runaway: {failure}"),
            Ended::Stopped(failure) => write!(f, "stopped: {failure}"),
        }
    }
}

impl Rehearsal<'_> {
    /// Takes a message through a destination.
    pub async fn pass(
        &mut self,
        interface: &InterfaceSettings,
        destination: &DestinationSettings,
        case: &CaseFile,
        message: Envelope,
        answers: &mut Answers,
    ) -> Result<Passage, AssembleError> {
        let name = &destination.name.value;
        let owner = Owner { interface: interface.name.as_str(), destination: name.as_str() };
        let mut passage =
            Passage { steps: Vec::new(), outputs: vec![message], ended: Ended::Delivered(None), asked: None };
        for (number, transform) in (1_u32..).zip(&destination.transform) {
            let is_last = number as usize == destination.transform.len();
            let several = is_last && destination.route.is_some();
            let plugin_use = with_case(transform, case, Some(name), Some(number));
            let Some(message) = passage.outputs.first().cloned() else { break };
            let given = (message, destination.timeout, several);
            let mut step = self.transform(&owner, &plugin_use, given, answers.desk(Some(number))).await?;
            step.asked = answers.take_asked(Some(number));
            passage.outputs.clone_from(&step.outputs);
            let ended = step.ended.clone();
            passage.steps.push(step);
            if let Some(ended) = ended {
                passage.ended = ended;
                return Ok(passage);
            }
        }
        if let Some(route) = &destination.route {
            passage.ended = Ended::Routed(route.value.to_string(), passage.outputs.len());
            return Ok(passage);
        }
        if let Some(sender) = &destination.sender {
            let plugin_use = with_case(sender, case, Some(name), None);
            self.send(&owner, &plugin_use, destination.timeout, &mut passage, answers).await?;
        }
        Ok(passage)
    }

    async fn transform(
        &mut self,
        owner: &Owner<'_>,
        plugin_use: &PluginUse,
        (message, timeout, several): (Envelope, Duration, bool),
        desk: Arc<Desk>,
    ) -> Result<Step, AssembleError> {
        let (plugin, opening) = self.open(Role::Transform, owner, plugin_use, desk).await?;
        let opened = plugin.transformer(opening)?;
        let call = opened.transform(&batch(message.clone(), timeout)).await;
        let step = Delivering::Ready(vec![message]);
        let step = match call.result.map(|verdicts| verdicts.into_iter().next()) {
            Ok(Some(verdict)) => deliver::after_transform(step, verdict, several),
            Ok(None) => step,
            Err(CallError::Fault(fault)) => Delivering::Done(deliver::judge(&fault)),
            Err(error) => {
                let ended = Some(stopped(deliver::stop(error)));
                let (plugin, asked) = (plugin.name().to_owned(), Vec::new());
                return Ok(Step { plugin, ended, asked, outputs: Vec::new() });
            }
        };
        let (ended, outputs) = match step {
            Delivering::Ready(outputs) => (None, outputs),
            Delivering::Done(verdict) => (Some(ended(verdict)), Vec::new()),
        };
        Ok(Step { plugin: plugin.name().to_owned(), ended, asked: Vec::new(), outputs })
    }

    /// An HTTP sender is asked what it would ask; any other would get the message.
    async fn send(
        &mut self,
        owner: &Owner<'_>,
        plugin_use: &PluginUse,
        timeout: Duration,
        passage: &mut Passage,
        answers: &mut Answers,
    ) -> Result<(), AssembleError> {
        let desk = answers.desk(None);
        let (plugin, opening) = self.open(Role::Sender, owner, plugin_use, desk.clone()).await?;
        let Some(message) = passage.outputs.first().cloned() else { return Ok(()) };
        if plugin.kind() != PluginKind::HttpSender {
            let opened = plugin.sender(opening)?;
            if let Err(error) = opened.check().await {
                passage.ended = of_error(error);
            }
            return Ok(());
        }
        let opened = plugin.http_sender(opening)?;
        let call = opened.rehearse(&batch(message, timeout), |_| desk.next()).await;
        let rehearsed = match call.result {
            Ok(rehearsed) => rehearsed.into_iter().next(),
            Err(error) => {
                passage.ended = of_error(error);
                return Ok(());
            }
        };
        let verdict = match rehearsed {
            Some(Rehearsed::Asks(asked, verdict)) => {
                passage.asked = Some(asked);
                verdict
            }
            Some(Rehearsed::Decided(verdict)) => Some(verdict),
            Some(Rehearsed::Refused(_, verdict)) => verdict,
            None => None,
        };
        if let Some(verdict) = verdict {
            passage.ended = of_sender(verdict);
        }
        Ok(())
    }
}

fn batch(message: Envelope, timeout: Duration) -> Batch {
    Batch { store: STORE.to_owned(), ordered: true, timeout, messages: vec![message], watch: None }
}

fn of_error(error: CallError) -> Ended {
    match error {
        CallError::Fault(fault) => ended(deliver::judge(&fault)),
        error => stopped(deliver::stop(error)),
    }
}

fn ended(verdict: Verdict) -> Ended {
    match verdict {
        Verdict::Sent(_) | Verdict::Untried | Verdict::Route(_) => Ended::Delivered(None),
        Verdict::Filtered(reason) => Ended::Filtered(reason),
        Verdict::Quarantine(failure) => Ended::Quarantined(failure),
        Verdict::Retry(later) => Ended::Retry(later.failure),
        Verdict::Runaway(failure) => Ended::Runaway(failure),
    }
}

fn of_sender(verdict: SendVerdict) -> Ended {
    match verdict {
        SendVerdict::Sent(answer) => {
            let text = format!("{} {}", answer.code, answer.text);
            Ended::Delivered(Some(text.trim().to_owned()))
        }
        SendVerdict::Untried => Ended::Delivered(None),
        SendVerdict::Retry(later) => Ended::Retry(later.failure),
        SendVerdict::Quarantine(failure) => Ended::Quarantined(failure),
    }
}

fn stopped(stop: Stop) -> Ended {
    match stop {
        Stop::Unavailable(later) => Ended::Stopped(later.failure),
        Stop::Misconfigured(failure) => Ended::Stopped(failure),
    }
}
