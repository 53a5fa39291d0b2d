//! The threads that write: the only place where the writing connection is used.
//!
//! A job goes there and its answer comes back, however many statements the job runs. A job that was
//! sent runs to its end, also when nobody waits for it any more, so that no transaction is ever left
//! in the middle.
//!
//! There are two threads, which take turns; one job runs at a time. One would do, were it alone on its
//! processor. Where others compute, Linux lets a thread that comes back from a flush wait for its next
//! tick, which made 4 ms of each commit; with two that wake each other it hardly does. This was
//! measured, not derived: decision 8 has the figures, and says what else was tried.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use portway_store::{ErrorKind, StoreError};
use tokio::sync::oneshot;

use crate::error::closed;
use crate::writer::Writer;

type Job = Box<dyn FnOnce(&mut Writer) + Send>;

/// How many take turns.
const THREADS: usize = 2;

/// Sends jobs to the threads; ends them, after the jobs that were sent, when dropped.
pub(crate) struct WriterThreads {
    /// Without a bound of its own: who sends a job waits for its answer before it sends another.
    /// None: the threads were told to end.
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
struct Turns {
    jobs: Mutex<Receiver<Job>>,
    writer: Mutex<Writer>,
}

impl Turns {
    fn run(&self) {
        loop {
            let jobs = lock(&self.jobs);
            let Ok(job) = jobs.recv() else { return };
            // Taken before the other thread may have the next job, so that jobs keep their order.
            let mut writer = lock(&self.writer);
            drop(jobs);
            if panic::catch_unwind(AssertUnwindSafe(|| job(&mut writer))).is_err() {
                writer.doubt();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WriterThreads {
    pub(crate) fn start(writer: Writer) -> io::Result<WriterThreads> {
        let (sender, jobs) = mpsc::channel();
        let turns = Arc::new(Turns { jobs: Mutex::new(jobs), writer: Mutex::new(writer) });
        let mut threads = Vec::with_capacity(THREADS);
        for _ in 0..THREADS {
            let turns = Arc::clone(&turns);
            threads.push(thread::Builder::new().name("store-writer".into()).spawn(move || turns.run())?);
        }
        Ok(WriterThreads { jobs: Some(sender), threads })
    }

    /// Runs a job that cannot leave something stored of which nobody knows.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_or(ErrorKind::Unavailable, job).await
    }

    /// Runs a job; `panicked` is what its caller is told if it panics.
    pub(crate) async fn run_or<T: Send + 'static>(
        &self,
        panicked: ErrorKind,
        job: impl FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |writer| {
            // Nobody may be waiting any more.
            let _ = answer.send(job(writer));
        });
        self.jobs.as_ref().ok_or_else(closed)?.send(job).map_err(|_| closed())?;
        let panicked = |_| StoreError::new(panicked, "the writer of the store panicked");
        answered.await.map_err(panicked)?
    }
}

impl Drop for WriterThreads {
    fn drop(&mut self) {
        self.jobs.take();
        for thread in self.threads.drain(..) {
            // It catches panics of jobs; another one was shown where it happened.
            let _ = thread.join();
        }
    }
}

/// Starts work on a thread of its own. No answer comes if that is impossible, or the work panics.
pub(crate) fn start_apart<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (answer, answered) = oneshot::channel();
    let run = move || {
        let _ = answer.send(work());
    };
    if let Err(error) = thread::Builder::new().name(name.into()).spawn(run) {
        tracing::warn!(%error, "cannot start the thread `{name}`");
    }
    answered
}

#[cfg(test)]
mod tests {
    use portway_model::{DestinationId, MessageId};
    use portway_store::{Suspect, WriteBatch};

    use super::*;
    use crate::open::{self, SqliteSettings};
    use crate::transaction::begin;

    fn start(folder: &tempfile::TempDir) -> WriterThreads {
        let Ok(opened) = open::open(&SqliteSettings::new(folder.path().join("store.db"))) else {
            panic!("not opened")
        };
        WriterThreads::start(Writer::new(opened.writer, opened.log_bytes).unwrap()).unwrap()
    }

    fn batch(mark: u64) -> WriteBatch {
        let suspect = Suspect { destination: DestinationId(1), message: MessageId(1) };
        WriteBatch { mark, suspects: vec![suspect], ..WriteBatch::default() }
    }

    #[tokio::test]
    async fn a_write_that_panics_is_unknown_and_stores_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let threads = start(&folder);
        let broken = |writer: &mut Writer| -> Result<(), StoreError> {
            let transaction = begin(writer.connection()?, "write")?;
            transaction.execute("INSERT INTO suspects VALUES (1, 1, 70)", []).unwrap();
            panic!("in the middle of a transaction")
        };
        let error = threads.run_or(ErrorKind::Unknown, broken).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
        assert!(threads.run(|writer| writer.find_mark(7)).await.unwrap().is_none());
        let outcome = threads.run(|writer| writer.write(&batch(7))).await.unwrap();
        assert_eq!(outcome.suspects, [1]);
    }

    #[tokio::test]
    async fn a_commit_that_fails_stores_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let threads = start(&folder);
        // As long as it answers true, SQLite makes a failed COMMIT of each.
        let fail = |writer: &mut Writer| {
            writer.connection()?.commit_hook(Some(|| true)).unwrap();
            Ok(())
        };
        threads.run(fail).await.unwrap();
        for _ in 0..2 {
            let error = threads.run(|writer| writer.write(&batch(7))).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
        let mend = |writer: &mut Writer| {
            writer.connection()?.commit_hook(None::<fn() -> bool>).unwrap();
            Ok(())
        };
        threads.run(mend).await.unwrap();
        assert!(threads.run(|writer| writer.find_mark(7)).await.unwrap().is_none());
        let outcome = threads.run(|writer| writer.write(&batch(8))).await.unwrap();
        assert_eq!(outcome.suspects, [1]);
    }

    #[tokio::test]
    async fn jobs_that_were_sent_run_although_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let threads = start(&folder);
        {
            let mut write = std::pin::pin!(threads.run(|writer| writer.write(&batch(7))));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = write.as_mut().poll(&mut context);
        }
        drop(threads);
        let threads = start(&folder);
        assert!(threads.run(|writer| writer.find_mark(7)).await.unwrap().is_some());
    }
}
