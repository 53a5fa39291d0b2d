//! The threads of a running engine.
//!
//! The machines have one of their own. The threads that own the sockets of sources run the sources'
//! plugins; transforms and senders have others. So no mapping delays an acknowledgement, and neither
//! delays the engine: the system shares the processors out between them. The local API stays on the
//! threads that started all this.

use std::io;
use std::panic;
use std::sync::Arc;
use std::thread::available_parallelism;

use async_trait::async_trait;
use portway_engine::ports::{Deliver, Run, RunReport};
use portway_net::listen::{ListenError, ListenSettings, Listener};
use tokio::runtime::{Builder, Handle, Runtime};

use super::deliver::Delivery;
use super::passed::PassedSockets;

/// See the file. They end when this is dropped; what still runs on them is not waited for.
pub struct Threads {
    engine: Background,
    sources: Background,
    polls: Background,
    responders: Background,
    deliveries: Background,
    sockets: PassedSockets,
}

/// A runtime that can be let go of from a task.
pub struct Background {
    pub handle: Handle,
    /// None while it is dropped.
    runtime: Option<Runtime>,
}

/// A delivery on its own threads.
struct Apart {
    delivery: Arc<Delivery>,
    threads: Handle,
}

impl Threads {
    /// One for the engine, one for sources that poll, half as many for other sources as there are
    /// processors, and as many for deliveries and for components that respond.
    pub fn start(sockets: PassedSockets) -> io::Result<Threads> {
        let processors = available_parallelism().map_or(1, usize::from);
        Ok(Threads {
            engine: Background::start("engine", 1)?,
            sources: Background::start("source", processors.div_ceil(2))?,
            polls: Background::start("poll", 1)?,
            responders: Background::start("respond", processors)?,
            deliveries: Background::start("delivery", processors)?,
            sockets,
        })
    }

    /// Where the engine runs.
    pub fn engine(&self) -> &Handle {
        &self.engine.handle
    }

    /// Where sources run.
    pub fn sources(&self) -> &Handle {
        &self.sources.handle
    }

    /// Where sources run that look for messages by themselves: a file of a million records must not
    /// keep a peer waiting for its answer.
    pub fn polls(&self) -> &Handle {
        &self.polls.handle
    }

    /// Where components run that answer requests themselves: what they compute must not keep the
    /// peer of a source waiting.
    pub fn responders(&self) -> &Handle {
        &self.responders.handle
    }

    /// Listens there, on the socket that was passed for the address, if one was. The sockets of a
    /// source belong to its threads from the first.
    pub fn listen(&self, settings: ListenSettings, threads: &Handle) -> Result<Listener, ListenError> {
        let _on = threads.enter();
        match self.sockets.take(settings.address) {
            Some(socket) => Listener::bind_to(socket, settings),
            None => Listener::bind(settings),
        }
    }

    /// What is left of the sockets that were passed.
    pub fn sockets(&self) -> &PassedSockets {
        &self.sockets
    }

    /// The same delivery, on its threads.
    pub fn deliver(&self, delivery: Delivery) -> Arc<dyn Deliver> {
        Arc::new(Apart { delivery: Arc::new(delivery), threads: self.deliveries.handle.clone() })
    }
}

impl Background {
    pub fn start(name: &str, threads: usize) -> io::Result<Background> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).thread_name(name).enable_all().build()?;
        Ok(Background { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[async_trait]
impl Deliver for Apart {
    async fn deliver(&self, run: Run) -> RunReport {
        let delivery = self.delivery.clone();
        match self.threads.spawn(async move { delivery.deliver(run).await }).await {
            Ok(report) => report,
            // The engine makes a report of it.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => panic::resume_unwind(panic),
                // The threads are gone, and with them the engine that asked.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
