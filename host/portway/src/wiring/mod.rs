//! The one place that wires everything: a project becomes a running engine.
//!
//! Each part here joins two crates that do not know each other; none has logic of its own but
//! `deliver`, where faults of plugins become verdicts on messages.

mod assemble;
pub mod catalog;
mod certificates;
mod clock;
mod control;
mod deliver;
mod destinations;
mod difference;
mod embedded;
mod judge;
mod kept;
mod latency;
mod leaving;
mod names;
mod observer;
mod openings;
mod passed;
mod picture;
mod plugin_schema;
pub mod rehearsal;
mod reload;
mod running;
mod saved;
mod secret_ledger;
mod secret_tally;
mod source_set;
mod sources;
mod state_store;
pub(crate) mod store;
mod threads;
mod traces;

pub use assemble::AssembleError;
pub use catalog::PluginCatalog;
pub use certificates::certificate_problems;
pub use clock::SystemClock;
pub use difference::{Change, Difference, What};
pub use judge::settings_problems;
pub use leaving::{LeaveError, Leaving};
pub use names::topology;
pub use passed::PassedSockets;
pub use plugin_schema::plugin_schemas;
pub use reload::{Reload, ReloadError, Reloaded};
pub use running::{Running, StartError, StartOptions};
pub use store::open as open_store;
pub use threads::Background;
