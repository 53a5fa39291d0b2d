//! The engine: committer, dispatcher, completer, recovery, retention.
//!
//! [`Core`] is the machines, pure; [`Engine`] drives them with a store, a way to deliver and a
//! clock. It must not know SQL, WebAssembly or sockets: storage is the port of `store`,
//! delivery and time are the traits of [`ports`].

mod age;
mod committer;
mod completer;
mod core;
mod dispatcher;
mod drain;
mod event;
mod fact;
mod fate;
mod gate;
mod gather;
mod handle;
mod housekeeping;
mod inbox;
mod intake;
mod layout;
pub mod ports;
mod retention;
pub mod settings;
mod shell;
pub mod status;
mod time;

pub use crate::core::Core;
pub use age::ClockDoubt;
pub use drain::{AfterDrain, DrainOrder, DrainStatus};
pub use event::{
    ActError, Edit, Effect, EngineError, Event, Read, ReadAnswer, ReadId, RunId, Submission, Ticket, Unit,
};
pub use fact::{DestinationName, Fact};
pub use fate::Fate;
pub use gate::{Gate, GateError, Permit};
pub use handle::{EngineHandle, Settling, UnitMax, split_resend};
pub use ports::{Clock, Deliver, MessageState, Routed, Run, RunReport, Stop, Verdict};
pub use settings::{DestinationSettings, EngineSettings, InterfaceSettings, LayoutChange, Limits};
pub use shell::{Engine, EngineParts, EngineTask};
pub use status::Status;
pub use time::Now;
