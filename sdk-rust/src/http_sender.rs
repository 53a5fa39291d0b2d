//! Senders that need one HTTP request a message: they say what to ask and judge the
//! answer, the host does the rest.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::{Answer, Body, Call, Context, Failure, Message, Problem, SendVerdict, Trouble, progress};

/// A plugin that sends each message with one HTTP request. It does no IO itself.
pub trait HttpSender: Sized + 'static {
    /// Read from the destination's settings; [`NoSettings`](crate::NoSettings) where there are none.
    type Settings: DeserializeOwned;

    /// Takes the settings; a failure is shown to whoever wrote them.
    fn open(settings: Self::Settings, context: &Context) -> Result<Self, Failure>;

    /// What to ask for one message. An error by `?` quarantines it.
    fn prepare(&mut self, call: &Call, message: &Message) -> Result<Plan, Problem>;

    /// What the answer means. Another instance may have prepared the request: all that is
    /// needed is in the ticket.
    fn judge(&mut self, reply: HttpReply) -> Result<Answer, Problem>;
}

/// What to do with one message.
#[derive(Debug)]
pub enum Plan {
    Ask(Ask),
    /// No request needed.
    Decided(SendVerdict),
}

/// A request, and what is needed to judge its answer.
#[derive(Debug)]
pub struct Ask {
    pub request: Request,
    /// Comes back in the reply unchanged, at most 4 KiB.
    pub ticket: Vec<u8>,
}

impl From<Request> for Plan {
    fn from(request: Request) -> Self {
        Plan::Ask(Ask { request, ticket: Vec::new() })
    }
}

/// One request.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// `name:/path?query` for a granted API, or an absolute URL of a granted host.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub content: RequestContent,
    /// None: the grant's own limit. Never above it.
    pub timeout_ms: Option<u32>,
}

/// What is sent.
#[derive(Debug)]
pub enum RequestContent {
    None,
    Body(Body),
    /// The body of the message at hand, unchanged and uncopied.
    OfMessage,
}

/// What came of a request.
#[derive(Debug)]
pub struct HttpReply {
    pub outcome: Result<Response, HttpError>,
    pub ticket: Vec<u8>,
}

/// One answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Body,
}

impl Request {
    /// A request without a body.
    pub fn get(url: impl Into<String>) -> Self {
        Request {
            method: "GET".into(),
            url: url.into(),
            headers: Vec::new(),
            content: RequestContent::None,
            timeout_ms: None,
        }
    }

    /// A request with a body.
    pub fn post(url: impl Into<String>, body: impl Into<Body>) -> Self {
        let content = RequestContent::Body(body.into());
        Request { method: "POST".into(), content, ..Request::get(url) }
    }

    /// The same by another method.
    pub fn with_method(mut self, method: impl Into<String>) -> Self {
        self.method = method.into();
        self
    }

    /// With one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Given up after so long, where the grant's own limit is not shorter.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        let ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32);
        self.timeout_ms = Some(ms);
        self
    }
}

impl Response {
    /// An answer without headers, for tests.
    pub fn new(status: u16, body: impl Into<Body>) -> Self {
        Response { status, headers: Vec::new(), body: body.into() }
    }

    /// Whether the status says that it worked.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first value of a header, whose name may be in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// Not granted; nothing was sent.
    Denied(String),
    /// The request was begun and the time has passed: it may have arrived.
    Timeout,
    /// There is no connection: nothing was sent, and it would be the same with any other request.
    Unreachable(String),
    /// The answer is longer than the grant allows; the request has arrived.
    TooLarge,
    /// The request cannot be made.
    Invalid(String),
    /// The connection ended before the answer, or what came is not HTTP: it may have arrived.
    Other(String),
}

impl HttpError {
    /// What it means for the message that was asked about: a server that is away and a grant that is
    /// missing are no message's fault, no answer in time may be, and is tried again.
    pub fn into_problem(self) -> Problem {
        let text = self.to_string();
        match self {
            HttpError::Unreachable(_) => Trouble::unavailable("unreachable", text).into(),
            HttpError::Denied(_) => Trouble::misconfigured("denied", text).into(),
            HttpError::Timeout => Problem::retry("timeout", text),
            HttpError::Other(_) => Problem::retry("no-answer", text),
            HttpError::Invalid(_) => Problem::quarantine("invalid-request", text),
            HttpError::TooLarge => Problem::quarantine("answer-too-large", text),
        }
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HttpError::Denied(text) => write!(f, "the request is not granted: {text}"),
            HttpError::Timeout => f.write_str("no answer in time"),
            HttpError::Unreachable(text) => write!(f, "the server cannot be reached: {text}"),
            HttpError::TooLarge => f.write_str("the answer is longer than allowed"),
            HttpError::Invalid(text) => write!(f, "the request cannot be made: {text}"),
            HttpError::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for HttpError {}

/// One plan a message, in order, telling the host where it is. Trouble ends the call:
/// nothing was asked yet.
pub fn prepare_each<S: HttpSender>(
    sender: &mut S,
    call: &Call,
    messages: &[Message],
) -> Result<Vec<Plan>, Trouble> {
    let mut plans = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        progress::begin(index);
        plans.push(match sender.prepare(call, message) {
            Ok(plan) => plan,
            Err(Problem::Quarantine(failure)) => Plan::Decided(SendVerdict::Quarantine(failure)),
            Err(Problem::Retry(later)) => Plan::Decided(SendVerdict::Retry(later)),
            Err(Problem::Trouble(trouble)) => return Err(trouble),
        });
    }
    Ok(plans)
}

/// One verdict a reply, in order. Trouble is the result where no message got a verdict of
/// its own, else the messages that met it count as untried.
pub fn judge_each<S: HttpSender>(
    sender: &mut S,
    replies: Vec<HttpReply>,
) -> Result<Vec<SendVerdict>, Trouble> {
    let mut verdicts = Vec::with_capacity(replies.len());
    let mut first_trouble = None;
    for (index, reply) in replies.into_iter().enumerate() {
        progress::begin(index);
        verdicts.push(match sender.judge(reply) {
            Ok(answer) => SendVerdict::Sent(answer),
            Err(Problem::Quarantine(failure)) => SendVerdict::Quarantine(failure),
            Err(Problem::Retry(later)) => SendVerdict::Retry(later),
            Err(Problem::Trouble(trouble)) => {
                first_trouble.get_or_insert(trouble);
                SendVerdict::Untried
            }
        });
    }
    let nothing_done = verdicts.iter().all(|verdict| *verdict == SendVerdict::Untried);
    match first_trouble {
        Some(trouble) if nothing_done => Err(trouble),
        _ => Ok(verdicts),
    }
}

/// Makes a type that implements [`HttpSender`] the plugin. Natively it only checks the type.
#[macro_export]
macro_rules! export_http_sender {
    ($plugin:ty) => {
        $crate::__export!(http_sender, HttpSender, $plugin);
    };
}
