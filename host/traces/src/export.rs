//! Sends spans to a collector, in batches, over OTLP/HTTP.
//!
//! One batch is in hand at a time. A collector that is away is asked again a few times; meanwhile
//! spans gather in the queue, and what finds no room there is lost. So memory has a limit, and
//! nobody who makes a span waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_net::http::{Connector, HttpError, HttpGrant, HttpRequest, HttpResponse};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::Span;
use crate::otlp;
use crate::tracer::{Loss, Tally};

/// Spans of one request.
const BATCH_MAX: usize = 512;
/// How often one batch is sent.
const TRIES_MAX: u32 = 5;
/// The longest a collector is left alone when it asks for it.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Where spans go.
#[derive(Clone, Debug)]
pub struct ExportSettings {
    /// The collector: traces go to `/v1/traces` below its URL.
    pub collector: HttpGrant,
    /// What all spans say of whom they come from, such as `service.name`.
    pub resource: Vec<(String, String)>,
    /// How long a span may wait for others to be sent with.
    pub interval: Duration,
    /// How long a collector that did not take a batch is left alone; each time twice as long.
    pub pause: Duration,
    /// How long is sent on at the end.
    pub stop_timeout: Duration,
}

/// See the file.
pub struct Exporter {
    settings: ExportSettings,
    connector: Connector,
    spans: mpsc::Receiver<Span>,
    counts: Arc<Tally>,
    /// Why the last batch did not arrive, which was said once.
    trouble: Option<String>,
}

/// What came of one request.
enum Sent {
    Taken(HttpResponse),
    /// Ask again, perhaps not before.
    Later(String, Option<Duration>),
    Refused(String),
}

impl ExportSettings {
    /// With the usual times, and nothing said of who sends.
    pub fn of(collector: HttpGrant) -> ExportSettings {
        ExportSettings {
            collector,
            resource: Vec::new(),
            interval: Duration::from_secs(1),
            pause: Duration::from_secs(1),
            stop_timeout: Duration::from_secs(3),
        }
    }
}

impl Exporter {
    pub(crate) fn new(
        settings: ExportSettings,
        connector: Connector,
        spans: mpsc::Receiver<Span>,
        counts: Arc<Tally>,
    ) -> Exporter {
        Exporter { settings, connector, spans, counts, trouble: None }
    }

    /// Sends until `shutdown`, and then what waits, for so long as that may take.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        let mut batch = Vec::with_capacity(BATCH_MAX);
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            () = self.run_on(&mut batch) => return,
        }
        // What nobody gets any more is counted, too.
        self.spans.close();
        let _ = timeout(self.settings.stop_timeout, self.run_on(&mut batch)).await;
        let left = batch.len() + self.spans.len();
        self.counts.lost(Loss::Unreachable, left as u64);
    }

    /// Returns when nobody can make a span any more. What is in hand stays in `batch`.
    async fn run_on(&mut self, batch: &mut Vec<Span>) {
        while !batch.is_empty() || self.spans.recv_many(batch, BATCH_MAX).await > 0 {
            self.fill(batch).await;
            self.send(batch).await;
            batch.clear();
        }
    }

    /// Waits for more spans, within the interval.
    async fn fill(&mut self, batch: &mut Vec<Span>) {
        let end = Instant::now() + self.settings.interval;
        while let Some(room) = BATCH_MAX.checked_sub(batch.len()).filter(|room| *room > 0) {
            match timeout_at(end, self.spans.recv_many(batch, room)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    async fn send(&mut self, batch: &[Span]) {
        let body = otlp::request(&self.settings.resource, batch);
        let count = batch.len() as u64;
        let mut pause = self.settings.pause;
        for attempt in 1..=TRIES_MAX {
            match self.ask(body.clone()).await {
                Sent::Taken(answer) => return self.taken(&answer, count),
                Sent::Refused(why) => return self.lost(Loss::Rejected, why, count),
                Sent::Later(why, _) if attempt == TRIES_MAX => {
                    return self.lost(Loss::Unreachable, why, count);
                }
                Sent::Later(why, after) => {
                    self.say(why);
                    tokio::time::sleep(after.unwrap_or(pause).min(PAUSE_MAX)).await;
                    pause *= 2;
                }
            }
        }
    }

    async fn ask(&self, body: Bytes) -> Sent {
        let request = HttpRequest {
            method: "POST".to_owned(),
            path_or_url: otlp::PATH.to_owned(),
            headers: vec![("content-type".to_owned(), otlp::CONTENT_TYPE.to_owned())],
            body,
            timeout: None,
        };
        match self.connector.send(&self.settings.collector, request).await {
            Ok(answer) if (200..300).contains(&answer.status) => Sent::Taken(answer),
            // Those that the protocol has a client try again after.
            Ok(answer) if matches!(answer.status, 429 | 502 | 503 | 504) => {
                Sent::Later(format!("it answers {}", answer.status), retry_after(&answer))
            }
            Ok(answer) => Sent::Refused(format!("it answers {}", answer.status)),
            Err(error @ (HttpError::Denied(_) | HttpError::Invalid(_))) => Sent::Refused(error.to_string()),
            // It was taken, and what it said of it is not known.
            Err(error @ HttpError::TooLarge) => Sent::Refused(error.to_string()),
            Err(error) => Sent::Later(error.to_string(), None),
        }
    }

    fn taken(&mut self, answer: &HttpResponse, count: u64) {
        if self.trouble.take().is_some() {
            tracing::info!("traces are taken again");
        }
        let rejected = otlp::rejected(&answer.body);
        let lost = rejected.as_ref().map_or(0, |(spans, _)| (*spans).min(count));
        self.counts.sent(count - lost);
        if let Some((_, why)) = rejected {
            self.lost(Loss::Rejected, why, lost);
        }
    }

    fn lost(&mut self, loss: Loss, why: String, count: u64) {
        self.counts.lost(loss, count);
        self.say(why);
    }

    /// Says why nothing arrives: once, until it is another reason or something does.
    fn say(&mut self, why: String) {
        if self.trouble.as_ref() != Some(&why) {
            let url = self.settings.collector.base.as_str();
            tracing::warn!(collector = url, "traces are not taken: {why}");
            self.trouble = Some(why);
        }
    }
}

/// Seconds; a date is left to the usual pause.
fn retry_after(answer: &HttpResponse) -> Option<Duration> {
    let (_, value) = answer.headers.iter().find(|(name, _)| name == "retry-after")?;
    value.trim().parse().ok().map(Duration::from_secs)
}
