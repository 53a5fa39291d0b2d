//! Items that are stored together: taken apart for the intake, put together again as receipts.

use bytes::Bytes;
use portway_model::Draft;

use crate::counters::Counters;
use crate::ports::{Fate, Item, Receipt};

/// An item on its way to its receipt.
pub(crate) struct Slot {
    ticket: Bytes,
    is_message: bool,
}

/// What the intake gets, and what is needed to make receipts of its answer.
pub(crate) fn take_apart(items: Vec<Item>, counters: &Counters) -> (Vec<Slot>, Vec<Draft>) {
    let (mut slots, mut drafts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        let (ticket, is_message) = match item {
            Item::Message { draft, ticket } => {
                counters.message();
                drafts.push(draft);
                (ticket, true)
            }
            Item::Refused { failure, ticket } => {
                counters.refused(&failure.code);
                tracing::warn!(%failure, "the source refused what it found");
                (ticket, false)
            }
            Item::Control { ticket } => {
                counters.control();
                (ticket, false)
            }
        };
        slots.push(Slot { ticket, is_message });
    }
    (slots, drafts)
}

pub(crate) fn receipts(slots: Vec<Slot>, fates: Vec<Fate>) -> Vec<Receipt> {
    let mut fates = fates.into_iter();
    let fate = |slot: &Slot| if slot.is_message { fates.next() } else { None };
    let mut fate = fate;
    slots
        .into_iter()
        .map(|slot| Receipt { fate: fate(&slot).unwrap_or(Fate::Noted), ticket: slot.ticket })
        .collect()
}

pub(crate) fn count_fate(counters: &Counters, fate: &Fate) {
    match fate {
        Fate::Stored { conflict, .. } => {
            counters.stored();
            if *conflict {
                counters.conflict();
            }
        }
        Fate::Duplicate(_) => counters.duplicate(),
        Fate::NotStored(later) => counters.not_stored(&later.failure.code),
        Fate::Noted => {}
    }
}
