//! The hand that takes spans, and what says which trace a message belongs to.
//!
//! Ids follow from the store and the message's number, so that whoever works on a message, also
//! after a restart and days later, finds its trace without anything being kept for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portway_model::{Attributes, MessageId};
use portway_net::http::Connector;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::{ExportSettings, Exporter, Share, Span, SpanId, TraceId, Traceparent};

/// The attribute of a message that belongs to a trace which began elsewhere.
pub const ATTRIBUTE: &str = "portway.traceparent";

/// What a tracer needs to know.
#[derive(Clone, Debug)]
pub struct TracerSettings {
    /// Names the store in the world.
    pub store: String,
    pub share: Share,
    /// Spans that wait to be sent; what comes beyond is lost.
    pub queue_max: usize,
}

/// Takes spans. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tracer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: TracerSettings,
    queue: mpsc::Sender<Span>,
    counts: Arc<Tally>,
}

/// Where the work on a message belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub trace: TraceId,
    /// The span that work on it is a part of.
    pub span: SpanId,
    /// Whether it is recorded.
    pub sampled: bool,
}

/// What became of spans since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    pub sent: u64,
    /// By why, in the order of [`Loss::ALL`].
    pub lost: [u64; 3],
}

/// Why a span is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Too many waited.
    QueueFull,
    /// The collector was away, or asked to be left alone, for too long.
    Unreachable,
    /// The collector does not take it.
    Rejected,
}

/// Counts of all ends of a span.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: AtomicU64,
    lost: [AtomicU64; 3],
}

impl Loss {
    pub const ALL: [Loss; 3] = [Loss::QueueFull, Loss::Unreachable, Loss::Rejected];

    pub fn as_str(self) -> &'static str {
        match self {
            Loss::QueueFull => "queue-full",
            Loss::Unreachable => "unreachable",
            Loss::Rejected => "rejected",
        }
    }
}

impl Tally {
    pub fn sent(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    pub fn lost(&self, why: Loss, spans: u64) {
        let [full, unreachable, rejected] = &self.lost;
        let counter = match why {
            Loss::QueueFull => full,
            Loss::Unreachable => unreachable,
            Loss::Rejected => rejected,
        };
        counter.fetch_add(spans, Ordering::Relaxed);
    }
}

impl Tracer {
    /// A tracer, and what sends its spans once it runs.
    pub fn new(settings: TracerSettings, export: ExportSettings, connector: Connector) -> (Tracer, Exporter) {
        let (queue, spans) = mpsc::channel(settings.queue_max.max(1));
        let counts = Arc::<Tally>::default();
        let exporter = Exporter::new(export, connector, spans, counts.clone());
        (Tracer { inner: Arc::new(Inner { settings, queue, counts }) }, exporter)
    }

    /// Where the work on a stored message belongs: to the trace it came with, else to its own.
    pub fn of_message(&self, id: MessageId, attributes: &Attributes) -> Context {
        match attributes.get(ATTRIBUTE).and_then(Traceparent::parse) {
            Some(Traceparent { trace, span, sampled }) => Context { trace, span, sampled },
            None => self.own(id),
        }
    }

    /// The trace that begins with a message.
    pub fn own(&self, id: MessageId) -> Context {
        let mut hasher = Sha256::new();
        hasher.update(self.inner.settings.store.as_bytes());
        hasher.update([0]);
        hasher.update(id.0.to_be_bytes());
        let digest = hasher.finalize();
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.iter_mut().chain(&mut span).zip(digest).for_each(|(byte, from)| *byte = from);
        self.recorded(TraceId::new(trace), SpanId::new(span))
    }

    /// A trace of its own for what is no message.
    pub fn unstored(&self) -> Context {
        self.recorded(TraceId::random(), SpanId::random())
    }

    fn recorded(&self, trace: TraceId, span: SpanId) -> Context {
        Context { trace, span, sampled: self.inner.settings.share.takes(&trace) }
    }

    /// Takes a span; it is lost where too many wait.
    pub fn emit(&self, span: Span) {
        if self.inner.queue.try_send(span).is_err() {
            self.inner.counts.lost(Loss::QueueFull, 1);
        }
    }

    pub fn counts(&self) -> TraceCounts {
        let Tally { sent, lost } = &*self.inner.counts;
        let lost = lost.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        TraceCounts { sent: sent.load(Ordering::Relaxed), lost }
    }
}

impl Context {
    /// For those who work on it elsewhere, as a part of `span`.
    pub fn parent(&self, span: SpanId) -> Traceparent {
        Traceparent { trace: self.trace, span, sampled: self.sampled }
    }
}

#[cfg(test)]
mod tests {
    use portway_net::http::HttpGrant;

    use super::*;

    fn tracer(store: &str, queue_max: usize) -> (Tracer, Exporter) {
        let settings = TracerSettings { store: store.into(), share: Share::ALL, queue_max };
        let export = ExportSettings::of(HttpGrant::new("http://127.0.0.1:9/".parse().unwrap()));
        Tracer::new(settings, export, Connector::default())
    }

    #[test]
    fn a_message_has_one_trace_whoever_asks() {
        let (one, _) = tracer("a", 1);
        let (again, _) = tracer("a", 1);
        let (other, _) = tracer("b", 1);
        let none = Attributes::default();
        assert_eq!(one.of_message(MessageId(7), &none), again.own(MessageId(7)));
        assert_ne!(one.own(MessageId(7)).trace, one.own(MessageId(8)).trace);
        assert_ne!(one.own(MessageId(7)).trace, other.own(MessageId(7)).trace);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let came = Attributes::new(vec![(ATTRIBUTE.into(), parent.into())]).unwrap();
        let context = one.of_message(MessageId(7), &came);
        assert!(!context.sampled, "who began it does not record it");
        assert_eq!(context.parent(context.span).to_string(), parent);
    }

    #[test]
    fn what_finds_no_room_is_lost_and_counted() {
        let (tracer, _exporter) = tracer("a", 2);
        let context = tracer.own(MessageId(1));
        for _ in 0..5 {
            tracer.emit(Span {
                trace: context.trace,
                id: SpanId::random(),
                parent: None,
                kind: crate::Kind::Internal,
                name: "work".into(),
                began_ns: 0,
                ended_ns: 1,
                attributes: Vec::new(),
                error: None,
            });
        }
        assert_eq!(tracer.counts(), TraceCounts { sent: 0, lost: [3, 0, 0] });
    }
}
