//! Items of one connection between their receipt and their answer, in order.
//!
//! One submission is under way at a time; what comes meanwhile gathers for the next. So a
//! connection's messages are stored in the order they came, and answered in it.

use std::pin::Pin;

use bytes::Bytes;
use futures::FutureExt;
use portway_model::{Cost, Draft, Failure, Later, Timestamp, code};

use crate::counters::Counters;
use crate::ports::{Arrival, Fate, Receipt};

/// The answer of the intake.
type Fates = Pin<Box<dyn Future<Output = Vec<Fate>> + Send>>;

/// See the file. What is left of it when it is dropped goes unanswered.
pub(crate) struct Flight {
    counters: Counters,
    gathering: Vec<Slot>,
    drafts: Vec<Draft>,
    /// When the first of the drafts came.
    received_at: Timestamp,
    /// Of reading the drafts.
    cost: Cost,
    submitted: Option<Submitted>,
    bytes: usize,
}

struct Submitted {
    slots: Vec<Slot>,
    answer: Answer,
}

enum Answer {
    Pending(Fates),
    Here(Vec<Fate>),
}

/// One item.
struct Slot {
    ticket: Bytes,
    state: SlotState,
    bytes: usize,
}

enum SlotState {
    /// The intake says.
    Submitted,
    /// Known without asking it.
    Decided(Fate),
}

impl Flight {
    pub(crate) fn new(counters: Counters) -> Flight {
        Flight {
            counters,
            gathering: Vec::new(),
            drafts: Vec::new(),
            received_at: Timestamp(0),
            cost: Cost::default(),
            submitted: None,
            bytes: 0,
        }
    }

    /// Items that are not answered.
    pub(crate) fn len(&self) -> usize {
        self.gathering.len() + self.submitted.as_ref().map_or(0, |submitted| submitted.slots.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of messages that are not answered.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A message for the intake.
    pub(crate) fn push_message(&mut self, draft: Draft, ticket: Bytes, received_at: Timestamp) {
        if self.drafts.is_empty() {
            self.received_at = received_at;
        }
        let bytes = draft.body.len();
        self.bytes += bytes;
        self.drafts.push(draft);
        self.gathering.push(Slot { ticket, state: SlotState::Submitted, bytes });
    }

    /// What reading cost, that gave what is pushed next or no item yet.
    pub(crate) fn spent(&mut self, cost: Cost) {
        self.cost += cost;
    }

    /// An item that has its fate already, in its place among the others.
    pub(crate) fn push_decided(&mut self, fate: Fate, ticket: Bytes) {
        self.gathering.push(Slot { ticket, state: SlotState::Decided(fate), bytes: 0 });
    }

    /// Hands over what has gathered, if nothing else is under way. It is on its way to the
    /// intake when this returns, not only when somebody waits for it.
    pub(crate) fn start(&mut self, submit: impl FnOnce(Arrival, Vec<Draft>) -> Fates) {
        if self.submitted.is_some() || self.gathering.is_empty() {
            return;
        }
        let slots = std::mem::take(&mut self.gathering);
        let drafts = std::mem::take(&mut self.drafts);
        let answer = if drafts.is_empty() {
            Answer::Here(Vec::new())
        } else {
            let cost = std::mem::take(&mut self.cost);
            let mut fates = submit(Arrival { at: self.received_at, cost, parent: None }, drafts);
            match (&mut fates).now_or_never() {
                Some(fates) => Answer::Here(fates),
                None => Answer::Pending(fates),
            }
        };
        self.submitted = Some(Submitted { slots, answer });
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.submitted.is_some()
    }

    /// Waits for what is under way; never returns if nothing is. May be dropped and called again.
    pub(crate) async fn landed(&mut self) {
        match &mut self.submitted {
            None => std::future::pending().await,
            Some(submitted) => {
                if let Answer::Pending(fates) = &mut submitted.answer {
                    let fates = fates.as_mut().await;
                    submitted.answer = Answer::Here(fates);
                }
            }
        }
    }

    /// The receipts of what has landed, in the order of the items.
    pub(crate) fn take_receipts(&mut self) -> Vec<Receipt> {
        let Some(Submitted { slots, answer }) = self.submitted.take() else { return Vec::new() };
        let mut fates = match answer {
            Answer::Here(fates) => fates.into_iter(),
            Answer::Pending(_) => Vec::new().into_iter(),
        };
        let mut receipts = Vec::with_capacity(slots.len());
        for slot in slots {
            self.bytes = self.bytes.saturating_sub(slot.bytes);
            let fate = match slot.state {
                SlotState::Decided(fate) => fate,
                // Fewer fates than messages would be the intake's lie: never an acknowledgement.
                SlotState::Submitted => fates.next().unwrap_or_else(unknown),
            };
            receipts.push(Receipt { fate, ticket: slot.ticket });
        }
        receipts
    }
}

fn unknown() -> Fate {
    let failure = Failure::new(code::BUSY, "what became of the message is not known");
    Fate::NotStored(Later { failure, after_ms: None })
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.counters.unanswered(self.len());
    }
}

#[cfg(test)]
mod tests {
    use portway_model::{Attributes, MessageId};

    use super::*;

    fn draft(body: &'static str) -> Draft {
        Draft {
            body: Bytes::from_static(body.as_bytes()),
            key: None,
            dedupe: None,
            occurred_at: None,
            attributes: Attributes::default(),
            doubt: None,
        }
    }

    fn stored(id: u64) -> Fate {
        Fate::Stored { id: MessageId(id), conflict: false }
    }

    fn tickets(receipts: &[Receipt]) -> Vec<&[u8]> {
        receipts.iter().map(|receipt| &receipt.ticket[..]).collect()
    }

    #[test]
    fn answers_come_in_the_order_of_the_items() {
        let mut flight = Flight::new(Counters::new());
        flight.push_message(draft("one"), Bytes::from_static(b"1"), Timestamp(5));
        flight.push_decided(Fate::Noted, Bytes::from_static(b"2"));
        flight.push_message(draft("three"), Bytes::from_static(b"3"), Timestamp(6));
        flight.start(|arrival, drafts| {
            assert_eq!((arrival.at, drafts.len()), (Timestamp(5), 2));
            Box::pin(async { vec![stored(10), stored(11)] })
        });
        flight.push_message(draft("later"), Bytes::from_static(b"4"), Timestamp(7));
        flight.start(|_, _| panic!("one submission at a time"));
        assert_eq!((flight.len(), flight.bytes()), (4, 13));
        flight.landed().now_or_never().unwrap();
        let receipts = flight.take_receipts();
        assert_eq!(tickets(&receipts), [b"1", b"2", b"3"]);
        assert_eq!(
            receipts.iter().map(|receipt| receipt.fate.clone()).collect::<Vec<_>>(),
            [stored(10), Fate::Noted, stored(11)]
        );
        assert_eq!((flight.len(), flight.bytes()), (1, 5));
    }

    #[test]
    fn an_intake_that_answers_too_little_acknowledges_nothing() {
        let mut flight = Flight::new(Counters::new());
        flight.push_message(draft("one"), Bytes::new(), Timestamp(5));
        flight.start(|_, _| Box::pin(async { Vec::new() }));
        flight.landed().now_or_never().unwrap();
        assert!(matches!(flight.take_receipts()[0].fate, Fate::NotStored(_)));
    }

    #[test]
    fn items_without_a_message_need_no_intake_and_what_is_dropped_is_counted() {
        let counters = Counters::new();
        let mut flight = Flight::new(counters.clone());
        flight.push_decided(Fate::Noted, Bytes::new());
        flight.start(|_, _| panic!("nothing to store"));
        flight.push_decided(Fate::Noted, Bytes::new());
        drop(flight);
        assert_eq!(counters.status().unanswered, 2);
    }
}
