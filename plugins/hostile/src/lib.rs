//! Guests that misbehave on purpose. Never shipped; `cargo xtask plugins --test` builds them.
//!
//! Here is what all kinds can do wrong, chosen by the setting `deed`; what only one kind can
//! do wrong is in `examples/`, one component a kind. The setting `on` names the text in a
//! message that provokes it, so that a test can put a good message beside a bad one; without
//! it every message does.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use portway_sdk::blobs::BlobWriter;
use portway_sdk::{Failure, log, text};
use serde::Deserialize;

/// What provokes which misbehaviour.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub deed: Deed,
    /// Empty: every message.
    #[serde(default)]
    pub on: String,
}

/// A misbehaviour. What a kind cannot do it leaves undone: it then behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Behaves.
    None,
    // Of all kinds.
    EndlessLoop,
    EndlessServiceCalls,
    MemoryBomb,
    Trap,
    StackOverflow,
    LogFlood,
    /// Has the host make more handles than a message needs, and drops them.
    HoardHandles,
    // In `open`.
    OpenFails,
    OpenTraps,
    OpenLoops,
    // Of transforms and senders.
    TooFewVerdicts,
    TooManyVerdicts,
    HugeVerdict,
    UnknownIndex,
    IndexGoingBack,
    /// Does not call `progress.begin`, and traps on the message.
    SilentTrap,
    // Of transforms.
    PortwayAttribute,
    HugeBody,
    SeveralOutputs,
    /// Says what time it is and what chance brings, which a pure plugin should not be able to know.
    TellTime,
    /// Asks the URL that is the message; the answer is the output.
    Ask,
    /// Asks the slot `api` three times at once, with the message as the body.
    AskAll,
    // Of senders.
    SentAfterUntried,
    /// Says that the message arrived, then traps.
    TrapAfterSent,
    /// Waits for the peer of slot `peer` until the host has enough.
    EndlessWait,
    // Of stream sources.
    SpanBeforeKept,
    SpanBehindInput,
    KeepFromGoingBack,
    KeepFromAhead,
    UndeclaredControl,
    HugeTicket,
    HugeReply,
    SettleTraps,
    SettleLoops,
    AcceptTraps,
    FinishTraps,
}

impl Settings {
    /// What a message provokes.
    pub fn deed_for(&self, body: &[u8]) -> Deed {
        let marker = self.on.as_bytes();
        let provoked = marker.is_empty() || body.windows(marker.len()).any(|part| part == marker);
        if provoked { self.deed } else { Deed::None }
    }

    /// What goes wrong when the plugin is opened.
    pub fn open(&self) -> Result<(), Failure> {
        match self.deed {
            Deed::OpenFails => Err(Failure::new("no", "these settings are not to my taste")),
            Deed::OpenTraps => trap(),
            Deed::OpenLoops => endless_loop(),
            _ => Ok(()),
        }
    }
}

/// Does what every kind can do; anything else is left to the kind.
pub fn act(deed: Deed) {
    match deed {
        Deed::EndlessLoop => endless_loop(),
        Deed::EndlessServiceCalls => endless_service_calls(),
        Deed::MemoryBomb => memory_bomb(),
        Deed::Trap => trap(),
        Deed::StackOverflow => log::info(dig(0)),
        Deed::LogFlood => log_flood(),
        Deed::HoardHandles => (0..7_000).for_each(|_| drop(BlobWriter::new())),
        _ => {}
    }
}

/// The wall clock, the monotonic clock, random bytes and the seed of hash maps, as text.
pub fn tell_time() -> String {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_millis());
    let started = Instant::now();
    let passed = started.elapsed().as_nanos();
    let mut chance = [0; 8];
    let drawn = getrandom::fill(&mut chance).is_ok();
    let hash = RandomState::new().hash_one("portway");
    format!("wall {wall:?} passed {passed} drawn {drawn} {chance:?} hash {hash}")
}

/// Never returns, and calls nobody.
pub fn endless_loop() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Never returns, and spends its time in the host.
fn endless_service_calls() -> ! {
    loop {
        black_box(text::decode(black_box(b"\xE9"), "8859/1").is_ok());
    }
}

/// Takes memory until there is none.
fn memory_bomb() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Ends the way a panic ends.
pub fn trap() -> ! {
    panic!("this message is poison to me");
}

/// Calls itself until the stack is used up.
#[expect(unconditional_recursion, reason = "that is what it is for")]
fn dig(depth: u64) -> u64 {
    black_box(dig(black_box(depth + 1))) + 1
}

/// Says far too much in all three ways, with bytes that would disturb a terminal.
fn log_flood() {
    let line = "\x1B[2J blah \r\n".repeat(1000);
    for number in 0..2000 {
        log::warn(format!("{number} {line}"));
        log::notice(&format!("flood-{number}"), &line);
        println!("{number} {line}");
        eprintln!("{number} {line}");
    }
}
