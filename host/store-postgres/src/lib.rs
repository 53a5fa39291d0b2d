//! The storage port on PostgreSQL: one database, one or many engines.
//!
//! It must not know plugins, HTTP or the engine: only [`portway_store`] and the model.

mod action;
mod announce;
#[doc(hidden)]
pub mod bench;
mod connect;
mod cursor;
mod day;
mod dedupe;
mod delivery;
mod destination;
mod error;
mod expiry;
mod floor;
mod keeper;
mod keeping;
mod maintenance;
mod message;
mod moving;
mod news;
mod number;
mod old;
mod open;
mod output;
mod owner;
mod partition;
mod period;
mod process;
mod query;
mod readers;
mod register;
mod relay;
mod removal;
mod result;
mod retention;
mod schema;
mod sealed;
mod seen;
mod servers;
mod settings;
mod state;
mod store;
mod suspect;
mod tenure;
mod term;
mod transaction;
mod upgrade;
mod view;
mod writer;

pub use open::OpenError;
pub use partition::Period;
pub use settings::{PostgresSettings, SettingsError};
pub use store::PostgresStore;
pub use upgrade::{check_upgrade, upgrade};

/// Migrations of the tables, in order.
pub fn migrations() -> &'static [portway_store::Migration] {
    &schema::MIGRATIONS
}
