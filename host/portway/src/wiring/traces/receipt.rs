//! The span that a message's trace begins with: from its receipt to what became of it.

use std::sync::Arc;

use portway_engine::Fate;
use portway_model::{Cost, Draft};
use portway_sources::adapters::{Waiting, Witness};
use portway_sources::ports::Arrival;
use portway_traces::{Anchor, Context, Kind, Span, SpanId, Traceparent, Value};

use super::{Traces, belong_to, cost_pairs};

/// Hears of the messages of one interface's source.
pub struct Receipts {
    inner: Arc<Inner>,
}

struct Inner {
    traces: Arc<Traces>,
    interface: String,
    plugin: String,
}

/// Messages that were handed over and are not stored yet.
struct HandedOver {
    receipts: Arc<Inner>,
    began_ns: u64,
    /// Of each message.
    cost: Cost,
    bytes: Vec<u64>,
    /// The trace that began elsewhere: which span comes before theirs, and where theirs belong.
    came: Option<Came>,
}

struct Came {
    from: SpanId,
    /// One a message, in their order.
    contexts: Vec<Context>,
}

impl Receipts {
    pub fn new(traces: Arc<Traces>, interface: &str, plugin: &str) -> Receipts {
        let (interface, plugin) = (interface.to_owned(), plugin.to_owned());
        Receipts { inner: Arc::new(Inner { traces, interface, plugin }) }
    }
}

impl Witness for Receipts {
    fn arrived(&self, arrival: &Arrival, drafts: &mut [Draft]) -> Box<dyn Waiting> {
        let parent = arrival.parent.as_deref().filter(|_| self.inner.traces.incoming);
        Box::new(HandedOver {
            receipts: self.inner.clone(),
            began_ns: arrival.at.0.saturating_mul(1_000_000),
            cost: arrival.cost.share(drafts.len()),
            bytes: drafts.iter().map(|draft| draft.body.len() as u64).collect(),
            came: parent.and_then(Traceparent::parse).map(|parent| Came::new(&parent, drafts)),
        })
    }
}

impl Came {
    /// Every message gets a span of its own, which deliveries find in its attributes.
    fn new(parent: &Traceparent, drafts: &mut [Draft]) -> Came {
        let context = |draft: &mut Draft| {
            let context = Context { trace: parent.trace, span: SpanId::random(), sampled: parent.sampled };
            belong_to(&mut draft.attributes, &context.parent(context.span));
            context
        };
        Came { from: parent.span, contexts: drafts.iter_mut().map(context).collect() }
    }
}

impl Waiting for HandedOver {
    fn decided(self: Box<Self>, fates: &[Fate]) {
        let ended_ns = Anchor::now().ns();
        for (index, (fate, bytes)) in fates.iter().zip(&self.bytes).enumerate() {
            let context = self.context(index, fate);
            if context.sampled {
                self.receipts.traces.tracer.emit(self.span(context, fate, *bytes, ended_ns));
            }
        }
    }
}

impl HandedOver {
    fn context(&self, index: usize, fate: &Fate) -> Context {
        let came = self.came.as_ref().and_then(|came| came.contexts.get(index));
        let tracer = &self.receipts.traces.tracer;
        match (came, fate) {
            (Some(context), _) => *context,
            (None, Fate::Stored { id, .. }) => tracer.own(*id),
            // It belongs to the message that it repeats, beside that one's own receipt.
            (None, Fate::Duplicate { of, .. }) => Context { span: SpanId::random(), ..tracer.own(*of) },
            (None, Fate::Kept | Fate::NotStored { .. }) => tracer.unstored(),
        }
    }

    fn span(&self, context: Context, fate: &Fate, bytes: u64, ended_ns: u64) -> Span {
        let Inner { interface, plugin, traces } = &*self.receipts;
        let mut attributes: Vec<(&'static str, Value)> = vec![
            ("portway.interface", interface.as_str().into()),
            ("portway.plugin", plugin.as_str().into()),
            ("portway.message.bytes", bytes.into()),
        ];
        attributes.extend(cost_pairs(self.cost));
        let (outcome, id, error) = match fate {
            Fate::Stored { id, conflict: None } => ("stored", Some(id), None),
            Fate::Stored { id, conflict: Some(_) } => ("conflict", Some(id), None),
            Fate::Duplicate { id, .. } => ("duplicate", Some(id), None),
            Fate::NotStored { code, .. } => ("not-stored", None, Some(*code)),
            Fate::Kept => ("kept", None, None),
        };
        attributes.push(("portway.outcome", outcome.into()));
        attributes.extend(id.map(|id| ("portway.message.id", id.0.into())));
        let repeats = match fate {
            Fate::Duplicate { of, .. } => Some(traces.tracer.own(*of).span),
            Fate::Stored { .. } | Fate::NotStored { .. } | Fate::Kept => None,
        };
        Span {
            trace: context.trace,
            id: context.span,
            parent: self.came.as_ref().map(|came| came.from).or(repeats),
            kind: Kind::Server,
            name: format!("receive {interface}"),
            began_ns: self.began_ns,
            ended_ns,
            attributes,
            error: error.map(str::to_owned),
        }
    }
}
