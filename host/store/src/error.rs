//! Why a store could not do what was asked, by what the engine does about it.

/// What the engine does about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// One row is not acceptable; nothing of the batch was stored. The engine halves
    /// the batch until the row is found, and only that one is refused.
    Refused,
    /// No room. Nothing was stored; intake closes until there is.
    Full,
    /// The store cannot be reached or is locked. Nothing was stored; asked again later.
    Unavailable,
    /// The connection died while it committed: [`crate::Store::find_mark`] tells.
    Unknown,
    /// Failed flush or damaged file: the process ends, recovery decides.
    Fatal,
}

/// A failed call of a [`crate::Store`].
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct StoreError {
    kind: ErrorKind,
    text: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// `text` is a lower-case fragment that says what could not be done.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        StoreError { kind, text: text.into(), source: None }
    }

    /// Keeps the driver's own error for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}
