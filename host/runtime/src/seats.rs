//! Where the codecs of connections sit: instances that hold up to 256 connections each.
//!
//! A call holds its seat alone. When an instance is gone (a neighbour's fault, a cancelled
//! call, a recycle) the seat gets a fresh one of the next generation; a connection that sees a
//! generation that is not its own opens its codec anew and feeds what it kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant as Moment, timeout_at};
use wasmtime::component::ResourceAny;

use crate::fault::CallError;
use crate::instance::{Instance, Use};
use crate::opening::Isolation;
use crate::pool::Pool;

/// Connections on one instance.
const CONNECTIONS_MAX: usize = 256;

/// The seats of one pool.
#[derive(Default)]
pub(crate) struct Seats {
    list: Mutex<Vec<Arc<Seat>>>,
}

/// One instance and who sits on it.
#[derive(Default)]
pub(crate) struct Seat {
    state: Arc<tokio::sync::Mutex<SeatState>>,
    connections: AtomicUsize,
    /// Codecs of connections that are gone, dropped with the next call.
    left: Mutex<Vec<Codec>>,
}

#[derive(Default)]
struct SeatState {
    /// None: a call is under way, or was cut short.
    instance: Option<Instance>,
    generation: u64,
}

/// A connection's codec, and the generation of the instance it lives in.
#[derive(Clone, Copy)]
pub(crate) struct Codec {
    pub generation: u64,
    pub resource: ResourceAny,
}

/// A seat that is one call's alone. Dropped without [`Held::put_back`], its instance is gone.
pub(crate) struct Held {
    pub instance: Instance,
    pub generation: u64,
    guard: OwnedMutexGuard<SeatState>,
}

/// Counts a connection on a seat for as long as it lives.
pub(crate) struct Place {
    pub seat: Arc<Seat>,
}

impl Seats {
    /// A place for a connection: on the seat with the fewest, on a seat of its own while there
    /// are fewer seats than processors.
    pub fn place(&self, isolation: Isolation) -> Place {
        if isolation == Isolation::Call {
            return Seat::take(&Arc::default());
        }
        let mut list = self.lock();
        let emptiest = list.iter().min_by_key(|seat| seat.connections());
        let fits = |seat: &&Arc<Seat>| {
            seat.connections() == 0 || (list.len() >= processors() && seat.connections() < CONNECTIONS_MAX)
        };
        if let Some(seat) = emptiest.filter(fits) {
            return Seat::take(seat);
        }
        let seat = Arc::default();
        list.push(Arc::clone(&seat));
        Seat::take(&seat)
    }

    /// A seat for a call that any instance can do: one that is free and has the use open, else
    /// one that is free, else the first.
    pub fn any(&self, user: &Use) -> Arc<Seat> {
        if user.opening.isolation == Isolation::Call {
            return Arc::default();
        }
        let mut list = self.lock();
        let mut free = None;
        for seat in list.iter() {
            let Ok(state) = seat.state.try_lock() else { continue };
            if state.instance.as_ref().is_some_and(|instance| instance.has_open(user.id)) {
                return seat.clone();
            }
            free.get_or_insert(seat);
        }
        if let Some(seat) = free.or(list.first()) {
            return seat.clone();
        }
        let seat = Arc::default();
        list.push(Arc::clone(&seat));
        seat
    }

    /// Drops instances nobody sits on that have been idle for so long.
    pub fn release_idle(&self, idle_for: Duration, now: Duration) -> usize {
        let mut released = Vec::new();
        self.lock().retain(|seat| {
            if seat.connections() > 0 {
                return true;
            }
            let Ok(mut state) = seat.state.try_lock() else { return true };
            let rests = |instance: &mut Instance| now.saturating_sub(instance.idle_since) >= idle_for;
            released.extend(state.instance.take_if(rests));
            state.instance.is_some()
        });
        released.len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Seat>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn take(seat: &Arc<Seat>) -> Place {
        seat.connections.fetch_add(1, Ordering::Relaxed);
        Place { seat: seat.clone() }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The seat for one call, with an instance.
    pub async fn hold(&self, pool: &Arc<Pool>, user: &Use, deadline: Moment) -> Result<Held, CallError> {
        let guard = timeout_at(deadline, self.state.clone().lock_owned()).await;
        let mut guard = guard.map_err(|_| CallError::Busy)?;
        let instance = match guard.instance.take() {
            Some(instance) => instance,
            None => {
                guard.generation += 1;
                pool.fresh(user, deadline).await?
            }
        };
        let generation = guard.generation;
        let mut held = Held { instance, generation, guard };
        let left = std::mem::take(&mut *self.left());
        for codec in left.into_iter().filter(|codec| codec.generation == generation) {
            held.instance.drop_resource(codec.resource, deadline).await?;
        }
        Ok(held)
    }

    /// A codec nobody needs any more.
    pub fn leave(&self, codec: Codec) {
        self.left().push(codec);
    }

    fn left(&self) -> MutexGuard<'_, Vec<Codec>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// After a call that ended well. A worn instance goes: its connections feed a fresh one.
    pub fn put_back(mut self, now: Duration) {
        self.instance.store.data_mut().things.clear();
        if !self.instance.is_worn() {
            self.instance.idle_since = now;
            self.guard.instance = Some(self.instance);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.seat.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
