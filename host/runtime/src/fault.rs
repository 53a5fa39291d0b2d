//! Why a call failed: the plugin's word, its fault, or nothing free.
//!
//! Which error of the engine is which kind of fault is decided here; what follows from a
//! fault is decided by the caller.

use std::fmt;

use portway_model::{Failure, Trouble, code};
use wasmtime::{Trap, WasmBacktrace};

use crate::cost::MessageCost;
use crate::fault_text::shortened;
use crate::state::Written;

/// What a call on a batch gave.
#[derive(Debug)]
pub struct Call<T> {
    pub result: Result<T, CallError>,
    /// The message the plugin said it was at.
    pub begun: Option<u32>,
    /// Messages that are known to have arrived, whatever the result.
    pub sent: Vec<u32>,
    /// Messages that the peer may have seen, and of which no verdict speaks that knows its answer.
    pub unsure: Vec<u32>,
    pub fuel: u64,
    /// What its messages keep, whatever the result: which of it counts follows from what becomes of
    /// each message. Mostly empty.
    pub state: Vec<Written>,
    /// What each message of a watched batch cost, in its order; none: the plugin did not get to it.
    pub costs: Vec<Option<MessageCost>>,
}

/// Why a call gave no verdicts.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The plugin said that nothing was done.
    #[error("the plugin did nothing: {}", trouble_text(.0))]
    Trouble(Trouble),
    /// It refused its settings.
    #[error("the plugin refused its settings: {0}")]
    Open(Failure),
    #[error("{0}")]
    Fault(Box<Fault>),
    /// No instance became free in time.
    #[error("no instance of the plugin became free in time")]
    Busy,
}

impl CallError {
    /// The plugin's own code, or the host's for it.
    pub fn code(&self) -> &str {
        match self {
            CallError::Trouble(Trouble::Unavailable(later)) => &later.failure.code,
            CallError::Trouble(Trouble::Misconfigured(failure)) | CallError::Open(failure) => &failure.code,
            CallError::Fault(fault) => fault.kind.code(),
            CallError::Busy => code::BUSY,
        }
    }
}

impl From<Box<Fault>> for CallError {
    fn from(fault: Box<Fault>) -> CallError {
        CallError::Fault(fault)
    }
}

/// A plugin broke off or broke its word. Its instance is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// For whoever wrote the plugin: the guest's own words where there are any.
    pub text: String,
    pub plugin: String,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// What the call used up.
    pub fuel: u64,
    /// The most memory the instance had.
    pub memory_bytes: usize,
    /// The message it was at.
    pub begun: Option<u32>,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Panic, out of bounds, stack overflow and the like.
    Trap,
    OutOfFuel,
    OutOfMemory,
    /// Cancelled at the end of its wall time; waiting in a service it is the network's fault.
    TimedOut {
        in_service: bool,
    },
    /// Handed over more than a call may copy.
    CopyLimit,
    /// What it answered breaks the contract.
    Lie,
}

impl FaultKind {
    /// The plugin used up what it was given: not the message's fault alone.
    pub const fn is_runaway(self) -> bool {
        match self {
            FaultKind::OutOfFuel | FaultKind::OutOfMemory | FaultKind::TimedOut { in_service: false } => true,
            FaultKind::Trap
            | FaultKind::TimedOut { in_service: true }
            | FaultKind::CopyLimit
            | FaultKind::Lie => false,
        }
    }

    /// The code of what such a fault leads to.
    pub const fn code(self) -> &'static str {
        match self {
            FaultKind::Trap => code::PLUGIN_TRAP,
            FaultKind::OutOfFuel => code::PLUGIN_OUT_OF_FUEL,
            FaultKind::OutOfMemory => code::PLUGIN_OUT_OF_MEMORY,
            FaultKind::TimedOut { in_service: true } => code::PLUGIN_TIMED_OUT_IN_SERVICE,
            FaultKind::TimedOut { in_service: false } => code::PLUGIN_TIMED_OUT,
            FaultKind::CopyLimit => code::PLUGIN_COPY_LIMIT,
            FaultKind::Lie => code::PLUGIN_LIE,
        }
    }

    /// For the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            FaultKind::Trap => "trap",
            FaultKind::OutOfFuel => "out-of-fuel",
            FaultKind::OutOfMemory => "out-of-memory",
            FaultKind::TimedOut { in_service: true } => "timed-out-in-service",
            FaultKind::TimedOut { in_service: false } => "timed-out",
            FaultKind::CopyLimit => "copy-limit",
            FaultKind::Lie => "lie",
        }
    }
}

impl Fault {
    /// As the reason of a message or a destination.
    pub fn to_failure(&self) -> Failure {
        Failure::new(self.kind.code(), self.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FaultKind::Trap => "trapped",
            FaultKind::OutOfFuel => "used up its fuel",
            FaultKind::OutOfMemory => "used up its memory",
            FaultKind::TimedOut { in_service: true } => "waited in a service until its time was up",
            FaultKind::TimedOut { in_service: false } => "computed until its time was up",
            FaultKind::CopyLimit => "handed over more than a call may copy",
            FaultKind::Lie => "broke the contract",
        };
        write!(f, "plugin `{}` {what}", self.plugin)?;
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        Ok(())
    }
}

fn trouble_text(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Unavailable(later) => format!("unavailable ({})", later.failure),
        Trouble::Misconfigured(failure) => format!("misconfigured ({failure})"),
    }
}

/// What a host function ends a guest with; kept apart from the guest's own traps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Halt {
    #[error("all fuel is used up, service calls included")]
    OutOfFuel,
    #[error("{wanted} bytes of memory wanted, {limit} allowed")]
    OutOfMemory { wanted: usize, limit: usize },
    #[error("{0}")]
    Lie(String),
}

/// Where in the guest an error happened, if its names were kept.
fn place(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    // Shown, since only the engine's own text has the names as they were written.
    let shown = backtrace.to_string();
    let Some((_, name)) = shown.lines().find_map(|frame| frame.split_once(" - ")) else {
        return String::new();
    };
    // Without the module's name before it and the compiler's hash after it.
    let name = name.split_once('!').map_or(name, |(_, name)| name).trim();
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(name, _)| name);
    format!(" in `{}`", shortened(name))
}

/// Which kind of fault an error of the engine is, and what it says itself.
pub(crate) fn classify(error: &wasmtime::Error) -> (FaultKind, String) {
    if let Some(halt) = error.downcast_ref::<Halt>() {
        let kind = match halt {
            Halt::OutOfFuel => FaultKind::OutOfFuel,
            Halt::OutOfMemory { .. } => FaultKind::OutOfMemory,
            Halt::Lie(_) => FaultKind::Lie,
        };
        return (kind, halt.to_string());
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        if *trap == Trap::OutOfFuel {
            return (FaultKind::OutOfFuel, trap.to_string());
        }
        return (FaultKind::Trap, format!("{trap}{}", place(error)));
    }
    let text = error.root_cause().to_string();
    // The engine has no public type for it; a test holds the words.
    let copy_limit = text.contains("too much data is being copied");
    (if copy_limit { FaultKind::CopyLimit } else { FaultKind::Trap }, text)
}
