//! Time and chance as a guest sees them.
//!
//! In a pure plugin both are part of the call: the wall clock stands at the time of the
//! attempt, the monotonic clock goes a fixed step a read, random numbers come from the message
//! and the plugin. So a call can be done again and gives the same. Other plugins talk to the
//! world and get the world's.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portway_model::Timestamp;
use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::ChaCha12Rng;
use sha2::{Digest, Sha256};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

use crate::settings::RuntimeClock;

/// A read of the monotonic clock takes so long.
const STEP_NS: u64 = 1_000;

/// Whether a call can be done again exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purity {
    Pure,
    Worldly,
}

/// The clocks of one instance.
#[derive(Clone)]
pub(crate) struct GuestClock {
    inner: Arc<ClockInner>,
}

struct ClockInner {
    purity: Purity,
    wall_ms: AtomicU64,
    reads: AtomicU64,
    world: Arc<dyn RuntimeClock>,
}

/// The random numbers of one instance.
#[derive(Clone)]
pub(crate) struct GuestRandom {
    inner: Arc<RandomInner>,
}

struct RandomInner {
    purity: Purity,
    digest: [u8; 32],
    message: AtomicU64,
    /// Made with the first number that is asked for: most messages need none.
    source: Mutex<Option<ChaCha12Rng>>,
}

impl GuestClock {
    pub fn new(purity: Purity, world: Arc<dyn RuntimeClock>) -> GuestClock {
        let inner = ClockInner { purity, wall_ms: AtomicU64::new(0), reads: AtomicU64::new(0), world };
        GuestClock { inner: Arc::new(inner) }
    }

    /// A call begins; this is the time of the attempt.
    pub fn set(&self, now: Timestamp) {
        self.inner.wall_ms.store(now.0, Ordering::Relaxed);
        self.rewind();
    }

    /// A message begins.
    pub fn rewind(&self) {
        self.inner.reads.store(0, Ordering::Relaxed);
    }
}

impl HostWallClock for GuestClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(match self.inner.purity {
            Purity::Pure => self.inner.wall_ms.load(Ordering::Relaxed),
            Purity::Worldly => self.inner.world.now().0,
        })
    }
}

impl HostMonotonicClock for GuestClock {
    fn resolution(&self) -> u64 {
        STEP_NS
    }

    fn now(&self) -> u64 {
        match self.inner.purity {
            Purity::Pure => self.inner.reads.fetch_add(1, Ordering::Relaxed).saturating_mul(STEP_NS),
            Purity::Worldly => u64::try_from(self.inner.world.monotonic().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl GuestRandom {
    pub fn new(purity: Purity, digest: [u8; 32]) -> GuestRandom {
        let inner = RandomInner { purity, digest, message: AtomicU64::new(0), source: Mutex::new(None) };
        GuestRandom { inner: Arc::new(inner) }
    }

    /// A message begins.
    pub fn reseed(&self, message: u64) {
        self.inner.message.store(message, Ordering::Relaxed);
        if self.inner.purity == Purity::Pure {
            *self.inner.source.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// The same in every instance of a plugin, whichever message comes first: the order of a
    /// guest's hash maps hangs on it.
    pub fn seed_of_plugin(&self) -> u128 {
        self.inner.digest.first_chunk().map_or(0, |first| u128::from_le_bytes(*first))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut ChaCha12Rng) -> T) -> T {
        let mut source = self.inner.source.lock().unwrap_or_else(PoisonError::into_inner);
        draw(source.get_or_insert_with(|| match self.inner.purity {
            Purity::Worldly => ChaCha12Rng::from_seed(rand::random()),
            Purity::Pure => {
                let message = self.inner.message.load(Ordering::Relaxed);
                let seed = Sha256::new().chain_update(self.inner.digest).chain_update(message.to_le_bytes());
                ChaCha12Rng::from_seed(seed.finalize().into())
            }
        }))
    }
}

impl TryRng for GuestRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.with(Rng::next_u32))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.with(Rng::next_u64))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.with(|source| source.fill_bytes(bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SystemClock;

    fn draw(random: &mut GuestRandom) -> [u64; 3] {
        std::array::from_fn(|_| random.next_u64())
    }

    #[test]
    fn chance_of_a_pure_plugin_comes_from_message_and_plugin() {
        let mut random = GuestRandom::new(Purity::Pure, [7; 32]);
        random.reseed(1);
        let first = draw(&mut random);
        assert_ne!(draw(&mut random), first);
        random.reseed(2);
        let second = draw(&mut random);
        random.reseed(1);
        assert_eq!(draw(&mut random), first, "whatever came between");
        assert_ne!(second, first);
        let mut other = GuestRandom::new(Purity::Pure, [8; 32]);
        other.reseed(1);
        assert_ne!(draw(&mut other), first);
        assert_eq!(random.seed_of_plugin(), GuestRandom::new(Purity::Pure, [7; 32]).seed_of_plugin());
        let mut worldly = GuestRandom::new(Purity::Worldly, [7; 32]);
        worldly.reseed(1);
        assert_ne!(draw(&mut worldly), first);
    }

    #[test]
    fn time_of_a_pure_plugin_is_the_attempts() {
        let clock = GuestClock::new(Purity::Pure, Arc::new(SystemClock::default()));
        clock.set(Timestamp(1_234));
        assert_eq!(HostWallClock::now(&clock), Duration::from_millis(1_234));
        let reads = || [0; 3].map(|_| HostMonotonicClock::now(&clock));
        assert_eq!(reads(), [0, 1_000, 2_000]);
        clock.rewind();
        assert_eq!(reads(), [0, 1_000, 2_000]);
        assert_eq!(HostWallClock::now(&clock), Duration::from_millis(1_234));
        let worldly = GuestClock::new(Purity::Worldly, Arc::new(SystemClock::default()));
        worldly.set(Timestamp(1_234));
        assert!(HostWallClock::now(&worldly) > Duration::from_secs(1_000_000_000));
    }
}
