//! What the stream tells beside whole interfaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EngineState, Intake, Status, StoreAway, Time};

/// The engine, without what changes while nothing happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineNow {
    pub version: String,
    /// The project folder.
    pub project: String,
    pub state: EngineState,
    pub started_at: Time,
    pub intake: Intake,
    /// Free on the store's disk in whole units of 64 MiB, where known.
    pub free_bytes: Option<u64>,
    /// What an operator should know of the store, though it works.
    pub notes: Vec<String>,
    /// None: the store can be read.
    pub away: Option<StoreAway>,
}

/// Why nothing is told at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trouble {
    /// For programs, kebab-case.
    pub code: String,
    /// For people.
    pub message: String,
}

impl EngineNow {
    /// Free space moves with every commit; smaller steps would be news each second.
    const FREE_STEP: u64 = 64 << 20;

    pub fn of(status: &Status) -> EngineNow {
        let Status { engine, intake, store, .. } = status;
        EngineNow {
            version: engine.version.clone(),
            project: engine.project.clone(),
            state: engine.state,
            started_at: engine.started_at,
            intake: intake.clone(),
            free_bytes: store.free_bytes.map(|free| free / Self::FREE_STEP * Self::FREE_STEP),
            notes: store.notes.clone(),
            away: store.away.clone(),
        }
    }
}
