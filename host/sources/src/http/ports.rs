//! What an HTTP driver needs: a source that reads requests and an intake that stores what they
//! carry, or a component that answers them itself.

use bytes::Bytes;
use futures::future::BoxFuture;
use portway_model::{Attributes, Cost, Draft, Failure};

use crate::ports::{Arrival, CodecError, Fate, Item, Receipt};

/// The opened HTTP source of one interface.
pub trait Endpoint: Send + Sync + 'static {
    /// What to do with a request.
    fn receive(&self, request: Request) -> impl Future<Output = Result<Decision, CodecError>> + Send;

    /// The answer, after the commit.
    fn settle(
        &self,
        ticket: Bytes,
        receipts: Vec<Receipt>,
    ) -> impl Future<Output = Result<Answer, CodecError>> + Send;
}

/// A component that answers requests itself.
pub trait Respond: Send + Sync + 'static {
    /// The answer to a request.
    fn respond(&self, request: http::Request<Bytes>) -> Answering<'_>;
}

/// What a component is busy with.
pub type Answering<'a> = BoxFuture<'a, Result<http::Response<Bytes>, RespondError>>;

/// Why a component gave no answer; what it says is for the operator alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RespondError {
    #[error("{0}")]
    Failed(Failure),
    #[error("{0}")]
    TimedOut(Failure),
    /// No instance was free.
    #[error("{0}")]
    Busy(Failure),
}

/// Stores the messages of one request.
pub trait RequestIntake: Send + Sync + 'static {
    /// All of them in one transaction, or none. One fate a draft, in their order.
    fn submit(&self, arrival: Arrival, drafts: Vec<Draft>) -> impl Future<Output = Vec<Fate>> + Send;
}

/// One request, whole.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query as received.
    pub target: String,
    /// Names in lower case, without those of the connection and of the authentication.
    pub headers: Vec<(String, String)>,
    /// `address`, `port` and, where known, `tls.subject` and `user`.
    pub peer: Attributes,
    pub body: Bytes,
}

/// One answer; status and headers are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// What a source wants done with a request.
#[derive(Clone, Debug)]
pub enum Decision {
    Accept {
        items: Vec<Item>,
        ticket: Bytes,
        /// What reading the request cost.
        cost: Cost,
    },
    Refuse(Answer),
    /// It carries no message.
    Answer(Answer),
}
