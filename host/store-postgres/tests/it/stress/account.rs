//! What was promised, and whether it was kept.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use portway_model::{DeliveryState, DestinationId, InterfaceId, MessageId};
use portway_store::{MessageOutcome, NewMessage, Store as _};

use super::{AWAY, DRAINED, WAITS, World, body};

#[derive(Default)]
pub(super) struct Account(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// What was stored for each interface and key.
    stored: HashMap<(InterfaceId, u64), Vec<MessageId>>,
    /// What an interface and key were said to be duplicates of.
    duplicates: Vec<((InterfaceId, u64), MessageId)>,
    /// In the order in which they were told.
    drained: Vec<MessageId>,
    sent: HashSet<(DestinationId, MessageId)>,
}

impl Account {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap()
    }

    /// Of a batch that was acknowledged.
    pub(super) fn stored(&self, messages: &[(InterfaceId, u64)], outcomes: &[MessageOutcome]) {
        assert_eq!(messages.len(), outcomes.len());
        let mut entries = self.entries();
        for (of, outcome) in messages.iter().zip(outcomes) {
            match outcome {
                MessageOutcome::Stored { id, conflict } => {
                    assert_eq!(*conflict, None, "a key has one body");
                    entries.stored.entry(*of).or_default().push(*id);
                    if of.0 == DRAINED {
                        entries.drained.push(*id);
                    }
                }
                MessageOutcome::Duplicate { of: first, .. } => entries.duplicates.push((*of, *first)),
            }
        }
    }

    pub(super) fn sent(&self, destination: DestinationId, message: MessageId) {
        self.entries().sent.insert((destination, message));
    }

    /// One of the newest messages that are drained.
    pub(super) fn draw(&self, back: usize) -> Option<MessageId> {
        let entries = self.entries();
        entries.drained.len().checked_sub(back + 1).map(|at| entries.drained[at])
    }

    pub(super) async fn check(&self, world: &World) {
        let entries = std::mem::take(&mut *self.entries());
        for (of, ids) in &entries.stored {
            assert_eq!(ids.len(), 1, "{of:?} was stored more than once: {ids:?}");
        }
        for (of, first) in &entries.duplicates {
            assert_eq!(entries.stored.get(of), Some(&vec![*first]), "{of:?}");
        }
        println!(
            "{} stored, {} duplicates, {} sent",
            entries.stored.len(),
            entries.duplicates.len(),
            entries.sent.len()
        );
        assert!(entries.duplicates.len() > 100 && entries.sent.len() > 1_000);
        check_drained(world, &entries).await;
        check_waiting(world, &entries).await;
        // The status of a message is what its deliveries say.
        let wrong = "SELECT coalesce(string_agg(m.id || ' is ' || m.status || ' in ' || m.tier || '/' || m.day || ': '
                || coalesce((SELECT string_agg(d::text, ' ') FROM deliveries d WHERE d.message_id = m.id), 'none'),
                '; '), '')
            FROM messages m WHERE m.status <> 3 AND m.status <> CASE
            WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 0) THEN 0
            WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 3) THEN 2 ELSE 1 END";
        assert_eq!(world.server.sql(wrong), "", "a status is another than its deliveries say");
        let without =
            "SELECT coalesce(string_agg(d::text || ' of ' || coalesce((SELECT m.tier || ' ' || m.day
                FROM messages m WHERE m.id = d.message_id), 'none'), '; '), '')
            FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM messages m
            WHERE m.id = d.message_id AND m.tier = d.tier AND m.day = d.day)";
        assert_eq!(world.server.sql(without), "", "a delivery is where its message is");
    }
}

/// Everything was sent everywhere, or waits for a person.
async fn check_drained(world: &World, entries: &Entries) {
    let mut quarantined = 0;
    for id in &entries.drained {
        for destination in (1..=3).map(DestinationId) {
            if entries.sent.contains(&(destination, *id)) {
                continue;
            }
            let deliveries = world.engines[0].list_deliveries(*id).await.unwrap();
            let found = deliveries.iter().find(|delivery| delivery.destination == destination);
            let state = found.map(|delivery| delivery.state);
            let row = format!(
                "SELECT (SELECT string_agg(d::text, '; ') FROM deliveries d WHERE message_id = {}) || ' floors '
                    || (SELECT string_agg(f::text, '; ') FROM queue_floors f)",
                id.0
            );
            let is_kept = state == Some(DeliveryState::Quarantined);
            assert!(is_kept, "{id:?} to {destination:?} is lost: {deliveries:?} {}", world.server.sql(&row));
            quarantined += 1;
        }
    }
    assert!(quarantined > 5, "{quarantined} are kept for a person");
}

/// What could not be sent waits with all its bytes, however old its period.
async fn check_waiting(world: &World, entries: &Entries) {
    let mut waiting: Vec<(MessageId, u64)> = entries
        .stored
        .iter()
        .filter(|((interface, _), _)| *interface == AWAY)
        .map(|((_, key), ids)| (ids[0], *key))
        .collect();
    waiting.sort_unstable();
    let pending = format!("SELECT count(*) FROM deliveries WHERE destination_id = {} AND state = 0", WAITS.0);
    assert_eq!(world.server.sql(&pending), waiting.len().to_string());
    for some in waiting.chunks(200) {
        let ids: Vec<MessageId> = some.iter().map(|(id, _)| *id).collect();
        let loaded = world.engines[0].load_messages(&ids).await.unwrap();
        let loaded: HashMap<MessageId, _> =
            loaded.into_iter().map(|loaded| (loaded.id, loaded.body)).collect();
        for (id, key) in some {
            assert!(loaded.get(id) == Some(&body(*key)), "{id:?} has lost its bytes");
        }
    }
    let held = world.server.sql("SELECT count(*) FROM messages WHERE tier = 0 AND interface_id = 2");
    assert!(held.parse::<u64>().unwrap() > 5, "{held} were held");
}

/// What a message is known by here.
pub(super) fn identity(message: &NewMessage) -> (InterfaceId, u64) {
    let key = message.draft.dedupe.as_ref().unwrap().as_str().parse().unwrap();
    (message.interface, key)
}
