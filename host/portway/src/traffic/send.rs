//! One connection of the generator: its keys, what is under way on it, and what follows a failure.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep, timeout};

use super::answer::{Acknowledgement, Meaning};
use super::frame::{FrameReader, write_frame};
use super::generate::{GenerateError, Outcome, Shared};
use super::message::{self, Identity};
use super::stop::Stop;

/// Bytes of an acknowledgement.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Before a message that was not stored is sent again.
const AGAIN_WAIT: Duration = Duration::from_millis(100);

/// The messages of one connection, over all the connections it takes.
pub(crate) struct Sending {
    shared: Arc<Shared>,
    /// This connection's keys with the sequence number each had last.
    keys: Vec<(String, u64)>,
    turn: usize,
    /// Begun, and not answered for.
    pending: Option<Pending>,
    outcome: Outcome,
}

struct Pending {
    identity: Identity,
    frame: Vec<u8>,
    sent: bool,
}

/// How a connection ended.
enum Ended {
    /// Nothing is left to do.
    Done,
    /// What is pending goes on on a new one.
    Broken,
}

type Connection = (FrameReader<OwnedReadHalf>, OwnedWriteHalf);

impl Sending {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Sending {
        let settings = &shared.settings;
        let own = (index..settings.keys).step_by(settings.connections.max(1));
        let keys = own.map(|at| (message::key(&settings.run, at), 0)).collect();
        Sending { shared, keys, turn: 0, pending: None, outcome: Outcome::default() }
    }

    pub(crate) async fn run(mut self, mut stop: Stop) -> Result<Outcome, GenerateError> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.connect().await {
                Ok(mut connection) => {
                    wait = FIRST_WAIT;
                    match self.drive(&mut connection, &mut stop).await? {
                        Ended::Done => break,
                        Ended::Broken => count(&self.shared.progress.reconnects),
                    }
                }
                Err(_) => {
                    tokio::select! {
                        () = sleep(wait) => wait = wait.saturating_mul(2).min(LONGEST_WAIT),
                        () = stop.asked() => break,
                    }
                }
            }
            if stop.is_asked() {
                break;
            }
        }
        self.outcome.unacknowledged.extend(self.pending.map(|pending| pending.identity));
        Ok(self.outcome)
    }

    async fn connect(&self) -> io::Result<Connection> {
        let connecting = TcpStream::connect(&self.shared.settings.to);
        let stream = timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| io::ErrorKind::TimedOut)??;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok((FrameReader::new(reader, ANSWER_BYTES_MAX), writer))
    }

    /// One message after another until something breaks or nothing is left.
    async fn drive(&mut self, connection: &mut Connection, stop: &mut Stop) -> Result<Ended, GenerateError> {
        loop {
            if self.pending.is_none() {
                if stop.is_asked() || !self.shared.claim() {
                    return Ok(Ended::Done);
                }
                tokio::select! {
                    () = self.shared.pace.wait() => {}
                    () = stop.asked() => return Ok(Ended::Done),
                }
                self.begin();
            }
            let started = Instant::now();
            let Some(pending) = &mut self.pending else { continue };
            if pending.sent {
                count(&self.shared.progress.resent);
            }
            pending.sent = true;
            let exchange = exchange(connection, &pending.frame);
            let Ok(Ok(answer)) = timeout(self.shared.settings.answer_timeout, exchange).await else {
                return Ok(Ended::Broken);
            };
            if !self.settle(&answer, started)? {
                return Ok(Ended::Broken);
            }
            if self.pending.is_some() {
                sleep(AGAIN_WAIT).await;
                if stop.is_asked() {
                    return Ok(Ended::Done);
                }
            }
        }
    }

    /// The next message of the next key.
    fn begin(&mut self) {
        let turn = self.turn % self.keys.len().max(1);
        self.turn = turn + 1;
        let Some((key, sequence)) = self.keys.get_mut(turn) else { return };
        *sequence += 1;
        let mut frame = Vec::with_capacity(self.shared.settings.size + 256);
        let template = &self.shared.template;
        write_frame(&mut frame, |into| template.write(into, key, *sequence, message::now()));
        let identity = Identity { key: key.clone(), sequence: *sequence };
        self.pending = Some(Pending { identity, frame, sent: false });
    }

    /// What an answer means for the pending message; false if the connection is not to be trusted.
    fn settle(&mut self, answer: &Acknowledgement, started: Instant) -> Result<bool, GenerateError> {
        let progress = &self.shared.progress;
        let Some(pending) = &self.pending else { return Ok(true) };
        let wanted = format!("{}-{}", pending.identity.key, pending.identity.sequence);
        if answer.control_id != wanted.as_bytes() {
            count(&progress.foreign);
            return Ok(false);
        }
        match answer.meaning() {
            Meaning::Accepted => {
                if let (Some(ledger), Some(path)) = (&self.shared.ledger, &self.shared.settings.ledger) {
                    let failed = |source| GenerateError::Ledger { path: path.clone(), source };
                    ledger.write(&pending.identity).map_err(failed)?;
                }
                self.outcome.latency.record(started.elapsed());
                count(&progress.acknowledged);
                self.pending = None;
            }
            Meaning::Again => count(&progress.refused),
            Meaning::Rejected => {
                count(&progress.rejected);
                self.pending = None;
            }
            Meaning::Unknown => {
                count(&progress.foreign);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

async fn exchange((reader, writer): &mut Connection, frame: &[u8]) -> io::Result<Acknowledgement> {
    writer.write_all(frame).await?;
    let answer = reader.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Acknowledgement::read(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
