//! One connection: read, cut, hand over, answer, until it ends.
//!
//! Everything happens in one task, in the order of the items. While a commit is under way the
//! connection is read on, up to its limits; while an answer is written it is not. However it
//! ends, what was received whole is stored and, where the peer still listens, answered.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_model::{Failure, Later, Timestamp, code};
use portway_net::listen::{Peer, Reader, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::budget::Hold;
use crate::counters::Closed;
use crate::driver::Shared;
use crate::flight::Flight;
use crate::frame::Frame;
use crate::ports::{Codec, CodecConnection, CodecError, Fate, Finish, Intake, Item, Receipt};
use crate::reading::{CHUNK_BYTES, read_chunk};
use crate::refusals::Refusal;

/// Items of one `settle`.
const SETTLE_MAX: usize = 256;
/// Refusals of one read that are kept for the operator; all are counted.
const REFUSALS_KEPT_MAX: usize = 4;
/// What a codec may keep beyond a message: the frame around it.
const FRAME_OVERHEAD: u64 = 4 << 10;

pub(crate) struct Connection<I: Intake, C: Codec> {
    shared: Arc<Shared<I, C>>,
    reader: Reader,
    writer: Writer,
    peer: Peer,
    codec: C::Connection,
    frame: Frame,
    flight: Flight,
    hold: Hold,
    stop: watch::Receiver<bool>,
    /// Set once told to stop: a frame that has begun may go on until then.
    stop_frame_at: Option<Instant>,
    /// Set while the limits forbid reading.
    paused: bool,
    timer: Pin<Box<Sleep>>,
}

/// What a connection waits for.
enum Event {
    Landed,
    Stop,
    Read(std::io::Result<Bytes>),
    Timer,
}

/// How a connection ends.
#[derive(Clone, Copy)]
struct End {
    why: Closed,
    /// What the codec is told; none if it cannot be asked any more.
    finish: Option<Finish>,
}

impl End {
    fn telling(why: Closed, finish: Finish) -> End {
        End { why, finish: Some(finish) }
    }

    fn silent(why: Closed) -> End {
        End { why, finish: None }
    }
}

impl<I: Intake, C: Codec> Connection<I, C> {
    pub(crate) fn new(
        shared: Arc<Shared<I, C>>,
        (reader, writer, peer): (Reader, Writer, Peer),
        codec: C::Connection,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let now = Instant::now();
        let frame = Frame::new(now);
        let timer = Box::pin(sleep_until(frame.deadline(shared.idle_timeout, shared.frame_timeout)));
        Connection {
            reader,
            writer,
            peer,
            codec,
            frame,
            flight: Flight::new(shared.counters.clone()),
            hold: shared.budget.hold(),
            stop,
            stop_frame_at: None,
            paused: false,
            timer,
            shared,
        }
    }

    /// Returns when the connection is closed.
    pub(crate) async fn run(mut self) {
        let end = loop {
            self.submit();
            let event = self.next_event().await;
            let ended = match event {
                Event::Landed => self.answer().await,
                Event::Stop => self.told_to_stop(),
                Event::Read(chunk) => self.received(chunk).await,
                Event::Timer => self.out_of_patience(),
            };
            if let Err(end) = ended {
                break end;
            }
        };
        self.wind_up(end).await;
    }

    async fn next_event(&mut self) -> Event {
        let limits = &self.shared.limits;
        let may_read = self.flight.len() < limits.items_in_flight_max
            && self.flight.bytes() < limits.bytes_in_flight_max;
        if std::mem::replace(&mut self.paused, !may_read) && may_read {
            self.frame.resumed(Instant::now());
        }
        let deadline = self.deadline();
        if deadline < self.timer.deadline() {
            self.timer.as_mut().reset(deadline);
        }
        let wanted = self.flight.bytes().saturating_add(kept_bytes(&self.frame)).saturating_add(CHUNK_BYTES);
        let Connection { flight, hold, reader, stop, timer, .. } = self;
        tokio::select! {
            biased;
            () = flight.landed(), if flight.is_under_way() => Event::Landed,
            _ = stop.wait_for(|stop| *stop), if self.stop_frame_at.is_none() => Event::Stop,
            chunk = async { hold.resize(wanted).await; read_chunk(reader).await }, if may_read => Event::Read(chunk),
            () = timer.as_mut() => Event::Timer,
        }
    }

    fn deadline(&self) -> Instant {
        let frame = self.frame.deadline(self.shared.idle_timeout, self.shared.frame_timeout);
        self.stop_frame_at.map_or(frame, |stop| stop.min(frame))
    }

    /// The timer is set anew only when it has to ring earlier, so it often rings too early.
    fn out_of_patience(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if self.stop_frame_at.is_some_and(|at| at <= now) {
            return Err(End::telling(Closed::Stopping, Finish::Stopping));
        }
        let waits_for_us = self.paused || (self.frame.is_at_edge() && !self.flight.is_empty());
        if waits_for_us {
            self.frame.resumed(now);
        }
        let deadline = self.deadline();
        if deadline > now {
            self.timer.as_mut().reset(deadline);
            return Ok(());
        }
        let why = if self.frame.is_at_edge() { Closed::Idle } else { Closed::FrameTimeout };
        if why == Closed::FrameTimeout {
            self.refuse(&Failure::new(why.code(), "a frame was not complete in time"), &[]);
        }
        Err(End::telling(why, Finish::Idle))
    }

    fn told_to_stop(&mut self) -> Result<(), End> {
        self.stop_frame_at = Some(Instant::now() + self.shared.limits.stop_frame_timeout);
        self.stop_at_edge()
    }

    fn stop_at_edge(&self) -> Result<(), End> {
        if self.stop_frame_at.is_some() && self.frame.is_at_edge() {
            return Err(End::telling(Closed::Stopping, Finish::Stopping));
        }
        Ok(())
    }

    async fn received(&mut self, chunk: std::io::Result<Bytes>) -> Result<(), End> {
        let chunk = match chunk {
            Ok(chunk) if !chunk.is_empty() => chunk,
            Ok(_) => return Err(End::telling(Closed::PeerClosed, Finish::PeerClosed)),
            Err(_) => return Err(End::telling(Closed::Broken, Finish::PeerClosed)),
        };
        self.shared.counters.bytes_in(chunk.len());
        let received_at = self.shared.clock.now();
        let items = match self.codec.receive(chunk.clone()).await {
            Ok(items) => items,
            Err(error) => return Err(End::silent(self.codec_failed(&error, &chunk))),
        };
        self.flight.spent(self.codec.take_cost());
        let found = !items.is_empty();
        self.take(items, &chunk, received_at);
        if self.codec.has_failed()
            && let Err(error) = self.codec.receive(Bytes::new()).await
        {
            return Err(End::silent(self.codec_failed(&error, &chunk)));
        }
        self.frame.received(&chunk, found, self.codec.kept_bytes(), Instant::now());
        if self.frame.kept() > self.shared.limits.message_bytes_max as u64 + FRAME_OVERHEAD {
            let failure = Failure::new(Closed::TooLarge.code(), "a frame is larger than a message may be");
            self.refuse(&failure, &[]);
            return Err(End::telling(Closed::TooLarge, Finish::TooLarge));
        }
        self.stop_at_edge()
    }

    /// Puts items in their order of answers.
    fn take(&mut self, items: Vec<Item>, chunk: &[u8], received_at: Timestamp) {
        let mut refusals = 0;
        for item in items {
            match item {
                Item::Message { draft, ticket } => {
                    self.shared.counters.message();
                    if draft.body.len() > self.shared.limits.message_bytes_max {
                        self.flight.push_decided(too_large(), ticket);
                    } else {
                        self.flight.push_message(draft, ticket, received_at);
                    }
                }
                Item::Refused { failure, ticket } => {
                    self.shared.counters.refused(&failure.code);
                    if refusals < REFUSALS_KEPT_MAX {
                        refusals += 1;
                        self.refuse(&failure, chunk);
                    }
                    self.flight.push_decided(Fate::Noted, ticket);
                }
                Item::Control { ticket } => {
                    self.shared.counters.control();
                    self.flight.push_decided(Fate::Noted, ticket);
                }
            }
        }
    }

    fn submit(&mut self) {
        let shared = &self.shared;
        self.flight.start(|arrival, drafts| {
            let shared = shared.clone();
            Box::pin(async move { shared.intake.submit(arrival, drafts).await })
        });
    }

    /// Answers what has landed, after the next is on its way.
    async fn answer(&mut self) -> Result<(), End> {
        let receipts = self.flight.take_receipts();
        self.submit();
        if self.count_fates(&receipts) {
            tokio::time::sleep(self.shared.limits.busy_pause).await;
        }
        let mut receipts = receipts.into_iter();
        while receipts.len() > 0 {
            let some: Vec<Receipt> = receipts.by_ref().take(SETTLE_MAX).collect();
            let count = some.len();
            if let Err(end) = self.settle(some).await {
                // The last of what was written counts as answered if the codec closes with it.
                let written = if end.why == Closed::Answered { count } else { 0 };
                self.shared.counters.answered(written);
                self.shared.counters.unanswered(count - written + receipts.len());
                return Err(end);
            }
            self.shared.counters.answered(count);
        }
        Ok(())
    }

    /// True if the intake was too busy for one of them.
    fn count_fates(&self, receipts: &[Receipt]) -> bool {
        let counters = &self.shared.counters;
        let mut busy = false;
        for receipt in receipts {
            match &receipt.fate {
                Fate::Stored { conflict, .. } => {
                    counters.stored();
                    if *conflict {
                        counters.conflict();
                    }
                }
                Fate::Duplicate(_) => counters.duplicate(),
                Fate::NotStored(later) => {
                    counters.not_stored(&later.failure.code);
                    busy |= matches!(later.failure.code.as_str(), code::BUSY | code::FULL);
                }
                Fate::Noted => {}
            }
        }
        busy
    }

    async fn settle(&mut self, receipts: Vec<Receipt>) -> Result<(), End> {
        let reply = match self.shared.codec.settle(receipts).await {
            Ok(reply) => reply,
            Err(error) => return Err(End::silent(self.codec_failed(&error, &[]))),
        };
        if !reply.bytes.is_empty() {
            self.write(&reply.bytes).await?;
        }
        if reply.close { Err(End::silent(Closed::Answered)) } else { Ok(()) }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), End> {
        let writer = &mut self.writer;
        let write = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        match timeout(self.shared.limits.write_timeout, write).await {
            Ok(Ok(())) => {
                self.shared.counters.bytes_out(bytes.len());
                Ok(())
            }
            Ok(Err(_)) => Err(End::silent(Closed::WriteFailed)),
            Err(_) => Err(End::silent(Closed::WriteTimeout)),
        }
    }

    /// Last items, last answers, then the connection is closed.
    async fn wind_up(mut self, mut end: End) {
        if let Some(why) = end.finish {
            let received_at = self.shared.clock.now();
            match self.codec.finish(why).await {
                Ok(items) => {
                    self.flight.spent(self.codec.take_cost());
                    self.take(items, &[], received_at);
                }
                Err(error) => end.why = self.codec_failed(&error, &[]),
            }
        }
        let mut listens = !matches!(end.why, Closed::WriteTimeout | Closed::WriteFailed | Closed::Answered);
        loop {
            self.submit();
            if !self.flight.is_under_way() {
                break;
            }
            self.flight.landed().await;
            if listens {
                listens = self.answer().await.is_ok();
            } else {
                let receipts = self.flight.take_receipts();
                self.count_fates(&receipts);
                self.shared.counters.unanswered(receipts.len());
            }
        }
        self.close(listens || end.why == Closed::Answered).await;
        self.shared.counters.closed(end.why);
    }

    /// Closes so that the peer can still read what was written last: unread input would make
    /// the system break the connection off.
    async fn close(&mut self, gently: bool) {
        let Connection { reader, writer, shared, .. } = self;
        let linger = shared.limits.linger;
        let goodbye = async {
            if writer.shutdown().await.is_ok() && gently {
                while reader.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
            }
        };
        // A peer that does not close in its turn is not waited for.
        let _ = timeout(linger.max(Duration::from_millis(1)), goodbye).await;
    }

    /// Counts, keeps the bytes for the operator and slows the address, as the error deserves.
    fn codec_failed(&mut self, error: &CodecError, chunk: &[u8]) -> Closed {
        match error {
            CodecError::Fault(text) => {
                self.refuse(&Failure::new(code::FAULT, text.as_str()), chunk);
                self.shared.fault(self.peer.address.ip());
                Closed::Fault
            }
            CodecError::Refused(failure) => {
                self.shared.counters.refused(&failure.code);
                self.refuse(failure, chunk);
                Closed::Refused
            }
            CodecError::Unavailable(_) => Closed::Unavailable,
        }
    }

    fn refuse(&self, failure: &Failure, chunk: &[u8]) {
        self.shared.keep_refusal(Refusal {
            at: self.shared.clock.now(),
            peer: self.peer.address,
            failure: failure.clone(),
            bytes: self.frame.in_hand(chunk).into(),
        });
    }
}

fn kept_bytes(frame: &Frame) -> usize {
    usize::try_from(frame.kept()).unwrap_or(usize::MAX)
}

fn too_large() -> Fate {
    let failure = Failure::new(code::TOO_LARGE, "the message is larger than this engine takes");
    Fate::NotStored(Later { failure, after_ms: None })
}
