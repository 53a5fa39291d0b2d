//! Delivers a run: its destination's transforms, then its sender or route.
//!
//! Here faults of plugins become verdicts on messages ("whose fault is it"): a plugin that
//! traps on a message quarantines it, one that uses up its fuel or memory is a runaway, and
//! waiting for a service until the time-out is the network's. What follows for the lane and
//! the destination is the engine's business.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use portway_engine::ports::{Clock, Deliver, MessageState, Routed, Run, RunReport, Stop, Verdict};
use portway_model::{
    Answer, Envelope, Failure, Guarantee, InterfaceId, Later, Output, SendVerdict, TransformVerdict, code,
};
use portway_runtime::{Batch, Call, CallError, Fault, FaultKind, HttpSender, Sender, Transformer};

use super::destinations::Destinations;
use super::kept;
use super::latency::LatencyCounts;
use super::saved;
use super::traces::{Called, RunTrace, Traces};

/// Delivers for every destination of a project.
pub struct Delivery {
    /// Names the store in idempotency keys.
    pub store: String,
    pub destinations: Arc<Destinations>,
    pub clock: Arc<dyn Clock>,
    /// None: nobody wants to know.
    pub traces: Option<Arc<Traces>>,
}

/// What a destination is made of.
pub struct Destination {
    /// As the project calls its interface, and it.
    pub interface: String,
    pub name: String,
    pub transforms: Vec<Transformer>,
    pub target: Target,
    /// Wall time of one call of a plugin.
    pub timeout: Duration,
    /// What the sender is given is reported.
    pub save_output: bool,
    pub latency: Arc<LatencyCounts>,
}

/// Where a destination's messages end up.
pub enum Target {
    Sender(Sender),
    HttpSender(HttpSender),
    Route(InterfaceId),
}

/// A message on its way through the chain.
pub(super) enum Step {
    /// Goes on; usually one, several only after the last transform of a route.
    Ready(Vec<Envelope>),
    Done(Verdict),
}

/// What ended a run early.
#[derive(Default)]
struct Ending<'a> {
    stop: Option<Stop>,
    go_singly: bool,
    /// What plugins keep, by message of the run.
    kept: Vec<MessageState>,
    /// None: nobody wants to know.
    trace: Option<RunTrace<'a>>,
}

#[async_trait]
impl Deliver for Delivery {
    async fn deliver(&self, run: Run) -> RunReport {
        let Some(destination) = self.destinations.get(run.destination) else {
            let failure = Failure::new(code::UNKNOWN_DESTINATION, "the project has no such destination");
            return untried(run.messages.len(), Stop::Misconfigured(failure));
        };
        let destination = &*destination;
        let pass = Pass { store: &self.store, destination, run: &run };
        let mut steps: Vec<Step> =
            run.messages.iter().map(|message| Step::Ready(vec![message.clone()])).collect();
        let trace = self.traces.as_ref().and_then(|traces| RunTrace::begin(traces, destination, &run));
        let mut ending = Ending { trace, ..Ending::default() };
        for (index, transform) in destination.transforms.iter().enumerate() {
            let is_last = index + 1 == destination.transforms.len();
            let several = is_last && matches!(destination.target, Target::Route(_));
            pass.transform(transform, several, &mut steps, &mut ending).await;
            if run.ordered {
                kept::redo_behind_dropped(&ending.kept, &mut steps);
            }
            if ending.stop.is_some() {
                break;
            }
        }
        let mut outputs = Vec::new();
        if ending.stop.is_none() {
            // What a route carries becomes a message of its own.
            if destination.save_output && !matches!(destination.target, Target::Route(_)) {
                outputs = saved::outputs(&run.messages, &steps);
            }
            pass.send(&mut steps, &mut ending).await;
            if run.ordered {
                kept::redo_behind_dropped(&ending.kept, &mut steps);
            }
        }
        let mut verdicts: Vec<Verdict> = steps.into_iter().map(verdict).collect();
        if run.ordered {
            keep_order(&mut verdicts, run.hold_on_quarantine);
        }
        self.record_latency(&run, destination, &verdicts);
        let Ending { stop, go_singly, kept, trace } = ending;
        if let Some(trace) = trace {
            trace.route(&mut verdicts);
            trace.end(&verdicts, stop.as_ref());
        }
        RunReport { verdicts, stop, go_singly, state: kept, outputs }
    }
}

impl Delivery {
    fn record_latency(&self, run: &Run, destination: &Destination, verdicts: &[Verdict]) {
        let now = self.clock.now();
        for (message, verdict) in run.messages.iter().zip(verdicts) {
            if matches!(verdict, Verdict::Sent(_) | Verdict::Route(_)) {
                destination.latency.record(now.since(message.received_at));
            }
        }
    }
}

/// What did not get to its end was not tried.
fn verdict(step: Step) -> Verdict {
    match step {
        Step::Done(verdict) => verdict,
        Step::Ready(_) => Verdict::Untried,
    }
}

/// Whether a message's lane waits for it.
fn blocks(verdict: &Verdict, hold_on_quarantine: bool) -> bool {
    match verdict {
        Verdict::Sent(_) | Verdict::Route(_) | Verdict::Filtered(_) => false,
        Verdict::Quarantine(_) => hold_on_quarantine,
        Verdict::Retry(_) | Verdict::Untried | Verdict::Runaway(_) => true,
    }
}

/// Transforms judge a whole run before its first message is sent: what they said of messages behind
/// one that blocks the lane is said again when those are at their turn.
fn keep_order(verdicts: &mut [Verdict], hold_on_quarantine: bool) {
    let first = verdicts.iter().position(|verdict| blocks(verdict, hold_on_quarantine));
    let behind = first.and_then(|first| verdicts.get_mut(first + 1..));
    behind.into_iter().flatten().for_each(|verdict| *verdict = Verdict::Untried);
}

fn untried(count: usize, stop: Stop) -> RunReport {
    RunReport {
        verdicts: vec![Verdict::Untried; count],
        stop: Some(stop),
        go_singly: false,
        state: Vec::new(),
        outputs: Vec::new(),
    }
}

/// One run's way through its destination.
struct Pass<'a> {
    store: &'a str,
    destination: &'a Destination,
    run: &'a Run,
}

impl Pass<'_> {
    /// The messages of a call about these.
    fn batch(&self, indexes: &[usize], steps: &[Step], ending: &Ending<'_>) -> Batch {
        let Pass { store, destination, run } = self;
        Batch {
            store: (*store).to_owned(),
            ordered: run.ordered,
            timeout: destination.timeout,
            messages: indexes.iter().filter_map(|&index| only(steps.get(index))).collect(),
            watch: ending.trace.as_ref().map(|trace| trace.watch(indexes)),
        }
    }

    /// Indexes that may go on now: in an ordered run none after one that blocks its lane.
    fn ready(&self, steps: &[Step]) -> Vec<usize> {
        let mut ready = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            match step {
                Step::Ready(_) => ready.push(index),
                Step::Done(verdict) if self.run.ordered && blocks(verdict, self.run.hold_on_quarantine) => {
                    break;
                }
                Step::Done(_) => {}
            }
        }
        ready
    }

    /// One transform over everything that is ready. After a fault the message it struck is
    /// judged, and the others go again.
    async fn transform(
        &self,
        transform: &Transformer,
        several: bool,
        steps: &mut [Step],
        ending: &mut Ending<'_>,
    ) {
        let mut work = vec![self.ready(steps)];
        while let Some(indexes) = work.pop() {
            if indexes.is_empty() {
                continue;
            }
            let call = transform.transform(&self.batch(&indexes, steps, ending)).await;
            if let Some(trace) = &mut ending.trace {
                trace.called(Called::Transform, transform.plugin(), &indexes, &call.costs);
            }
            match call.result {
                Ok(verdicts) => {
                    for (&index, verdict) in indexes.iter().zip(verdicts) {
                        replace(steps, index, |step| after_transform(step, verdict, several));
                    }
                    kept::remember(&mut ending.kept, &indexes, call.state);
                }
                Err(CallError::Fault(fault)) => {
                    ending.go_singly = true;
                    after_transform_fault(&fault, &indexes, &mut work, steps);
                    if self.run.ordered && transform.keeps_state() {
                        // What another call wrote is seen once it is stored, in the next run.
                        only_first(&mut work, steps);
                    }
                }
                Err(error) => {
                    ending.stop = Some(stop(error));
                    return;
                }
            }
        }
    }

    /// Hands everything that is ready to the sender, or makes routes of it.
    async fn send(&self, steps: &mut [Step], ending: &mut Ending<'_>) {
        let indexes = self.ready(steps);
        if indexes.is_empty() {
            return;
        }
        if let Target::Route(target) = self.destination.target {
            for index in indexes {
                replace(steps, index, |step| match step {
                    Step::Ready(messages) => Step::Done(Verdict::Route(routed(target, messages))),
                    done => done,
                });
            }
            return;
        }
        match (&self.destination.target, self.run.guarantee) {
            // Only then it is known whose bytes a peer may have seen.
            (Target::Sender(_), Guarantee::AtMostOnce) => {
                for index in indexes {
                    self.send_together(&[index], steps, ending).await;
                    let is_blocked = match steps.get(index) {
                        Some(Step::Done(verdict)) => {
                            self.run.ordered && blocks(verdict, self.run.hold_on_quarantine)
                        }
                        Some(Step::Ready(_)) | None => true,
                    };
                    // What one wrote the next ones have to see, once it is stored.
                    let has_written = self.run.ordered && !ending.kept.is_empty();
                    if is_blocked || has_written || ending.stop.is_some() {
                        return;
                    }
                }
            }
            _ => self.send_together(&indexes, steps, ending).await,
        }
    }

    async fn send_together(&self, indexes: &[usize], steps: &mut [Step], ending: &mut Ending<'_>) {
        let batch = self.batch(indexes, steps, ending);
        let (mut call, plugin) = match &self.destination.target {
            Target::Sender(sender) => (sender.send(&batch).await, sender.plugin()),
            Target::HttpSender(sender) => (sender.send(&batch).await, sender.plugin()),
            Target::Route(_) => return,
        };
        if let Some(trace) = &mut ending.trace {
            trace.called(Called::Sender, plugin, indexes, &call.costs);
        }
        let unsure: Vec<usize> =
            call.unsure.iter().filter_map(|&at| indexes.get(at as usize).copied()).collect();
        kept::remember(&mut ending.kept, indexes, std::mem::take(&mut call.state));
        self.judge_sent(call, indexes, steps, ending);
        if self.run.guarantee == Guarantee::AtMostOnce {
            unsure.into_iter().for_each(|index| doubt(steps, index, ending));
        }
    }

    fn judge_sent(
        &self,
        call: Call<Vec<SendVerdict>>,
        indexes: &[usize],
        steps: &mut [Step],
        ending: &mut Ending<'_>,
    ) {
        match call.result {
            Ok(verdicts) => {
                for (&index, verdict) in indexes.iter().zip(verdicts) {
                    replace(steps, index, |_| Step::Done(after_send(verdict)));
                }
            }
            Err(CallError::Fault(fault)) => {
                ending.go_singly = true;
                let suspect = guilty(indexes, fault.begun);
                for (at, &index) in indexes.iter().enumerate() {
                    let arrived = call.sent.iter().any(|&sent| sent as usize == at);
                    let verdict = match arrived {
                        true => Verdict::Sent(Answer { code: "sent".into(), text: fault.text.clone() }),
                        false if suspect == Some(at) => judge(&fault),
                        false => Verdict::Untried,
                    };
                    replace(steps, index, |_| Step::Done(verdict));
                }
            }
            Err(error) => {
                for (at, &index) in indexes.iter().enumerate() {
                    if call.sent.iter().any(|&sent| sent as usize == at) {
                        replace(steps, index, |_| Step::Done(Verdict::Sent(Answer::default())));
                    }
                }
                ending.stop = Some(stop(error));
            }
        }
    }
}

/// Judges the message a fault struck and says what goes again. A runaway ends the run:
/// what was not transformed before it stays untried.
fn after_transform_fault(fault: &Fault, indexes: &[usize], work: &mut Vec<Vec<usize>>, steps: &mut [Step]) {
    let Some(at) = guilty(indexes, fault.begun) else {
        let (first, second) = indexes.split_at(indexes.len() / 2);
        work.push(second.to_vec());
        work.push(first.to_vec());
        return;
    };
    let (before, rest) = indexes.split_at(at);
    let Some((&struck, after)) = rest.split_first() else {
        return;
    };
    let verdict = judge(fault);
    if matches!(verdict, Verdict::Quarantine(_)) {
        work.push(after.to_vec());
    } else {
        for &index in work.drain(..).flatten().collect::<Vec<_>>().iter().chain(after) {
            replace(steps, index, |_| Step::Done(Verdict::Untried));
        }
    }
    replace(steps, struck, |_| Step::Done(verdict));
    work.push(before.to_vec());
}

/// Of what goes again only the first part does; the rest goes again in a run of its own.
fn only_first(work: &mut Vec<Vec<usize>>, steps: &mut [Step]) {
    let mut parts = work.drain(..).rev().skip_while(Vec::is_empty);
    let first = parts.next();
    for index in parts.flatten() {
        replace(steps, index, |_| Step::Done(Verdict::Untried));
    }
    work.extend(first);
}

/// A peer may have seen this message: unless it is known what became of it, a person must look.
fn doubt(steps: &mut [Step], index: usize, ending: &Ending<'_>) {
    replace(steps, index, |step| {
        let why = match &step {
            Step::Done(
                Verdict::Sent(_) | Verdict::Route(_) | Verdict::Filtered(_) | Verdict::Quarantine(_),
            ) => {
                return step;
            }
            Step::Done(Verdict::Retry(later)) => later.failure.to_string(),
            Step::Done(Verdict::Runaway(failure)) => failure.to_string(),
            Step::Done(Verdict::Untried) | Step::Ready(_) => match &ending.stop {
                Some(Stop::Unavailable(later)) => later.failure.to_string(),
                Some(Stop::Misconfigured(failure)) => failure.to_string(),
                None => "its sender did not say what became of it".to_owned(),
            },
        };
        Step::Done(Verdict::in_doubt(&why))
    });
}

/// The one message of a step that is ready.
fn only(step: Option<&Step>) -> Option<Envelope> {
    match step {
        Some(Step::Ready(messages)) => messages.first().cloned(),
        _ => None,
    }
}

fn replace(steps: &mut [Step], index: usize, with: impl FnOnce(Step) -> Step) {
    if let Some(step) = steps.get_mut(index) {
        let old = std::mem::replace(step, Step::Done(Verdict::Untried));
        *step = with(old);
    }
}

/// Which message of a call a fault is blamed on: the one it was about, or the only one.
fn guilty(indexes: &[usize], begun: Option<u32>) -> Option<usize> {
    match begun {
        Some(begun) if (begun as usize) < indexes.len() => Some(begun as usize),
        _ if indexes.len() == 1 => Some(0),
        _ => None,
    }
}

pub(super) fn after_transform(step: Step, verdict: TransformVerdict, several: bool) -> Step {
    let Step::Ready(messages) = step else {
        return step;
    };
    let outputs = match verdict {
        TransformVerdict::Pass => return Step::Ready(messages),
        TransformVerdict::Filter(reason) => return Step::Done(Verdict::Filtered(reason)),
        TransformVerdict::Quarantine(failure) => return Step::Done(Verdict::Quarantine(failure)),
        TransformVerdict::Retry(later) => return Step::Done(Verdict::Retry(later)),
        TransformVerdict::Deliver(outputs) => outputs,
    };
    if outputs.is_empty() {
        return Step::Done(Verdict::Filtered("the transform delivered nothing".into()));
    }
    if outputs.len() > 1 && !several {
        let text = format!("{} outputs; more than one is possible only before a route", outputs.len());
        return Step::Done(Verdict::Quarantine(Failure::new(code::SEVERAL_OUTPUTS, text)));
    }
    let Some(message) = messages.into_iter().next() else {
        return Step::Done(Verdict::Untried);
    };
    let replaced: Result<Vec<Envelope>, Failure> =
        outputs.into_iter().map(|output| with_output(&message, output)).collect();
    match replaced {
        Ok(messages) => Step::Ready(messages),
        Err(failure) => Step::Done(Verdict::Quarantine(failure)),
    }
}

fn with_output(message: &Envelope, output: Output) -> Result<Envelope, Failure> {
    let attributes = match output.attributes.pairs().is_empty() {
        true => Arc::clone(&message.attributes),
        false => {
            let laid_over = message.attributes.overlay(&output.attributes);
            Arc::new(laid_over.map_err(|error| Failure::new(code::ATTRIBUTES, error.to_string()))?)
        }
    };
    let key = output.key.or_else(|| message.key.clone());
    Ok(Envelope { key, attributes, body: output.body, ..message.clone() })
}

fn after_send(verdict: SendVerdict) -> Verdict {
    match verdict {
        SendVerdict::Sent(answer) => Verdict::Sent(answer),
        SendVerdict::Untried => Verdict::Untried,
        SendVerdict::Retry(later) => Verdict::Retry(later),
        SendVerdict::Quarantine(failure) => Verdict::Quarantine(failure),
    }
}

fn routed(target: InterfaceId, messages: Vec<Envelope>) -> Vec<Routed> {
    let one = |message: Envelope| Routed {
        target,
        key: message.key,
        attributes: (*message.attributes).clone(),
        body: message.body,
    };
    messages.into_iter().map(one).collect()
}

/// What a fault means for the message it struck.
pub(super) fn judge(fault: &Fault) -> Verdict {
    let failure = fault.to_failure();
    match fault.kind {
        FaultKind::TimedOut { in_service: true } => Verdict::Retry(Later { failure, after_ms: None }),
        FaultKind::OutOfFuel | FaultKind::OutOfMemory | FaultKind::TimedOut { in_service: false } => {
            Verdict::Runaway(failure)
        }
        FaultKind::Trap | FaultKind::CopyLimit | FaultKind::Lie => Verdict::Quarantine(failure),
    }
}

pub(super) fn stop(error: CallError) -> Stop {
    match error {
        CallError::Trouble(trouble) => Stop::from(trouble),
        CallError::Open(failure) => Stop::Misconfigured(failure),
        CallError::Busy => {
            let failure = Failure::new(code::BUSY, "every instance of the plugin is in use");
            Stop::Unavailable(Later { failure, after_ms: Some(100) })
        }
        // Faults are judged message by message before this.
        CallError::Fault(fault) => {
            let failure = fault.to_failure();
            Stop::Unavailable(Later { failure, after_ms: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered() -> Verdict {
        Verdict::Filtered("not ours".into())
    }

    fn kept(mut verdicts: Vec<Verdict>, hold_on_quarantine: bool) -> String {
        keep_order(&mut verdicts, hold_on_quarantine);
        format!("{verdicts:?}")
    }

    #[test]
    fn nothing_is_judged_behind_what_blocks_an_ordered_run() {
        let later = Later { failure: Failure::new("away", "no route"), after_ms: None };
        let sent = || Verdict::Sent(Answer::default());
        let retry = || Verdict::Retry(later.clone());
        let run = vec![filtered(), sent(), retry(), filtered(), Verdict::Untried, filtered()];
        let expected =
            vec![filtered(), sent(), retry(), Verdict::Untried, Verdict::Untried, Verdict::Untried];
        assert_eq!(kept(run, false), format!("{expected:?}"));
        let quarantined = || Verdict::Quarantine(Failure::new("bad", "no good"));
        let shown = |verdicts: &[Verdict]| format!("{verdicts:?}");
        let two = || vec![quarantined(), filtered()];
        assert_eq!(kept(two(), false), shown(&two()));
        assert_eq!(kept(two(), true), shown(&[quarantined(), Verdict::Untried]));
    }
}
