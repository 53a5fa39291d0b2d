//! The numbers a store has given out, and what it refuses because of them.
//!
//! Both adapters and the in-memory store refuse the same rows for the same reasons, before
//! anything is written.

use std::collections::HashSet;

use portway_model::{DestinationId, InterfaceId, StateWrite};

use crate::{
    DeliveryResult, ErrorKind, NewMessage, Registered, Settled, SourceCursor, StoreError, WriteBatch,
};

/// Numbers of interfaces and destinations, present and past.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    interfaces: HashSet<InterfaceId>,
    destinations: HashSet<DestinationId>,
}

impl Numbers {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Numbers::default()
    }

    /// Adds an interface and its destinations.
    pub fn insert(&mut self, interface: InterfaceId, destinations: impl IntoIterator<Item = DestinationId>) {
        self.interfaces.insert(interface);
        self.destinations.extend(destinations);
    }

    /// Adds what was just registered.
    pub fn insert_all(&mut self, registered: &Registered) {
        for (interface, destinations) in &registered.interfaces {
            self.insert(*interface, destinations.iter().copied());
        }
    }

    /// Refuses a batch with a message that cannot be stored.
    pub fn check(&self, batch: &WriteBatch) -> Result<(), StoreError> {
        batch.messages.iter().try_for_each(|message| self.check_message(message))?;
        batch.cursors.iter().try_for_each(|cursor| self.check_cursor(cursor))?;
        for result in &batch.results {
            check_state(result)?;
            if let Settled::Routed(messages) = &result.settled {
                messages.iter().try_for_each(|message| self.check_message(message))?;
            }
        }
        let unknown =
            batch.destination_actions.iter().find(|action| !self.destinations.contains(&action.destination));
        unknown.map_or(Ok(()), |action| Err(unknown_destination(action.destination)))
    }

    fn check_cursor(&self, cursor: &SourceCursor) -> Result<(), StoreError> {
        self.check_interface(cursor.interface)?;
        let bytes = cursor.cursor.len();
        if bytes > SourceCursor::BYTES_MAX {
            let text = format!("a cursor of {bytes} bytes, at most {} are kept", SourceCursor::BYTES_MAX);
            return Err(StoreError::new(ErrorKind::Refused, text));
        }
        Ok(())
    }

    fn check_interface(&self, interface: InterfaceId) -> Result<(), StoreError> {
        if self.interfaces.contains(&interface) {
            return Ok(());
        }
        let text = format!("interface number {interface} is not registered");
        Err(StoreError::new(ErrorKind::Refused, text))
    }

    fn check_message(&self, message: &NewMessage) -> Result<(), StoreError> {
        self.check_interface(message.interface)?;
        let deliveries = &message.deliveries;
        if let Some(unknown) =
            deliveries.iter().find(|delivery| !self.destinations.contains(&delivery.destination))
        {
            return Err(unknown_destination(unknown.destination));
        }
        // Lists are nearly always in rising order, which needs no set.
        if deliveries.is_sorted_by(|a, b| a.destination < b.destination) {
            return Ok(());
        }
        let mut seen = HashSet::new();
        match deliveries.iter().find(|delivery| !seen.insert(delivery.destination)) {
            None => Ok(()),
            Some(twice) => {
                let text = format!("destination number {} stands twice in one message", twice.destination);
                Err(StoreError::new(ErrorKind::Refused, text))
            }
        }
    }
}

fn check_state(result: &DeliveryResult) -> Result<(), StoreError> {
    if result.state.is_empty() {
        return Ok(());
    }
    let refused = |text: &str| Err(StoreError::new(ErrorKind::Refused, text));
    if !result.settled.keeps_state() {
        return refused("state is kept only of what was sent or filtered");
    }
    if !result.state.iter().all(StateWrite::fits) {
        return refused("a value of a plugin's state is outside its limits");
    }
    Ok(())
}

fn unknown_destination(destination: DestinationId) -> StoreError {
    StoreError::new(ErrorKind::Refused, format!("destination number {destination} is not registered"))
}
