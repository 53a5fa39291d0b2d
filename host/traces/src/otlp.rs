//! Spans in the words of OTLP, and what a collector says of them.

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as wire;
use prost::Message;

use crate::{Kind, Span, Value};

/// Where a base URL takes traces.
pub(crate) const PATH: &str = "/v1/traces";
pub(crate) const CONTENT_TYPE: &str = "application/x-protobuf";

/// Of what a collector says.
const WHY_MAX: usize = 200;

/// The trace is recorded.
const SAMPLED: u32 = 1;

/// The body of a request.
pub(crate) fn request(resource: &[(String, String)], spans: &[Span]) -> Bytes {
    let pair = |(key, value): &(String, String)| pair(key, &Value::Text(value.clone()));
    let resource = Resource { attributes: resource.iter().map(pair).collect(), ..Resource::default() };
    let scope = InstrumentationScope {
        name: "portway".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = wire::ScopeSpans {
        scope: Some(scope),
        spans: spans.iter().map(span).collect(),
        schema_url: String::new(),
    };
    let all =
        wire::ResourceSpans { resource: Some(resource), scope_spans: vec![spans], schema_url: String::new() };
    ExportTraceServiceRequest { resource_spans: vec![all] }.encode_to_vec().into()
}

/// Spans that the collector did not take, and why, of an answer that is a success.
pub(crate) fn rejected(answer: &Bytes) -> Option<(u64, String)> {
    let answer = ExportTraceServiceResponse::decode(answer.clone()).ok()?;
    let partial = answer.partial_success?;
    let rejected = u64::try_from(partial.rejected_spans).ok().filter(|spans| *spans > 0)?;
    let why = partial.error_message.chars().take(WHY_MAX).flat_map(char::escape_debug).collect();
    Some((rejected, why))
}

fn span(span: &Span) -> wire::Span {
    let error =
        |code: &String| wire::Status { message: code.clone(), code: wire::status::StatusCode::Error.into() };
    wire::Span {
        trace_id: span.trace.0.to_vec(),
        span_id: span.id.0.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        flags: SAMPLED,
        name: span.name.clone(),
        kind: kind(span.kind).into(),
        start_time_unix_nano: span.began_ns,
        end_time_unix_nano: span.ended_ns.max(span.began_ns),
        attributes: span.attributes.iter().map(|(key, value)| pair(key, value)).collect(),
        status: span.error.as_ref().map(error),
        ..wire::Span::default()
    }
}

fn kind(kind: Kind) -> wire::span::SpanKind {
    match kind {
        Kind::Internal => wire::span::SpanKind::Internal,
        Kind::Server => wire::span::SpanKind::Server,
        Kind::Client => wire::span::SpanKind::Client,
    }
}

fn pair(key: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.clone()),
        Value::Whole(number) => any_value::Value::IntValue(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Number(number) => any_value::Value::DoubleValue(*number),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
