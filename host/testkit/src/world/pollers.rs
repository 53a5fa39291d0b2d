//! Sources with a cursor: what they hand over is stored with how far they came, or not at all.
//!
//! After an answer that was lost, and after an end of the process, the cursor in the store is all
//! that tells whether the messages before it are stored. So it must be right.

use bytes::Bytes;
use portway_engine::{Event, Fate, Submission, Ticket, Unit};
use portway_model::{InterfaceId, code};
use portway_store::Store;

use super::{Step, World, now};

/// How far a source has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    /// Acknowledged.
    known: u64,
    /// Of what it handed over last.
    handed_over: u64,
}

impl World {
    /// Looks at the stored cursor and hands over what comes behind it.
    pub(super) fn poller_sends(&mut self, number: usize, interface: InterfaceId) -> Step {
        let cursor = now(self.here.store.source_cursor(interface)).map_err(|error| error.to_string())?;
        let stored = cursor.as_deref().map_or(Some(0), |bytes| bytes.try_into().ok().map(u64::from_le_bytes));
        let stored = stored.ok_or("a cursor nobody stored")?;
        let Some(client) = self.clients.get_mut(number) else { return Ok(()) };
        let Some(position) = &mut client.position else { return Ok(()) };
        let Position { known, handed_over } = *position;
        if stored != known && stored != handed_over {
            return Err(format!("rule 1: the cursor is {stored}, {known} was acknowledged"));
        }
        let was_stored = stored == handed_over;
        *position = Position { known: stored, handed_over: stored + 1 };
        let source = client.interface;
        let unsure = std::mem::take(&mut client.unsure);
        self.auditor.found_out(&unsure, was_stored)?;
        let drafts = if was_stored || unsure.is_empty() { self.found(source) } else { unsure };
        self.hand_over(number, interface, drafts, stored + 1);
        Ok(())
    }

    /// What fits into one transaction together.
    fn found(&mut self, source: usize) -> Vec<portway_model::Draft> {
        let mut drafts = self.drafts(source);
        let limits = self.scenario.limits;
        drafts.truncate(limits.batch_messages_max.max(1));
        let mut left = limits.batch_bytes_max;
        let mut fits = |draft: &portway_model::Draft| {
            left = left.saturating_sub(draft.body.len());
            left > 0
        };
        let count = drafts.iter().map(&mut fits).take_while(|fits| *fits).count();
        drafts.truncate(count.max(1));
        drafts
    }

    fn hand_over(
        &mut self,
        number: usize,
        interface: InterfaceId,
        drafts: Vec<portway_model::Draft>,
        cursor: u64,
    ) {
        let bytes = drafts.iter().map(|draft| draft.body.len()).sum();
        let Ok(permit) = self.here.gate.admit(interface, bytes) else {
            if let Some(client) = self.clients.get_mut(number) {
                client.unsure = drafts;
            }
            return self.client_pauses(number);
        };
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.auditor.submitted_whole(ticket, (interface, self.here.is_draining), &drafts);
        if let Some(client) = self.clients.get_mut(number) {
            client.waits_for = Some(ticket);
            client.unsure.clone_from(&drafts);
        }
        let (received_at, came_at) = (self.now().wall, self.now().monotonic);
        let unit = Unit::WithCursor(Bytes::copy_from_slice(&cursor.to_le_bytes()));
        let edit = None;
        let submission = Submission { interface, received_at, came_at, drafts, unit, edit, permit };
        self.tell(Event::Submit { ticket, submission });
    }

    /// All of it is stored, or nothing.
    pub(super) fn poller_answered(&mut self, number: usize, fates: &[Fate]) {
        let Some(client) = self.clients.get_mut(number) else { return };
        let Some(position) = &mut client.position else { return };
        client.waits_for = None;
        match fates.last() {
            Some(Fate::Kept) => {
                position.known = position.handed_over;
                client.unsure.clear();
            }
            // It would be refused again and again.
            Some(Fate::NotStored { code: code::INVALID | code::TOO_LARGE, .. }) => client.unsure.clear(),
            _ => {}
        }
    }
}
