//! What the host hands to transforms and senders: what a plugin is opened for, the
//! call at hand, its messages.

use std::time::{Duration, Instant};

use crate::{Attributes, Body};

/// What a plugin is opened for: one interface or one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The interface's name; for a tenant's destination the tenant's id.
    pub origin: String,
    /// The destination's name or id; empty for a source.
    pub destination: String,
    /// `engine.version`, `environment` and whatever is added later.
    pub attributes: Attributes,
}

/// One message on its way to one destination.
#[derive(Debug)]
pub struct Message {
    /// The store's number, stable over retries and restarts.
    pub id: u64,
    /// When the host received it, in milliseconds since 1970.
    pub received_ms: u64,
    /// 1 for the first attempt.
    pub attempt: u16,
    /// What its lane was chosen by.
    pub key: Option<String>,
    pub attributes: Attributes,
    pub body: Body,
}

impl Message {
    /// A message with a body and nothing else worth telling, as tests need it.
    pub fn new(body: impl Into<Body>) -> Self {
        Message {
            id: 1,
            received_ms: 0,
            attempt: 1,
            key: None,
            attributes: Attributes::new(),
            body: body.into(),
        }
    }

    /// The same with another id.
    pub fn with_id(mut self, id: u64) -> Self {
        self.id = id;
        self
    }

    /// The same with a key.
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same with one more attribute.
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push(name, value);
        self
    }
}

/// What is true of all messages of one call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Names the store; store and message id together name a message in the world.
    pub store: String,
    /// True: the messages are of one lane, and after the first that was not sent the
    /// rest must stay untried.
    pub ordered: bool,
    /// When the call must have returned.
    pub deadline: Deadline,
}

impl Call {
    /// A call that begins now.
    pub fn new(store: impl Into<String>, ordered: bool, time_left: Duration) -> Self {
        Call { store: store.into(), ordered, deadline: Deadline::after(time_left) }
    }

    /// A call whose time nobody looks at: it spares reading the clock.
    #[cfg(target_family = "wasm")]
    pub(crate) fn untimed(store: String, ordered: bool, time_left: Duration) -> Self {
        Call { store, ordered, deadline: Deadline { started: None, time_left } }
    }
}

/// When a call must have returned.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// None: the clock was not read.
    started: Option<Instant>,
    time_left: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn after(time_left: Duration) -> Self {
        Deadline { started: Some(Instant::now()), time_left }
    }

    /// What is left; a transform sees what was left when its call began.
    pub fn remaining(&self) -> Duration {
        let used = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        self.time_left.saturating_sub(used)
    }

    /// True when nothing is left.
    pub fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The shorter of a time-out and what is left, in milliseconds, at least 1.
    pub fn cap_ms(&self, timeout: Duration) -> u32 {
        let millis = self.remaining().min(timeout).as_millis();
        u32::try_from(millis).unwrap_or(u32::MAX).max(1)
    }
}
