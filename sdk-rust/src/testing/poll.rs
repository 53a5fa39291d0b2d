//! A host for poll sources: keeps the cursor, stores what is found, settles, and holds the
//! plugin to the contract.

use std::time::Duration;

use super::stored::{Stored, size_of};
use crate::{
    Context, Failure, Fate, Found, Item, Later, PollSource, Query, Receipt, Refusal, Trouble, parse_settings,
};

const CURSOR_BYTES_MAX: usize = 64 * 1024;

/// One interface with a poll source.
#[derive(Debug)]
pub struct PollHost<P> {
    settings: String,
    plugin: P,
    /// What was committed last.
    pub cursor: Vec<u8>,
    pub items_max: u32,
    pub bytes_max: u32,
    pub unfinished: u32,
    /// All that was stored.
    pub stored: Vec<Stored>,
    pub refused: Vec<Refusal>,
    /// When the plugin wants to be asked again.
    pub again: Duration,
    refuses: Option<fn(&Stored) -> Option<&'static str>>,
}

impl<P: PollSource> PollHost<P> {
    /// Opens the source for the first time.
    pub fn open(settings: &str) -> Result<PollHost<P>, Failure> {
        Ok(PollHost {
            settings: settings.to_owned(),
            plugin: P::open(parse_settings(settings)?, &Context::default())?,
            cursor: Vec::new(),
            items_max: 1_000,
            bytes_max: 4 << 20,
            unfinished: 0,
            stored: Vec::new(),
            refused: Vec::new(),
            again: Duration::ZERO,
            refuses: None,
        })
    }

    /// The store refuses single messages under the code that this gives.
    pub fn refuse(&mut self, refuses: fn(&Stored) -> Option<&'static str>) {
        self.refuses = Some(refuses);
    }

    /// Asks, and commits nothing: what is done with it is the test's.
    pub fn poll(&mut self) -> Result<Found, Trouble> {
        let query = Query {
            cursor: self.cursor.clone(),
            items_max: self.items_max,
            bytes_max: self.bytes_max,
            wait_max_ms: 0,
            unfinished: self.unfinished,
        };
        let found = self.plugin.poll(query)?;
        assert!(found.items.len() <= self.items_max as usize, "more than {} items", self.items_max);
        let bytes: u64 = found.items.iter().map(size_of).sum();
        let messages = found.items.iter().filter(|item| matches!(item, Item::Message(_))).count();
        assert!(bytes <= u64::from(self.bytes_max) || messages == 1, "more than {} bytes", self.bytes_max);
        assert!(found.cursor.len() <= CURSOR_BYTES_MAX, "a cursor of {} bytes", found.cursor.len());
        self.again = Duration::from_millis(u64::from(found.again_ms));
        Ok(found)
    }

    /// Stores what was found; the receipts are the test's to hand over.
    pub fn commit(&mut self, found: Found) -> Vec<Receipt> {
        self.cursor = found.cursor;
        let mut receipts = Vec::new();
        for item in found.items {
            receipts.push(match item {
                Item::Message(mut draft) => {
                    let ticket = std::mem::take(&mut draft.ticket);
                    let stored = Stored::of(draft, self.stored.len() as u64 + 1, None);
                    let fate = match self.refuses.and_then(|refuses| refuses(&stored)) {
                        Some(code) => Fate::NotStored(Later::new(code, "as the test wants it")),
                        None => Fate::Stored(stored.id),
                    };
                    if matches!(fate, Fate::Stored(_)) {
                        self.stored.push(stored);
                    }
                    Receipt { fate, ticket }
                }
                Item::Refused(refusal) => {
                    self.refused.push(refusal.clone());
                    Receipt { fate: Fate::Noted, ticket: refusal.ticket }
                }
                Item::Control(ticket) => Receipt { fate: Fate::Noted, ticket },
            });
        }
        receipts
    }

    /// Hands receipts over.
    pub fn settle(&mut self, receipts: Vec<Receipt>) -> Result<(), Trouble> {
        self.plugin.settle(&self.cursor, receipts)
    }

    /// Asks, commits and settles; gives what was stored.
    pub fn turn(&mut self) -> Result<&[Stored], Trouble> {
        let before = self.stored.len();
        let found = self.poll()?;
        let receipts = self.commit(found);
        self.settle(receipts)?;
        Ok(self.stored.get(before..).unwrap_or_default())
    }

    /// Takes turns until the plugin wants a pause; gives what was stored.
    pub fn drain(&mut self) -> Result<&[Stored], Trouble> {
        let before = self.stored.len();
        loop {
            self.turn()?;
            if !self.again.is_zero() {
                return Ok(self.stored.get(before..).unwrap_or_default());
            }
        }
    }

    /// The instance is lost; another one gets the committed cursor.
    pub fn restart(&mut self) -> Result<(), Trouble> {
        let settings = parse_settings(&self.settings).map_err(Trouble::Misconfigured)?;
        self.plugin = P::open(settings, &Context::default()).map_err(Trouble::Misconfigured)?;
        self.settle(Vec::new())
    }
}
