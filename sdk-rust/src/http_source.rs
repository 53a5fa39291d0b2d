//! HTTP sources: they take requests and answer after the commit.
//!
//! The host listens, routes, authenticates and reads; the plugin finds the messages in a
//! request, as spans of its body where it can, so that the bytes stay what they were.

use serde::de::DeserializeOwned;

use crate::{Attributes, Body, Context, Failure, Item, Receipt};

/// A source that takes HTTP requests: one interface's settings.
pub trait HttpSource: Sized + 'static {
    /// Read from the interface's settings; [`NoSettings`](crate::NoSettings) where there are none.
    type Settings: DeserializeOwned;

    /// Takes the settings; a failure is shown to whoever wrote them.
    fn open(settings: Self::Settings, context: &Context) -> Result<Self, Failure>;

    /// What to do with a request. A failure answers it with status 500.
    fn receive(&mut self, request: HttpRequest) -> Result<Decision, Failure>;

    /// The answer, after the commit, from the tickets alone: another instance may give it.
    fn settle(&mut self, ticket: &[u8], receipts: Vec<Receipt>) -> Result<HttpAnswer, Failure>;
}

/// One request, whole.
#[derive(Debug)]
pub struct HttpRequest {
    pub method: String,
    /// Path and query as received.
    pub target: String,
    /// Names in lower case, without those of the connection and of the authentication.
    pub headers: Vec<(String, String)>,
    /// `address`, `port` and, where known, `tls.subject` and `user`.
    pub peer: Attributes,
    pub body: Body,
}

impl HttpRequest {
    /// The first header of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The messages of a request.
#[derive(Debug, Default)]
pub struct Accepted {
    /// In their order. All of them are stored in one transaction, or none.
    pub items: Vec<Item>,
    /// For the answer as a whole, at most 4 KiB.
    pub ticket: Vec<u8>,
}

/// What to do with a request.
#[derive(Debug)]
pub enum Decision {
    Accept(Accepted),
    /// 4xx or 5xx, anything else is a fault. Counted as refused.
    Refuse(HttpAnswer),
    /// To a request that carries no message, such as a challenge.
    /// Only where the manifest says `control = true`.
    Answer(HttpAnswer),
}

/// Makes a type that implements [`HttpSource`] the plugin. Natively it only checks the type.
#[macro_export]
macro_rules! export_http_source {
    ($plugin:ty) => {
        $crate::__export!(http_source, HttpSource, $plugin);
    };
}
