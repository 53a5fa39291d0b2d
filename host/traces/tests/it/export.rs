//! Batches, answers of collectors, and the end.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::{span::SpanKind, status::StatusCode};
use portway_model::MessageId;
use portway_net::http::{Connector, HttpGrant};
use portway_traces::{ExportSettings, Kind, Share, Span, SpanId, TraceCounts, Tracer, TracerSettings};
use prost::Message;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::collector::Collector;

struct Running {
    tracer: Tracer,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(collector: &Collector, queue_max: usize) -> Running {
        let base = format!("http://{}/base", collector.address).parse().unwrap();
        let settings = TracerSettings { store: "s".into(), share: Share::ALL, queue_max };
        let export = ExportSettings {
            resource: vec![("service.name".into(), "lab".into())],
            interval: Duration::from_millis(20),
            pause: Duration::from_millis(5),
            ..ExportSettings::of(HttpGrant::new(base))
        };
        let (tracer, exporter) = Tracer::new(settings, export, Connector::default());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(exporter.run(async {
            let _ = stopped.await;
        }));
        Running { tracer, stop, task }
    }

    fn emit(&self, number: u64) {
        let context = self.tracer.own(MessageId(number));
        self.tracer.emit(Span {
            trace: context.trace,
            id: context.span,
            parent: Some(SpanId::random()),
            kind: Kind::Client,
            name: format!("work {number}"),
            began_ns: 2_000,
            ended_ns: 1_000,
            attributes: vec![("whole", 7_u64.into()), ("text", "x".into()), ("number", 0.5.into())],
            error: Some("bad".into()),
        });
    }

    /// Stops, and tells what became of its spans.
    async fn stop(self) -> TraceCounts {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
        self.tracer.counts()
    }
}

fn ok() -> (String, Vec<u8>) {
    ("200 OK".into(), Vec::new())
}

#[tokio::test]
async fn a_span_arrives_as_it_was_made() {
    let collector = Collector::start(|_| ok()).await;
    let running = Running::start(&collector, 10);
    running.emit(1);
    let requests = collector.requests(1).await;
    let [of_resource] = &requests[0].resource_spans[..] else { panic!("{requests:?}") };
    let resource = &of_resource.resource.as_ref().unwrap().attributes;
    assert_eq!(resource[0].key, "service.name");
    let span = &of_resource.scope_spans[0].spans[0];
    let own = running.tracer.own(MessageId(1));
    assert_eq!((&span.trace_id[..], &span.span_id[..]), (&own.trace.bytes()[..], &own.span.bytes()[..]));
    assert_eq!((span.name.as_str(), span.parent_span_id.len()), ("work 1", 8));
    assert_eq!(span.kind, i32::from(SpanKind::Client));
    assert_eq!(span.status.as_ref().map(|status| status.code), Some(StatusCode::Error.into()));
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (2_000, 2_000), "never backwards");
    let keys: Vec<_> = span.attributes.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["whole", "text", "number"]);
    assert_eq!(running.stop().await, TraceCounts { sent: 1, lost: [0; 3] });
}

#[tokio::test]
async fn many_spans_share_requests_and_what_waits_is_sent_at_the_end() {
    let collector = Collector::start(|_| ok()).await;
    let running = Running::start(&collector, 2_000);
    (0..1_200).for_each(|number| running.emit(number));
    assert_eq!(running.stop().await, TraceCounts { sent: 1_200, lost: [0; 3] });
    let requests = collector.requests(3).await;
    assert_eq!(requests.len(), 3, "512 a request");
}

#[tokio::test]
async fn a_collector_is_asked_again_when_it_says() {
    let answer = |number| match number {
        0 => ("503 Service Unavailable\r\nretry-after: 1".into(), Vec::new()),
        1 => ("429 Too Many Requests".into(), Vec::new()),
        _ => ok(),
    };
    let collector = Collector::start(answer).await;
    let running = Running::start(&collector, 10);
    running.emit(1);
    let began = Instant::now();
    let requests = collector.requests(3).await;
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(requests[0], requests[2], "it is the same batch");
    assert_eq!(running.stop().await, TraceCounts { sent: 1, lost: [0; 3] });
}

#[tokio::test]
async fn a_collector_that_stays_away_costs_its_spans_and_nothing_else() {
    let collector = Collector::start(|_| ("502 Bad Gateway".into(), Vec::new())).await;
    let running = Running::start(&collector, 10);
    running.emit(1);
    collector.requests(5).await;
    running.emit(2);
    collector.requests(6).await;
    let counts = running.stop().await;
    assert_eq!(counts, TraceCounts { sent: 0, lost: [0, 2, 0] }, "the last one was given up at the end");
}

#[tokio::test]
async fn what_a_collector_rejects_is_counted() {
    let partial = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 2,
            error_message: "no room".into(),
        }),
    };
    let collector = Collector::start(move |number| match number {
        0 => ("200 OK".into(), partial.encode_to_vec()),
        _ => ("401 Unauthorized".into(), Vec::new()),
    })
    .await;
    let running = Running::start(&collector, 10);
    (0..3).for_each(|number| running.emit(number));
    collector.requests(1).await;
    running.emit(4);
    collector.requests(2).await;
    assert_eq!(running.stop().await, TraceCounts { sent: 1, lost: [0, 0, 3] });
}
