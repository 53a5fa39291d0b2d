//! The session that has the engine's lock, and with it whatever the engine owns.
//!
//! It is opened with the first claim and does nothing but claim and hold. Once a second it is asked whether it
//! is still there: when it is not, so is the lock, and the engine is told. A tenure never goes on with another
//! session; the next claim begins a new one.

use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use portway_model::{Epoch, GroupId, Timestamp};
use portway_store::{Claimed, ErrorKind, StoreError};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::connect::take_name;
use crate::error::{Failed, closed};
use crate::news;
use crate::owner::{self, Claim};
use crate::process::Process;
use crate::query::Session;
use crate::writer::Shared;

/// Between two looks whether the session is there; and how long it may take to answer. Together they stay
/// below [`portway_store::News::LOST_WITHIN`].
const LOOK: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// The server gives up a little earlier. What a claim waits for is over soon, or the claim is made again.
const LIMITS: &str = "SET statement_timeout = '2500ms'; SET lock_timeout = '2s'";
/// A session that waits is ended when its client is gone. Not every server's system can tell.
const NOTICE: &str = "SET client_connection_check_interval = '1s'";

/// What this engine owns, by its session.
pub(crate) struct Tenures {
    inner: Arc<Inner>,
    /// What runs beside it, until this is dropped.
    beside: SyncMutex<JoinSet<()>>,
}

struct Inner {
    shared: Arc<Shared>,
    engine: String,
    takeover_max: Duration,
    process: Option<Process>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// None: it was not opened, is being used, or is gone.
    session: Option<Session>,
    /// The process in the server that served the last session.
    pid: Option<i32>,
    /// In which the engine owns what it owns; none: nothing.
    epoch: Option<Epoch>,
    /// The last one that ended with the lock.
    survived: Option<Epoch>,
    is_closed: bool,
}

impl Tenures {
    pub(crate) fn new(shared: Arc<Shared>, engine: &str, takeover_max: Duration) -> Self {
        let process = Process::own();
        let inner =
            Inner { shared, engine: engine.to_owned(), takeover_max, process, held: Mutex::default() };
        Tenures { inner: Arc::new(inner), beside: SyncMutex::default() }
    }

    pub(crate) fn engine(&self) -> &str {
        &self.inner.engine
    }

    pub(crate) async fn claim(&self, groups: &[GroupId], now: Timestamp) -> Result<Claimed, StoreError> {
        let mut held = self.inner.held.lock().await;
        if held.is_closed {
            return Err(closed());
        }
        if held.session.is_none() && held.epoch.is_some() {
            // Whatever the engine believes to own it is to claim anew, not these groups alone.
            self.inner.lose(&mut held);
            return Err(StoreError::new(ErrorKind::Unavailable, "the lock of this engine is gone"));
        }
        let is_idle = held.session.is_some() && held.epoch.is_none();
        match self.claim_once(&mut held, groups, now).await {
            // An old session that owned nothing yet broke; a new one knows.
            Err(failed) if is_idle && failed.breaks_connection() => {
                Ok(self.claim_once(&mut held, groups, now).await?)
            }
            claimed => Ok(claimed?),
        }
    }

    async fn claim_once(
        &self,
        held: &mut Held,
        groups: &[GroupId],
        now: Timestamp,
    ) -> Result<Claimed, Failed> {
        let Inner { shared, engine, process, .. } = &*self.inner;
        let mut session = match held.session.take() {
            Some(session) => session,
            None => self.connect(held, now).await?,
        };
        let groups = groups.iter().copied().collect();
        let (epoch, survived) = (held.epoch, held.survived);
        let claim = Claim { engine, groups, now, epoch, survived, process: process.as_ref() };
        let claimed = owner::claim(&mut session, &claim).await;
        if claimed.is_err() {
            session.roll_back().await;
        }
        if session.is_broken {
            self.inner.lose(held);
        } else {
            held.session = Some(session);
        }
        let (claimed, counts) = claimed?;
        if let Claimed::Owned(tenure) = &claimed {
            held.epoch = Some(tenure.epoch);
            shared.told.own(tenure.epoch, &counts);
        }
        Ok(claimed)
    }

    /// A session that has the engine's lock, with what runs beside it.
    async fn connect(&self, held: &mut Held, now: Timestamp) -> Result<Session, Failed> {
        let Inner { shared, engine, takeover_max, .. } = &*self.inner;
        let what = "open the session that owns groups";
        let mut session = shared.connector.connect().await?;
        let noticed = session.script(what, NOTICE).await;
        if session.is_broken {
            noticed?;
        }
        let name = format!("owner {engine}");
        held.pid = Some(take_name(&mut session, &name, held.pid, *takeover_max).await?);
        session.script(what, LIMITS).await?;
        session.answer_max = ANSWER_MAX;
        let channel = owner::appear(&mut session, engine, now).await?;
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        if beside.is_empty() {
            beside.spawn(watch(Arc::clone(&self.inner)));
            beside.spawn(news::listen(Arc::clone(shared), engine.clone(), channel));
        }
        Ok(session)
    }

    /// Gives back what the engine owns, and lets go of the lock.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let mut held = self.inner.held.lock().await;
        held.is_closed = true;
        self.beside.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        let (session, epoch) = (held.session.take(), held.epoch.take());
        self.inner.shared.told.release();
        let Some(mut session) = session else { return Ok(()) };
        let mut released = match epoch {
            Some(epoch) => owner::release(&mut session, &self.inner.engine, epoch).await,
            None => Ok(()),
        };
        if let (Some(epoch), Err(failed)) = (epoch, &released)
            && failed.breaks_connection()
        {
            // The lock went with the session, unnoticed until now. What nobody took since can be given back.
            session = self.inner.shared.connector.connect().await?;
            released = owner::release(&mut session, &self.inner.engine, epoch).await;
        }
        session.close().await;
        Ok(released?)
    }
}

impl Inner {
    /// The session is gone, and with it what the engine owned.
    fn lose(&self, held: &mut Held) {
        if let Some(epoch) = held.epoch.take() {
            held.survived = Some(epoch);
            tracing::warn!("the lock of this engine is gone");
            self.shared.told.lose();
        }
    }

    /// Asks the session whether it is there. A claim that was given up took it along.
    async fn look(&self) {
        let mut held = self.held.lock().await;
        let Some(mut session) = held.session.take() else { return self.lose(&mut held) };
        match self.shared.connector.verify(&mut session).await {
            Ok(()) => held.session = Some(session),
            Err(failed) => {
                tracing::warn!(error = %failed.told(), "the session that owns groups is gone");
                self.lose(&mut held);
            }
        }
    }
}

async fn watch(inner: Arc<Inner>) {
    loop {
        sleep(LOOK).await;
        inner.look().await;
    }
}
