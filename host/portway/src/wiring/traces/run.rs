//! The spans of one run: for each message one of its delivery, and one of each plugin that was
//! called for it.

use portway_engine::ports::{Run, Stop, Verdict};
use portway_model::Cost;
use portway_runtime::{MessageCost, Watch};
use portway_traces::{Anchor, Context, Kind, Span, SpanId, Value};

use super::super::deliver::Destination;
use super::{Traces, belong_to, cost_pairs};

/// See the file.
pub struct RunTrace<'a> {
    traces: &'a Traces,
    destination: &'a Destination,
    run: &'a Run,
    anchor: Anchor,
    /// One a message of the run, in its order.
    messages: Vec<Traced>,
}

/// One message of the run.
struct Traced {
    context: Context,
    /// The span of its delivery.
    id: SpanId,
    /// That of its sender, known before there is one: the peer hears of it.
    sender: SpanId,
    cost: Cost,
    calls: Vec<Span>,
}

/// What was called.
#[derive(Clone, Copy)]
pub enum Called {
    Transform,
    Sender,
}

/// What a verdict is called in a span, and the code of what went wrong.
struct Outcome<'v> {
    word: &'static str,
    code: Option<&'v str>,
}

impl<'a> RunTrace<'a> {
    /// None: no message of the run is recorded, and nobody is told of a trace.
    pub fn begin(traces: &'a Traces, destination: &'a Destination, run: &'a Run) -> Option<RunTrace<'a>> {
        let context = |message: &portway_model::Envelope| {
            let context = traces.tracer.of_message(message.id, &message.attributes);
            let (id, sender) = (SpanId::random(), SpanId::random());
            Traced { context, id, sender, cost: Cost::default(), calls: Vec::new() }
        };
        let messages: Vec<Traced> = run.messages.iter().map(context).collect();
        let is_wanted = traces.outgoing || messages.iter().any(|message| message.context.sampled);
        let anchor = Anchor::now();
        is_wanted.then_some(RunTrace { traces, destination, run, anchor, messages })
    }

    /// What is wanted of a call about these messages of the run.
    pub fn watch(&self, indexes: &[usize]) -> Watch {
        let parent = |index: &usize| {
            let message = self.messages.get(*index)?;
            Some(message.context.parent(message.sender).to_string())
        };
        let parents = if self.traces.outgoing { indexes.iter().map(parent).collect() } else { Vec::new() };
        Watch { parents }
    }

    /// A plugin was called for these messages of the run.
    pub fn called(&mut self, what: Called, plugin: &str, indexes: &[usize], costs: &[Option<MessageCost>]) {
        for (index, cost) in indexes.iter().zip(costs) {
            let Some((message, cost)) = self.messages.get_mut(*index).zip(*cost) else { continue };
            message.cost += cost.cost;
            if message.context.sampled {
                message.calls.push(message.call(what, plugin, &cost, &self.anchor));
            }
        }
    }

    /// What is stored in another interface goes on in the same trace.
    pub fn route(&self, verdicts: &mut [Verdict]) {
        for (message, verdict) in self.messages.iter().zip(verdicts) {
            let Verdict::Route(routed) = verdict else { continue };
            for one in routed.iter_mut().filter(|_| message.context.sampled) {
                belong_to(&mut one.attributes, &message.context.parent(message.id));
            }
        }
    }

    /// What became of the run.
    pub fn end(self, verdicts: &[Verdict], stop: Option<&Stop>) {
        let ended_ns = Anchor::now().ns();
        let RunTrace { traces, destination, run, anchor, messages } = self;
        for ((message, envelope), verdict) in messages.into_iter().zip(&run.messages).zip(verdicts) {
            let is_untouched = matches!(verdict, Verdict::Untried) && message.calls.is_empty();
            if !message.context.sampled || is_untouched {
                continue;
            }
            let Outcome { word, code } = Outcome::of(verdict, stop);
            let mut attributes: Vec<(&'static str, Value)> = vec![
                ("portway.interface", destination.interface.as_str().into()),
                ("portway.destination", destination.name.as_str().into()),
                ("portway.message.id", envelope.id.0.into()),
                ("portway.attempt", u64::from(envelope.attempt.0).into()),
                ("portway.outcome", word.into()),
            ];
            attributes.extend(code.map(|code| ("portway.code", code.into())));
            attributes.extend(cost_pairs(message.cost));
            traces.tracer.emit(Span {
                trace: message.context.trace,
                id: message.id,
                parent: Some(message.context.span),
                kind: Kind::Internal,
                name: format!("deliver {}", destination.name),
                began_ns: anchor.ns(),
                ended_ns,
                attributes,
                error: code.map(str::to_owned),
            });
            message.calls.into_iter().for_each(|call| traces.tracer.emit(call));
        }
    }
}

impl Traced {
    fn call(&self, what: Called, plugin: &str, cost: &MessageCost, anchor: &Anchor) -> Span {
        let (kind, word, id) = match what {
            Called::Transform => (Kind::Internal, "transform", SpanId::random()),
            Called::Sender => (Kind::Client, "send", self.sender),
        };
        let mut attributes: Vec<(&'static str, Value)> = vec![("portway.plugin", plugin.into())];
        attributes.extend(cost_pairs(cost.cost));
        Span {
            trace: self.context.trace,
            id,
            parent: Some(self.id),
            kind,
            name: format!("{word} {plugin}"),
            began_ns: anchor.ns_of(cost.began),
            ended_ns: anchor.ns_of(cost.ended),
            attributes,
            error: None,
        }
    }
}

impl<'v> Outcome<'v> {
    fn of(verdict: &'v Verdict, stop: Option<&'v Stop>) -> Outcome<'v> {
        let (word, code) = match (verdict, stop) {
            (Verdict::Sent(_), _) => ("sent", None),
            (Verdict::Route(_), _) => ("routed", None),
            (Verdict::Filtered(_), _) => ("filtered", None),
            (Verdict::Quarantine(failure), _) => ("quarantined", Some(failure)),
            (Verdict::Retry(later), _) => ("retry", Some(&later.failure)),
            (Verdict::Runaway(failure), _) => ("runaway", Some(failure)),
            (Verdict::Untried, None) => ("untried", None),
            (Verdict::Untried, Some(Stop::Unavailable(later))) => ("unavailable", Some(&later.failure)),
            (Verdict::Untried, Some(Stop::Misconfigured(failure))) => ("misconfigured", Some(failure)),
        };
        Outcome { word, code: code.map(|failure| failure.code.as_str()) }
    }
}
