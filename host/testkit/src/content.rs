//! Messages of the simulation: each body names itself and tells how receivers take it.

use bytes::Bytes;
use portway_model::{Attributes, DestinationId, Draft, Failure, Key};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

/// What a body is known by; unique in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content(pub u64);

impl Content {
    /// Of the message that a destination's route made of it.
    pub fn routed_by(self, from: DestinationId) -> Content {
        Content(self.0 | u64::from(from.0) << 32)
    }
}

/// How a message is taken, decided by its body alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// Fails so many times, then arrives.
    Flaky(u32),
    /// Fails every time while faults last.
    Stubborn,
    Filtered,
    Refused,
    /// Traps the plugin; in a run with others nobody knows which it was.
    Trap,
    /// Uses up the plugin's fuel while faults last.
    Runaway,
    /// Ends the process.
    Killer,
    /// The source has doubts.
    Doubtful,
    /// The store does not take it.
    Unstorable,
}

const ODD: &[Kind] = &[
    Kind::Flaky(1),
    Kind::Flaky(3),
    Kind::Stubborn,
    Kind::Filtered,
    Kind::Refused,
    Kind::Trap,
    Kind::Runaway,
    Kind::Doubtful,
    Kind::Unstorable,
];

impl Kind {
    fn number(self) -> u8 {
        match self {
            Kind::Plain => 0,
            Kind::Flaky(times) => 100 + u8::try_from(times).unwrap_or(3),
            Kind::Stubborn => 2,
            Kind::Filtered => 3,
            Kind::Refused => 4,
            Kind::Trap => 5,
            Kind::Runaway => 6,
            Kind::Killer => 7,
            Kind::Doubtful => 8,
            Kind::Unstorable => 9,
        }
    }

    fn from_number(number: u8) -> Kind {
        match number {
            100.. => Kind::Flaky(u32::from(number - 100)),
            2 => Kind::Stubborn,
            3 => Kind::Filtered,
            4 => Kind::Refused,
            5 => Kind::Trap,
            6 => Kind::Runaway,
            7 => Kind::Killer,
            8 => Kind::Doubtful,
            9 => Kind::Unstorable,
            _ => Kind::Plain,
        }
    }
}

/// Picks a kind: plain but for `odd`, and seldom a killer.
pub fn pick_kind(odd: f64, rng: &mut impl Rng) -> Kind {
    if !rng.random_bool(odd) {
        return Kind::Plain;
    }
    if rng.random_bool(0.03) {
        return Kind::Killer;
    }
    *ODD.choose(rng).unwrap_or(&Kind::Plain)
}

/// A body of at least 9 bytes.
pub fn body(content: Content, kind: Kind, bytes: usize) -> Bytes {
    let mut body = Vec::with_capacity(bytes);
    body.extend_from_slice(&content.0.to_le_bytes());
    body.push(kind.number());
    body.resize(bytes.max(9), b'.');
    body.into()
}

/// What a body says of itself.
pub fn read(body: &Bytes) -> Option<(Content, Kind)> {
    let (number, rest) = body.split_first_chunk::<8>()?;
    Some((Content(u64::from_le_bytes(*number)), Kind::from_number(*rest.first()?)))
}

/// A draft with a key of a few, so that lanes fill.
pub fn draft(content: Content, kind: Kind, dedupe: Option<Key>, rng: &mut impl Rng) -> Draft {
    let bytes = match rng.random_range(0..20) {
        0 => rng.random_range(1_000..8_000),
        1..5 => rng.random_range(200..1_000),
        _ => rng.random_range(9..100),
    };
    let key = if rng.random_bool(0.1) { None } else { Key::new(&format!("key-{}", rng.random_range(0..6))) };
    let doubt = (kind == Kind::Doubtful).then(|| Failure::new("doubt", "the source is not sure"));
    Draft {
        body: body(content, kind, bytes),
        key,
        dedupe,
        occurred_at: None,
        attributes: Attributes::default(),
        doubt,
    }
}
