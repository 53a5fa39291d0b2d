//! The local HTTP: health, metrics, the API that the commands use, and the web page.
//!
//! It asks everything of a [`Control`] and speaks in names, never in the store's numbers.
//! It must not know plugins' code, SQL or how messages move.

mod control;
mod error;
mod guard;
mod handlers;
mod metrics;
mod openapi;
pub mod params;
mod server;
mod stream;
mod token;
pub mod views;
mod web;

pub use control::{
    Action, ActionKind, BulkAction, ConfirmRetention, Control, ControlError, ControlErrorKind,
    DestinationAction, DestinationActionKind, DrainOrder, Edit, Head, LaneAction, LaneActionKind,
    RemoveState,
};
pub use metrics::reference as metrics_reference;
pub use openapi::document as openapi_document;
pub use server::{AdminError, AdminServer, AdminSettings};
pub use token::{ControlFile, Token, TokenError};
