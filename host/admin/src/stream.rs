//! The stream of changes: server-sent events, at most one look at the engine a second.
//!
//! A subscriber first hears everything, then each thing that changed, whole. The engine is asked
//! once a second however many listen, and not at all while nobody does. Nothing is queued for a
//! slow subscriber: it hears the newest when it comes back.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use futures::stream::{self, Stream};
use http::StatusCode;
use portway_model::code;
use serde::Serialize;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::error::ApiError;
use crate::views::{self, EngineNow, Status};
use crate::{Control, ControlError};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Without an event for so long, a comment is sent: whoever waits knows that the line is good.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Then a stream ends, and the subscriber asks anew: none holds its place for ever unseen.
const STREAM_MAX: Duration = Duration::from_secs(600);
/// Streams at the same time.
pub(crate) const SUBSCRIBERS_MAX: usize = 16;

/// What subscribers share.
pub(crate) struct Hub {
    control: Arc<dyn Control>,
    /// True: the engine's API stops.
    stopped: watch::Receiver<bool>,
    places: Arc<Semaphore>,
    newest: Mutex<Option<(Instant, Look)>>,
}

/// What one look at the engine showed.
type Look = Result<Arc<Status>, ControlError>;

/// Its route.
pub(crate) fn routes<S>(control: Arc<dyn Control>, stopped: watch::Receiver<bool>) -> Router<S> {
    let places = Arc::new(Semaphore::new(SUBSCRIBERS_MAX));
    let hub = Arc::new(Hub { control, stopped, places, newest: Mutex::default() });
    Router::new().route("/api/v1/stream", get(subscribe)).with_state(hub)
}

async fn subscribe(State(hub): State<Arc<Hub>>) -> Result<impl IntoResponse, ApiError> {
    let place = hub.places.clone().try_acquire_owned().map_err(|_| {
        let text = format!("{SUBSCRIBERS_MAX} streams are open; ask for the status instead");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code::BUSY, text)
    })?;
    let keep_alive = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    Ok(Sse::new(Subscriber::new(hub, place).events()).keep_alive(keep_alive))
}

impl Hub {
    /// The newest look; a new one where that is a second old.
    async fn look(&self) -> Look {
        let mut newest = self.newest.lock().await;
        match &*newest {
            Some((at, look)) if at.elapsed() < LOOK_EVERY => look.clone(),
            _ => {
                let look = self.control.status().await.map(Arc::new);
                *newest = Some((Instant::now(), look.clone()));
                look
            }
        }
    }
}

/// One stream, and what its reader knows.
struct Subscriber {
    hub: Arc<Hub>,
    _place: OwnedSemaphorePermit,
    stopped: watch::Receiver<bool>,
    end: Instant,
    next: Instant,
    engine: Option<EngineNow>,
    interfaces: HashMap<String, views::Interface>,
    trouble: Option<views::Trouble>,
    /// Of the last look, not sent yet.
    events: VecDeque<Event>,
}

impl Subscriber {
    fn new(hub: Arc<Hub>, place: OwnedSemaphorePermit) -> Subscriber {
        let now = Instant::now();
        Subscriber {
            stopped: hub.stopped.clone(),
            hub,
            _place: place,
            end: now + STREAM_MAX,
            next: now,
            engine: None,
            interfaces: HashMap::new(),
            trouble: None,
            events: VecDeque::new(),
        }
    }

    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut subscriber| async move {
            let event = subscriber.next_event().await?;
            Some((Ok(event), subscriber))
        })
    }

    /// None: the stream is over.
    async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.next >= self.end {
                return None;
            }
            tokio::select! {
                // Also when nobody can give the word any more.
                _ = self.stopped.wait_for(|stopped| *stopped) => return None,
                () = tokio::time::sleep_until(self.next) => {}
            }
            let look = self.hub.look().await;
            self.next = Instant::now() + LOOK_EVERY;
            self.compare(look);
        }
    }

    /// Makes events of what differs from what the reader knows.
    fn compare(&mut self, look: Look) {
        let status = match look {
            Ok(status) => status,
            Err(error) => {
                let trouble = views::Trouble { code: error.code.to_owned(), message: error.text };
                if self.trouble.as_ref() != Some(&trouble) {
                    self.push("trouble", &trouble);
                    self.trouble = Some(trouble);
                }
                return;
            }
        };
        // After a trouble the engine is told again, as the sign that it is over.
        let is_over = self.trouble.take().is_some();
        let engine = EngineNow::of(&status);
        if is_over || self.engine.as_ref() != Some(&engine) {
            self.push("engine", &engine);
            self.engine = Some(engine);
        }
        for interface in &status.interfaces {
            if self.interfaces.get(&interface.name) != Some(interface) {
                self.push("interface", interface);
                self.interfaces.insert(interface.name.clone(), interface.clone());
            }
        }
    }

    fn push(&mut self, kind: &str, data: &impl Serialize) {
        match Event::default().event(kind).json_data(data) {
            Ok(event) => self.events.push_back(event),
            Err(error) => tracing::error!(%error, kind, "an event of the stream cannot be written"),
        }
    }
}
