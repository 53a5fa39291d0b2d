//! The simulation: the real engine core on a seeded clock, with a store and plugins that fail,
//! and an auditor that checks the rules after every step.
//!
//! A seed replays exactly. It must not know SQL, WebAssembly or sockets.

mod auditor;
mod content;
mod receiver;
mod scenario;
mod world;

use std::fmt;

/// What a seed went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub steps: u64,
    pub acknowledged: u64,
    pub delivered: u64,
    pub commits: u64,
    pub deaths: u64,
    pub power_losses: u64,
    pub actions: u64,
    /// Messages that were stored by an engine that did not own them.
    pub stored_elsewhere: u64,
    pub locks_lost: u64,
    /// Ends of the machine of the store which the engines outlived.
    pub server_ends: u64,
    /// Claims of what another engine may not know that it lost.
    pub takeovers: u64,
}

/// A rule was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    pub seed: u64,
    pub step: u64,
    pub text: String,
    /// What happened before, if it was asked for.
    pub trace: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} breaks a rule at step {}: {}", self.seed, self.step, self.text)
    }
}

impl std::error::Error for Violation {}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.steps += other.steps;
        self.acknowledged += other.acknowledged;
        self.delivered += other.delivered;
        self.commits += other.commits;
        self.deaths += other.deaths;
        self.power_losses += other.power_losses;
        self.actions += other.actions;
        self.stored_elsewhere += other.stored_elsewhere;
        self.locks_lost += other.locks_lost;
        self.server_ends += other.server_ends;
        self.takeovers += other.takeovers;
    }
}

/// Whether to remember what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    Off,
    On,
}

/// Plays a seed to its end.
pub fn simulate(seed: u64, trace: Trace) -> Result<Stats, Box<Violation>> {
    world::World::new(seed, trace).run()
}
