//! The storage port on SQLite: one file, one engine.
//!
//! It must not know plugins, sockets or the engine: only [`portway_store`] and the model. Nothing
//! but SQLite ever opens the database file.

mod action;
mod backup;
mod body;
mod cursor;
mod dedupe;
mod delivery;
mod destination;
mod disk;
mod error;
mod expiry;
mod lock;
mod maintenance;
mod message;
mod number;
mod open;
mod output;
mod owner;
mod query;
mod readers;
mod register;
mod result;
mod retention;
mod schema;
mod state;
mod store;
mod suspect;
mod term;
mod thread;
mod transaction;
mod upgrade;
mod view;
mod writer;

pub use open::{OpenError, SqliteSettings};
pub use store::SqliteStore;
pub use upgrade::{check_upgrade, upgrade};

/// Migrations of the tables, in order.
pub fn migrations() -> &'static [portway_store::Migration] {
    &schema::MIGRATIONS
}
