//! The local HTTP: health, metrics, and the API that the commands use.
//!
//! It asks everything of a [`Control`] and speaks in names, never in the store's numbers.
//! It must not know plugins' code, SQL or how messages move.

mod control;
mod error;
mod guard;
mod handlers;
mod metrics;
pub mod params;
mod server;
mod token;
pub mod views;

pub use control::{
    Action, ActionKind, BulkAction, Control, ControlError, ControlErrorKind, DestinationAction,
    DestinationActionKind, DrainOrder, Edit, Head, LaneAction, LaneActionKind,
};
pub use server::{AdminError, AdminServer, AdminSettings};
pub use token::{ControlFile, Token, TokenError};
