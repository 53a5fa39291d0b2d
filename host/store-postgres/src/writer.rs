//! The one session that writes, and what it knows of the store.
//!
//! What a batch becomes in the database is in `transaction`; here is what goes before it and what
//! follows, also when it fails. A session that was begun anew knows nothing of the one before.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portway_model::GroupId;
use portway_store::{
    Durability, ErrorKind, Numbers, Registered, StoreError, Topology, WriteBatch, WriteOutcome, mark,
};

use crate::connect::{Connector, become_writer};
use crate::day::Days;
use crate::error::{Failed, closed, damaged};
use crate::maintenance::Housekeeping;
use crate::news::Told;
use crate::partition::{self, Patience};
use crate::query::{Session, value};
use crate::readers::Readers;
use crate::transaction::{Stored, Turn, Writing, begin};
use crate::{destination, open, owner, register, schema, term};

/// Times a transaction is made again because of others.
pub(crate) const TRIES_MAX: u32 = 8;
/// Between two tries, times how many there were.
const PAUSE: Duration = Duration::from_millis(5);

/// What readers, housekeeping and the writer have in common.
pub(crate) struct Shared {
    pub(crate) connector: Connector,
    pub(crate) readers: Readers,
    pub(crate) days: Days,
    pub(crate) housekeeping: Housekeeping,
    pub(crate) told: Told,
    pub(crate) notes: Mutex<Vec<String>>,
    /// Held while this engine does something with old messages in a transaction, or when that is not to be.
    pub(crate) step: tokio::sync::Mutex<()>,
}

/// The writing side of a store.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    /// The name under which it writes.
    engine: String,
    /// How long to wait for a former session of that name.
    takeover_max: Duration,
    /// None: it is being used, was given up, or broke.
    session: Option<Session>,
    /// The process in the server that served the last session.
    pid: Option<i32>,
    /// The name was forgotten while this engine was away, and with it the mark of its last transaction.
    is_forgotten: bool,
    known: Known,
    /// A session of it was made ready before.
    is_begun: bool,
    is_closed: bool,
}

/// What is stored, so that it need not be read with every batch.
#[derive(Default)]
struct Known {
    /// Interfaces and destinations that were ever registered.
    numbers: Numbers,
    /// Messages whose terms wait to be filed, about.
    fresh_terms: usize,
    /// Groups that have a row in `owners`. They keep it.
    groups: HashSet<GroupId>,
}

impl Known {
    async fn read(session: &mut Session) -> Result<Known, Failed> {
        Ok(Known {
            numbers: register::numbers(session).await?,
            fresh_terms: term::count_fresh(session).await?,
            groups: HashSet::new(),
        })
    }
}

const FLUSH: &str = "UPDATE last_write SET mark = mark WHERE engine = $1";
const FIND_MARK: &str = "SELECT outcome FROM last_write WHERE engine = $1 AND mark = $2";

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, engine: &str, takeover_max: Duration) -> Self {
        Writer {
            shared,
            engine: engine.to_owned(),
            takeover_max,
            session: None,
            pid: None,
            is_forgotten: false,
            known: Known::default(),
            is_begun: false,
            is_closed: false,
        }
    }

    /// A session that may write, taken out of its place: whoever is cancelled in the middle takes it along.
    pub(crate) async fn take(&mut self) -> Result<Session, Failed> {
        if self.is_closed {
            return Err(closed().into());
        }
        match self.session.take() {
            Some(session) => Ok(session),
            None => self.connect().await,
        }
    }

    /// Begins a new session and forgets what was known in the one before.
    pub(crate) async fn connect(&mut self) -> Result<Session, Failed> {
        let shared = Arc::clone(&self.shared);
        shared.connector.look_around().await;
        shared.readers.forget();
        shared.days.forget();
        shared.housekeeping.forget();
        let mut session = shared.connector.connect().await?;
        let becoming = become_writer(&mut session, &self.engine, self.pid, self.takeover_max).await?;
        self.is_forgotten |= becoming.is_new && self.pid.is_some();
        self.pid = Some(becoming.pid);
        schema::check(&mut session).await?;
        self.known = Known::read(&mut session).await?;
        self.note(open::notes(&mut session).await?);
        let today = partition::today(&mut session).await?;
        shared.days.load(&mut session, today).await?;
        self.is_begun = true;
        Ok(session)
    }

    /// After a failover there may be something else to know. What is known at the start is told by whoever
    /// opens the store.
    fn note(&self, notes: Vec<String>) {
        let mut known = self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_begun {
            for note in notes.iter().filter(|note| !known.contains(note)) {
                tracing::warn!("{note}");
            }
        }
        *known = notes;
    }

    pub(crate) fn keep(&mut self, session: Session) {
        if !session.is_broken {
            self.session = Some(session);
        }
    }

    /// A session inside a new transaction. A session that broke since it was last used is begun anew.
    pub(crate) async fn begin(&mut self, what: &'static str, turn: Turn) -> Result<Session, Failed> {
        let was_used = self.session.is_some();
        let mut session = self.take().await?;
        match begin(&mut session, what, turn).await {
            Ok(()) => Ok(session),
            Err(failed) if was_used && failed.breaks_connection() => {
                drop(session);
                let mut session = self.connect().await?;
                begin(&mut session, what, turn).await?;
                Ok(session)
            }
            Err(failed) => {
                self.keep(session);
                Err(failed)
            }
        }
    }

    pub(crate) async fn write(&mut self, batch: &WriteBatch) -> Result<WriteOutcome, StoreError> {
        let shared = Arc::clone(&self.shared);
        let (mut tries, mut no_step) = (0, None);
        loop {
            tries += 1;
            let failed = match self.write_once(batch).await {
                Ok(outcome) => return Ok(outcome),
                Err(failed) => failed,
            };
            let again = tries < TRIES_MAX
                && (failed.is_contended() || (failed.lacks_partition() && self.make_partitions().await));
            if !again {
                let error = failed.told();
                if error.kind() == ErrorKind::Full {
                    self.shared.housekeeping.set_full();
                }
                return Err(error);
            }
            // Messages that old ones are moved beside may be among those of the results, step after step.
            if no_step.is_none() {
                no_step = Some(shared.step.lock().await);
            }
            pause(tries).await;
        }
    }

    async fn write_once(&mut self, batch: &WriteBatch) -> Result<WriteOutcome, Failed> {
        let what = "store the batch";
        let mut session = self.begin(what, Turn::Beside(batch.durability)).await?;
        let written = self.write_in(&mut session, batch).await;
        if written.is_err() {
            session.roll_back().await;
        }
        self.keep(session);
        let Stored { mut outcome, places, strangers } = written?;
        self.is_forgotten = false;
        outcome.elsewhere = self.shared.told.tell(&strangers);
        self.known.groups.extend(batch.new_messages().map(|message| message.group));
        if let Some((places, day)) = places {
            self.shared.days.see(day);
            self.shared.days.stored(&places, day);
        }
        let counting = batch.results.iter().zip(&outcome.results);
        let counting =
            counting.filter(|(_, outcome)| matches!(outcome, portway_store::ResultOutcome::Applied(_)));
        self.shared.housekeeping.floors.count(counting.map(|(result, _)| result));
        Ok(outcome)
    }

    async fn write_in(&mut self, session: &mut Session, batch: &WriteBatch) -> Result<Stored, Failed> {
        if self.known.numbers.check(batch).is_err() {
            // Perhaps another engine registered it.
            self.known.numbers = register::numbers(session).await?;
            self.known.numbers.check(batch)?;
        }
        let new = batch.new_messages().map(|message| message.group);
        let new: BTreeSet<GroupId> = new.filter(|group| !self.known.groups.contains(group)).collect();
        owner::know(session, &new).await?;
        let Shared { days, told, .. } = &*self.shared;
        let epoch = told.epoch().unwrap_or_default();
        let mut writing = Writing { session, engine: &self.engine, days, now: batch.now, epoch };
        let stored = writing.store(batch).await?;
        let routed = batch.results.iter().flat_map(crate::result::routes);
        let with_terms = batch.messages.iter().chain(routed).filter(|message| !message.terms.is_empty());
        let mut fresh_terms = self.known.fresh_terms + with_terms.count();
        if fresh_terms >= term::FRESH_MAX {
            term::file(session).await?;
            fresh_terms = 0;
        }
        session.commit("commit the batch").await?;
        self.known.fresh_terms = fresh_terms;
        Ok(stored)
    }

    /// The last resort: a message came for a day that has no partition. Whether there may be one now.
    async fn make_partitions(&mut self) -> bool {
        let made = async {
            let mut session = self.take().await?;
            let today = partition::today(&mut session).await;
            let made = match today {
                Ok(today) => partition::make_ahead(&mut session, today, Patience::UntilItIsThere).await,
                Err(failed) => Err(failed),
            };
            self.keep(session);
            self.shared.housekeeping.set_fresh();
            made.map(drop)
        };
        match made.await {
            Ok(()) => {
                tracing::warn!("a partition was missing, and is made");
                true
            }
            Err(failed) => {
                let is_contended = failed.is_contended();
                tracing::warn!(error = %failed.told(), "a partition is missing");
                // Others made it, or removed another meanwhile.
                is_contended
            }
        }
    }

    /// Gives numbers to what a project has.
    pub(crate) async fn register(&mut self, topology: &Topology) -> Result<Registered, StoreError> {
        let what = "register interfaces";
        let mut session = self.begin(what, Turn::Alone).await?;
        let registered = register_in(&mut session, topology).await;
        if registered.is_err() {
            session.roll_back().await;
        }
        self.keep(session);
        let registered = registered?;
        self.known.numbers.insert_all(&registered);
        Ok(registered)
    }

    pub(crate) async fn find_mark(&mut self, mark: u64) -> Result<Option<WriteOutcome>, StoreError> {
        let mut tries = 0;
        let outcome: Option<Vec<u8>> = loop {
            tries += 1;
            let mut session = self.take().await?;
            let statement = sqlx::query(FIND_MARK).bind(&self.engine).bind(mark.cast_signed());
            let found = session.read_one("read the last transaction", statement, |row| value(row, 0)).await;
            self.keep(session);
            match found {
                Ok(found) => break found,
                // An old session, that broke since; a new one knows.
                Err(failed) if failed.breaks_connection() && tries < 2 => {}
                Err(failed) => return Err(failed.told()),
            }
        };
        match outcome {
            None if self.is_forgotten => {
                // It may have been committed: only a start from what is stored can tell.
                let text = "this engine was away for so long that its last transaction is not remembered";
                Err(StoreError::new(ErrorKind::Fatal, text))
            }
            None => Ok(None),
            // No batch was ever written.
            Some(outcome) if outcome.is_empty() => Ok(None),
            Some(outcome) => match self.confirm().await.map(|()| mark::decode(&outcome))? {
                Some(outcome) => {
                    Ok(Some(WriteOutcome { elsewhere: self.look_elsewhere().await?, ..outcome }))
                }
                None => Err(damaged("the last transaction cannot be read")),
            },
        }
    }

    /// What can be read was committed. Whether a standby has it is not known, if whoever waited for that was
    /// ended; but it has it once it has confirmed what is committed later.
    async fn confirm(&mut self) -> Result<(), Failed> {
        let what = "wait until the last transaction is safe";
        let mut session = self.begin(what, Turn::Beside(Durability::Strict)).await?;
        let confirmed = async {
            session.execute(what, sqlx::query(FLUSH).bind(&self.engine)).await?;
            // Whether this one happens says nothing of that one.
            session.script(what, "COMMIT").await
        };
        let confirmed = confirmed.await;
        if confirmed.is_err() {
            session.roll_back().await;
        }
        self.keep(session);
        confirmed
    }

    /// Where others stored something up to now and the engine was not told: also what came before the
    /// transaction that was found.
    async fn look_elsewhere(&mut self) -> Result<Vec<GroupId>, StoreError> {
        let Some(epoch) = self.shared.told.epoch() else { return Ok(Vec::new()) };
        let mut session = self.take().await?;
        let strangers = owner::strangers(&mut session, &self.engine, epoch).await;
        self.keep(session);
        Ok(self.shared.told.tell(&strangers?))
    }

    /// Flushes and lets go of the name.
    pub(crate) async fn close(&mut self) -> Result<(), StoreError> {
        let what = "close the store";
        let mut session = self.begin(what, Turn::Beside(Durability::Strict)).await?;
        self.is_closed = true;
        // A commit that flushes needs something to flush; what was written before goes along.
        session.execute(what, sqlx::query(FLUSH).bind(&self.engine)).await?;
        session.commit(what).await?;
        session.close().await;
        Ok(())
    }
}

/// A little longer each time, and not as long as whoever was in the way.
pub(crate) async fn pause(tries: u32) {
    let jitter = RandomState::new().build_hasher().finish() % 5_000;
    tokio::time::sleep(PAUSE * tries + Duration::from_micros(jitter)).await;
}

async fn register_in(session: &mut Session, topology: &Topology) -> Result<Registered, Failed> {
    let mut registered = register::register(session, topology).await?;
    registered.pauses = destination::pauses(session).await?;
    session.commit("register interfaces").await?;
    Ok(registered)
}
