//! What the auditor keeps of each message, each duty to deliver it, and each destination.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use portway_engine::{DestinationSettings, RunId};
use portway_model::{
    DeliveryState, DestinationId, Guarantee, InterfaceId, Lane, OnQuarantine, OverRate, Round, Timestamp,
};

use super::rate::Meter;

/// A stored message.
#[derive(Debug)]
pub struct Shadow {
    pub interface: InterfaceId,
    pub body: Bytes,
    /// By the clock of its engine.
    pub stored_at: Timestamp,
    /// When it was acknowledged, by the count of events.
    pub acknowledged: Option<u64>,
    /// When it was received, at the latest; zero: nobody waited for it.
    pub received: u64,
    /// The second engine stored it.
    pub is_of_second: bool,
    pub duties: BTreeMap<DestinationId, Duty>,
}

/// A delivery.
#[derive(Debug)]
pub struct Duty {
    pub lane: Lane,
    pub round: Round,
    /// As stored.
    pub state: DeliveryState,
    /// As stored, and as said since.
    pub attempts: u32,
    /// Nothing later in its lane needs to wait for it.
    pub is_finished: bool,
    /// It is quarantined and its lane waits for an operator.
    pub is_holding: bool,
    /// The engine knows that nothing is to be sent in this round.
    pub is_over: bool,
    /// An operator changed it in the store, and the engine does not know it yet.
    pub is_changing: bool,
    /// It was sent while it was changing: nobody outside knows as which round.
    pub is_unclear: bool,
    /// The store lost what became of it, and the owner may find it pending again or not.
    pub was_reverted: bool,
    pub in_hand: Option<(RunId, Round)>,
    /// It stands apart and waited for a time: others may have come before it since.
    pub was_put_off: bool,
    /// How often it reached the receiver.
    pub arrived: u32,
    /// The rounds in which it did, where it may not twice.
    pub arrived_in: BTreeSet<u32>,
    /// It was recorded in this round before it was to be sent.
    pub was_recorded: bool,
    /// What was ever said of it.
    pub said: Said,
    /// When it may be tried again, by the monotonic clock.
    pub not_before: Duration,
    /// Routed messages stored for it, by round.
    pub routed: BTreeMap<Round, u32>,
}

/// What reports said of a delivery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    pub sent: bool,
    pub filtered: bool,
    pub quarantined: bool,
    pub again: bool,
}

/// A destination.
#[derive(Debug)]
pub struct Ledger {
    pub settings: DestinationSettings,
    pub is_stopped: bool,
    /// An operator paused it, and the engine knows.
    pub is_paused: bool,
    pub runaways: u32,
    pub meter: Meter,
    /// Runs in hand.
    pub runs: u32,
    /// Deliveries in hand.
    pub in_hand: u32,
    /// Results that are not flushed.
    pub accepted: u32,
    /// Of these, written.
    pub written: u32,
}

impl Duty {
    pub fn new(lane: Lane, state: DeliveryState) -> Self {
        Duty {
            lane,
            round: Round(0),
            state,
            attempts: 0,
            is_finished: state.is_final(),
            is_holding: false,
            is_over: state.is_final(),
            is_changing: false,
            is_unclear: false,
            was_reverted: false,
            in_hand: None,
            was_put_off: false,
            arrived: 0,
            arrived_in: BTreeSet::new(),
            was_recorded: false,
            said: Said::default(),
            not_before: Duration::ZERO,
            routed: BTreeMap::new(),
        }
    }
}

impl Duty {
    /// Nobody outside knows what the engine believes of it.
    pub fn is_uncertain(&self) -> bool {
        self.is_changing || self.is_unclear || self.was_reverted
    }
}

impl Ledger {
    pub fn new(settings: DestinationSettings) -> Self {
        Ledger {
            settings,
            is_stopped: false,
            is_paused: false,
            runaways: 0,
            meter: Meter::default(),
            runs: 0,
            in_hand: 0,
            accepted: 0,
            written: 0,
        }
    }

    /// Runs may begin.
    pub fn may_run(&self) -> bool {
        !self.is_stopped && !self.is_paused
    }

    /// A message may not arrive there twice.
    pub fn is_once(&self) -> bool {
        self.settings.guarantee == Guarantee::AtMostOnce
    }

    /// It may drop what is beyond its rate.
    pub fn drops(&self) -> bool {
        self.settings.rate.is_some_and(|rate| rate.over == OverRate::Drop)
    }

    /// Its lanes wait for an operator after a quarantine.
    pub fn holds(&self) -> bool {
        self.settings.on_quarantine == OnQuarantine::Hold
    }
}
