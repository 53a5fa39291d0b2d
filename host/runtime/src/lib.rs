//! Loads, meters and calls plugins, and gives them the host services they may import.
//!
//! It must not know the engine, the store or project files: it is handed components, settings
//! and grants, and answers in the model's words. What a grant lets through is decided in `net`.

mod batch;
mod cache;
mod charset;
mod compile;
mod convert;
mod cost;
mod engine;
mod exports;
mod fault;
mod fault_text;
mod guest;
mod guest_time;
mod http_sender;
mod http_source;
mod inspect;
mod instance;
mod kept;
mod load;
mod manifest;
mod opening;
mod outgoing;
mod output;
mod plugin;
mod poll_source;
mod pool;
mod reach;
mod rehearse;
mod respond;
mod runtime;
mod seats;
mod secret;
mod sender;
mod services;
mod settings;
mod source;
mod state;
mod stream_source;
mod things;
mod transform;

pub use batch::{Batch, MESSAGES_MAX, Watch};
pub use compile::{CompileError, compile_child_main};
pub use cost::MessageCost;
pub use fault::{Call, CallError, Fault, FaultKind};
pub use http_sender::HttpSender;
pub use http_source::{Decision, HttpAnswer, HttpRequest, HttpSource};
pub use inspect::{CONTRACT, read_manifest};
pub use load::LoadError;
pub use manifest::{
    Manifest, ManifestError, PluginKind, SECTION as MANIFEST_SECTION, Slot, SlotKind, WantedLimits,
};
pub use opening::{CallLimits, Grant, Grants, Isolation, Level, Observer, Opening, Unobserved};
pub use outgoing::{Asked, HttpAnswers};
pub use plugin::{OpeningError, Plugin, PluginCounts};
pub use poll_source::{CURSOR_BYTES_MAX, Found, PollSource, Query};
pub use reach::GrantError;
pub use rehearse::Rehearsed;
pub use respond::{RespondError, Responder, Scheme};
pub use runtime::{Runtime, RuntimeError};
pub use secret::{Recording, SecretAction, SecretGrant, SecretUse, SecretValue};
pub use sender::Sender;
pub use settings::{COMPONENT_BYTES_MAX, CompileMode, RuntimeClock, RuntimeSettings, SystemClock};
pub use source::{Fate, Receipt, SourceError, SourceItem};
pub use state::{NoState, StateGrant, StateStore, Written};
pub use stream_source::{CHUNK_BYTES_MAX, Connection, Reply, StreamSource};
pub use transform::Transformer;
