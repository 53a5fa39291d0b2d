//! Test traffic: messages with a sequence number for each key, sent, received and counted.
//!
//! One message format is shared by `gen`, `sink`, `bench`, the demo and the crash test, and
//! everything here can be used as a library: structs in, structs out, dropped to cancel. It
//! speaks MLLP and HTTP by itself, so that it proves the engine and not the engine's own code.

pub mod answer;
pub mod file;
pub mod frame;
pub mod generate;
pub mod http;
pub mod latency;
pub mod ledger;
pub mod message;
pub mod mllp;
mod pace;
pub mod receive;
mod send;
pub mod stop;
pub mod tally;

pub use generate::{GenerateError, GenerateProgress, GenerateReport, GenerateSettings, generate};
pub use latency::{Latency, LatencyReport};
pub use message::{Identity, Template};
pub use receive::{Behaviour, Protocol, ReceiveError, ReceiveSettings, Receiver};
pub use stop::{Stop, Stopper};
pub use tally::{Tally, TallyReport};
