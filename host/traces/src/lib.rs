//! Traces of messages: which spans there are, whose they are, and how they get to a collector.
//!
//! A span is handed over and forgotten: it waits in a queue that is bounded, and is lost, and
//! counted, where the collector cannot take it. Nothing that delivers a message waits for one.
//!
//! This crate knows the protocol of OpenTelemetry and is the only one that does. It must not know
//! the engine, plugins or storage.

mod export;
mod otlp;
mod parent;
mod sampling;
mod span;
mod time;
mod tracer;

pub use export::{ExportSettings, Exporter};
pub use parent::{SpanId, TraceId, Traceparent};
pub use sampling::Share;
pub use span::{Kind, Span, Value};
pub use time::Anchor;
pub use tracer::{ATTRIBUTE, Context, Loss, TraceCounts, Tracer, TracerSettings};
