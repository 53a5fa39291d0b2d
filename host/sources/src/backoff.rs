//! Slowing addresses whose bytes made a source fail.
//!
//! Each fault doubles the wait before a connection from there is read again. It slows, it
//! never shuts out: no peer can stop an interface, also not by borrowing a neighbour's address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The wait after the first fault.
const FIRST: Duration = Duration::from_millis(250);
/// The wait after many.
const LONGEST: Duration = Duration::from_secs(30);
/// An address without a fault for so long starts anew.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Addresses that are remembered; beyond it the one whose fault is oldest is forgotten.
const ADDRESSES_MAX: usize = 1_024;
/// Connections of one address that may wait; more are closed.
const WAITING_MAX: u32 = 4;

/// Addresses with faults.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    addresses: HashMap<IpAddr, Slowed>,
}

#[derive(Debug)]
struct Slowed {
    faults: u32,
    last: Instant,
    waiting: u32,
}

/// What came of waiting for the turn of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Come,
    /// Too many of its address wait already.
    Refused,
    /// The driver stops.
    Stopped,
}

/// An address whose bytes made a source fail waits before it is read again.
pub(crate) async fn wait_turn(
    backoff: &Mutex<Backoff>,
    address: IpAddr,
    stop: &mut watch::Receiver<bool>,
) -> Turn {
    let welcome = lock(backoff).welcome(address, Instant::now());
    match welcome {
        Welcome::Now => Turn::Come,
        Welcome::Closed => Turn::Refused,
        Welcome::After(wait) => {
            let turn = tokio::select! {
                () = sleep(wait) => Turn::Come,
                _ = stop.wait_for(|stop| *stop) => Turn::Stopped,
            };
            lock(backoff).waited(address);
            turn
        }
    }
}

fn lock(backoff: &Mutex<Backoff>) -> MutexGuard<'_, Backoff> {
    backoff.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to do with a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Welcome {
    Now,
    /// Then; `Backoff::waited` must be called once the wait is over.
    After(Duration),
    /// Too many wait already.
    Closed,
}

impl Backoff {
    /// Remembers a fault.
    pub(crate) fn fault(&mut self, address: IpAddr, now: Instant) {
        let address = network_of(address);
        if !self.addresses.contains_key(&address) && self.addresses.len() >= ADDRESSES_MAX {
            self.forget_one(now);
        }
        let slowed = self.addresses.entry(address).or_insert(Slowed { faults: 0, last: now, waiting: 0 });
        if now.duration_since(slowed.last) > FORGET_AFTER {
            slowed.faults = 0;
        }
        slowed.faults = slowed.faults.saturating_add(1);
        slowed.last = now;
    }

    fn welcome(&mut self, address: IpAddr, now: Instant) -> Welcome {
        let Some(slowed) = self.addresses.get_mut(&network_of(address)) else { return Welcome::Now };
        let doublings = slowed.faults.saturating_sub(1).min(16);
        let wait = FIRST.saturating_mul(1 << doublings).min(LONGEST);
        let left = wait.saturating_sub(now.duration_since(slowed.last));
        if left.is_zero() {
            return Welcome::Now;
        }
        if slowed.waiting >= WAITING_MAX {
            return Welcome::Closed;
        }
        slowed.waiting += 1;
        Welcome::After(left)
    }

    fn waited(&mut self, address: IpAddr) {
        if let Some(slowed) = self.addresses.get_mut(&network_of(address)) {
            slowed.waiting = slowed.waiting.saturating_sub(1);
        }
    }

    /// Addresses that are slowed now.
    pub(crate) fn slowed(&self, now: Instant) -> usize {
        self.addresses.values().filter(|slowed| now.duration_since(slowed.last) <= FORGET_AFTER).count()
    }

    fn forget_one(&mut self, now: Instant) {
        self.addresses.retain(|_, slowed| now.duration_since(slowed.last) <= FORGET_AFTER);
        if self.addresses.len() >= ADDRESSES_MAX {
            let oldest =
                self.addresses.iter().min_by_key(|(_, slowed)| slowed.last).map(|(address, _)| *address);
            oldest.and_then(|address| self.addresses.remove(&address));
        }
    }
}

/// An IPv6 peer has a whole network of addresses to itself.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn each_fault_doubles_the_wait_up_to_the_longest() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        assert_eq!(backoff.welcome(address(1), now), Welcome::Now);
        for expected in [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            backoff.fault(address(1), now);
            assert_eq!(backoff.welcome(address(1), now), Welcome::After(Duration::from_millis(expected)));
            backoff.waited(address(1));
        }
        assert_eq!(backoff.welcome(address(2), now), Welcome::Now);
        assert_eq!(backoff.welcome(address(1), now + LONGEST), Welcome::Now);
    }

    #[test]
    fn an_address_that_behaves_starts_anew() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        (0..5).for_each(|_| backoff.fault(address(1), now));
        let later = now + FORGET_AFTER + FIRST;
        backoff.fault(address(1), later);
        assert_eq!(backoff.welcome(address(1), later), Welcome::After(FIRST));
    }

    #[test]
    fn only_some_wait_the_others_are_closed() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        backoff.fault(address(1), now);
        for _ in 0..WAITING_MAX {
            assert_eq!(backoff.welcome(address(1), now), Welcome::After(FIRST));
        }
        assert_eq!(backoff.welcome(address(1), now), Welcome::Closed);
        backoff.waited(address(1));
        assert_eq!(backoff.welcome(address(1), now), Welcome::After(FIRST));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        for number in 0..2 * ADDRESSES_MAX as u32 {
            backoff.fault(IpAddr::from(number.to_be_bytes()), now + Duration::from_millis(u64::from(number)));
        }
        assert_eq!(backoff.addresses.len(), ADDRESSES_MAX);
        assert_eq!(backoff.welcome(IpAddr::from([0; 4]), now), Welcome::Now);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_are_one_peer() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        backoff.fault("2001:db8:1:2::3".parse().unwrap(), now);
        assert_ne!(backoff.welcome("2001:db8:1:2:4::".parse().unwrap(), now), Welcome::Now);
        assert_eq!(backoff.welcome("2001:db8:1:3::3".parse().unwrap(), now), Welcome::Now);
    }
}
