//! The instances of one plugin under one set of grants and limits.
//!
//! A call takes an instance out and gives it back sound; a call that faults or is cancelled
//! drops it. Calls side by side get instances of their own up to a limit, and wait beyond it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant as Moment, timeout_at};

use crate::fault::CallError;
use crate::instance::{Instance, Use};
use crate::opening::{CallLimits, Grants, Isolation};
use crate::plugin::PluginInner;
use crate::reach::Reach;
use crate::seats::Seats;

/// Instances that calls take and give back.
pub(crate) struct Pool {
    pub plugin: Arc<PluginInner>,
    pub grants: Grants,
    pub limits: CallLimits,
    pub reach: Arc<Reach>,
    /// Where a stream source's connections sit; empty for other kinds.
    pub seats: Seats,
    idle: Mutex<Vec<Instance>>,
    places: Arc<Semaphore>,
}

/// An instance that is one call's alone.
pub(crate) struct Lease {
    pub instance: Instance,
    pool: Arc<Pool>,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    pub fn new(plugin: Arc<PluginInner>, grants: Grants, limits: CallLimits, reach: Reach) -> Pool {
        let places = Arc::new(Semaphore::new(plugin.runtime.settings.instances_per_pool_max.max(1)));
        Pool {
            plugin,
            grants,
            limits,
            reach: Arc::new(reach),
            seats: Seats::default(),
            idle: Mutex::default(),
            places,
        }
    }

    /// An instance for a use: one that has it open, else any, else a new one.
    pub async fn lease(self: &Arc<Self>, user: &Use, deadline: Moment) -> Result<Lease, CallError> {
        let place = match self.places.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) => timeout_at(deadline, self.places.clone().acquire_owned())
                .await
                .ok()
                .and_then(Result::ok)
                .ok_or(CallError::Busy)?,
        };
        let idle = match user.opening.isolation {
            Isolation::Shared => self.take_idle(user.id),
            Isolation::Call => None,
        };
        let instance = match idle {
            Some(instance) => instance,
            None => self.fresh(user, deadline).await?,
        };
        Ok(Lease { instance, pool: self.clone(), _place: place })
    }

    /// A new instance, once the runtime has a place for it.
    pub async fn fresh(&self, user: &Use, deadline: Moment) -> Result<Instance, CallError> {
        let place = self.plugin.runtime.place(deadline).await.ok_or(CallError::Busy)?;
        let observer = &user.opening.observer;
        Instance::new(&self.plugin, &self.reach, self.limits, observer, place, deadline)
            .await
            .map_err(CallError::Fault)
    }

    fn take_idle(&self, id: u64) -> Option<Instance> {
        let mut idle = self.lock();
        // The last one given back is the warmest.
        let taken = match idle.iter().rposition(|instance| instance.has_open(id)) {
            Some(at) => Some(idle.swap_remove(at)),
            None => idle.pop(),
        };
        if taken.is_some() {
            self.plugin.runtime.idle.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }

    /// Drops what has been idle for so long; returns how many.
    pub fn release_idle(&self, idle_for: Duration, now: Duration) -> usize {
        let mut idle = self.lock();
        let before = idle.len();
        let released: Vec<_> =
            idle.extract_if(.., |instance| now.saturating_sub(instance.idle_since) >= idle_for).collect();
        let left = idle.len();
        drop(idle);
        self.plugin.runtime.idle.fetch_sub(before - left, Ordering::Relaxed);
        // Outside the lock: giving memory back to the system takes its time.
        drop(released);
        before - left + self.seats.release_idle(idle_for, now)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Instance>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let idle = std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.plugin.runtime.idle.fetch_sub(idle.len(), Ordering::Relaxed);
    }
}

impl Lease {
    /// Gives the instance back after a call that ended well.
    pub fn give_back(mut self, isolation: Isolation) {
        self.instance.store.data_mut().things.clear();
        if isolation == Isolation::Call || self.instance.is_worn() {
            return;
        }
        let runtime = &self.pool.plugin.runtime;
        if runtime.idle.load(Ordering::Relaxed) >= runtime.settings.instances_idle_max {
            return;
        }
        self.instance.idle_since = runtime.settings.clock.monotonic();
        runtime.idle.fetch_add(1, Ordering::Relaxed);
        self.pool.lock().push(self.instance);
    }
}
