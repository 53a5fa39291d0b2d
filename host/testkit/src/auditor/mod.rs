//! The auditor: what must be true, checked from outside after every step.
//!
//! It keeps its own books of what was acknowledged, stored, sent and said, and believes the engine
//! nothing. Rules by number are those of the design: 1 stored before acknowledged, 2 at least
//! once, 3 order, 6 limits.

mod books;
mod duty;
mod limits;
mod outputs;
mod rate;
mod recovery;
mod retention;
mod sends;
mod state;
mod tenures;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use portway_engine::{EngineSettings, Fate, Status, Ticket};
use portway_model::{DestinationId, Draft, InterfaceId, MessageId};
use portway_store::{Durability, Pause};

use crate::content::{self, Content};
pub use books::Duty;
use books::Shadow;
pub use outputs::given;
pub use recovery::Death;
use recovery::Trial;
use retention::RetentionBooks;
pub use state::written;
use tenures::{Books, Tenures};

/// What is wrong, in a sentence.
pub type Verdict = Result<(), String>;

/// See the file.
#[derive(Debug)]
pub struct Auditor {
    settings: EngineSettings,
    pub messages: BTreeMap<MessageId, Shadow>,
    /// Removed by age. A power loss may bring them back.
    expired: BTreeMap<MessageId, Shadow>,
    retention: RetentionBooks,
    by_content: BTreeMap<Content, Vec<MessageId>>,
    /// Of the engine that is looked at.
    pub own: Books,
    /// Of the other.
    aside: Books,
    is_second: bool,
    tenures: Tenures,
    /// Events so far.
    events: u64,
    /// When these were handed over last.
    received: BTreeMap<Content, u64>,
    /// Lost with the power of the store, while an engine may still have them in memory.
    vanished: BTreeMap<MessageId, Shadow>,
    /// Handed over with a cursor: stored once, whatever happens.
    once: BTreeSet<Content>,
    /// Paused, as stored and flushed.
    paused: BTreeSet<DestinationId>,
    /// Stored since the last flush.
    unflushed: BTreeSet<MessageId>,
    /// In hand when a process died, and not tried since.
    suspects: BTreeMap<(DestinationId, MessageId), Trial>,
    /// How many processes ended since these were recorded as suspects.
    ends: BTreeMap<(DestinationId, MessageId), u32>,
    kills: BTreeMap<(DestinationId, MessageId), u32>,
    /// Ends after which a killer is not suspected any more.
    pardons: u32,
    pub acknowledged: u64,
    pub arrived: u64,
}

/// Messages whose fate is not known yet.
#[derive(Debug)]
struct Submitted {
    interface: InterfaceId,
    bodies: Vec<Bytes>,
    /// They may have been stored before.
    is_repeat: bool,
    /// All are stored, or none, and a cursor with them.
    is_whole: bool,
    /// They came while the engine was draining.
    is_late: bool,
}

impl Auditor {
    pub fn new(settings: EngineSettings) -> Self {
        let destinations = settings.interfaces.iter().flat_map(|interface| &interface.destinations);
        let own = Books::new(destinations.clone().cloned());
        let aside = Books::new(destinations.cloned());
        let retentions = settings.retentions.clone();
        Auditor {
            settings,
            messages: BTreeMap::new(),
            expired: BTreeMap::new(),
            retention: RetentionBooks::new(&retentions),
            by_content: BTreeMap::new(),
            own,
            aside,
            is_second: false,
            tenures: Tenures::default(),
            events: 0,
            received: BTreeMap::new(),
            vanished: BTreeMap::new(),
            once: BTreeSet::new(),
            paused: BTreeSet::new(),
            unflushed: BTreeSet::new(),
            suspects: BTreeMap::new(),
            ends: BTreeMap::new(),
            kills: BTreeMap::new(),
            pardons: 0,
            acknowledged: 0,
            arrived: 0,
        }
    }

    pub fn submitted(
        &mut self,
        ticket: Ticket,
        (interface, is_late): (InterfaceId, bool),
        drafts: &[Draft],
        is_repeat: bool,
    ) {
        self.receive(drafts);
        let bodies = drafts.iter().map(|draft| draft.body.clone()).collect();
        let is_whole = false;
        self.own.submissions.insert(ticket, Submitted { interface, bodies, is_repeat, is_whole, is_late });
    }

    /// Messages that come with a cursor.
    pub fn submitted_whole(
        &mut self,
        ticket: Ticket,
        (interface, is_late): (InterfaceId, bool),
        drafts: &[Draft],
    ) {
        self.receive(drafts);
        self.once.extend(contents(drafts));
        let bodies = drafts.iter().map(|draft| draft.body.clone()).collect();
        let submitted = Submitted { interface, bodies, is_repeat: false, is_whole: true, is_late };
        self.own.submissions.insert(ticket, submitted);
    }

    fn receive(&mut self, drafts: &[Draft]) {
        self.events += 1;
        self.received.extend(contents(drafts).map(|content| (content, self.events)));
    }

    /// Whether messages whose fate was not known are stored, as their source sees it.
    pub fn found_out(&self, drafts: &[Draft], was_stored: bool) -> Verdict {
        match contents(drafts).find(|content| self.by_content.contains_key(content) != was_stored) {
            // Removed by age in the meantime.
            Some(content) if was_stored && self.was_expired(content) => Ok(()),
            Some(content) => Err(format!("{content:?}: the cursor says stored: {was_stored}")),
            None => Ok(()),
        }
    }

    fn was_expired(&self, content: Content) -> bool {
        let mut bodies = self.expired.values().filter_map(|shadow| content::read(&shadow.body));
        bodies.any(|(other, _)| other == content)
    }

    /// An engine that says it is drained has nothing in hand, and owes nobody an answer.
    pub fn drain(&self, status: &Status) -> Verdict {
        if !status.drain.as_ref().is_some_and(|drain| drain.is_quiet) {
            return Ok(());
        }
        let runs: u32 = self.own.ledgers.values().map(|ledger| ledger.runs).sum();
        if runs > 0 || !self.own.submissions.is_empty() {
            return Err(format!(
                "it is drained, with {runs} runs and {:?} in hand",
                self.own.submissions.keys()
            ));
        }
        Ok(())
    }

    /// Rule 1: what is acknowledged is stored, and flushed where its interface says so.
    pub fn answered(&mut self, ticket: Ticket, fates: &[Fate]) -> Verdict {
        self.events += 1;
        let submitted = self.own.submissions.remove(&ticket).ok_or("an answer to nobody")?;
        if submitted.bodies.len() + usize::from(submitted.is_whole) != fates.len() {
            return Err(format!("{} fates for {} messages", fates.len(), submitted.bodies.len()));
        }
        let refused = fates.iter().filter(|fate| matches!(fate, Fate::NotStored { .. })).count();
        if submitted.is_whole && refused > 0 && refused < fates.len() {
            return Err(format!("{refused} of {} that belong together are refused", fates.len()));
        }
        if submitted.is_whole && refused == 0 && fates.last() != Some(&Fate::Kept) {
            return Err("the cursor has no fate".into());
        }
        for (body, fate) in submitted.bodies.iter().zip(fates) {
            let is_taken = !matches!(fate, Fate::NotStored { .. });
            if is_taken && submitted.is_late {
                return Err("a draining engine took a message".into());
            }
            match fate {
                Fate::Stored { id, .. } => self.acknowledged(*id, body, submitted.interface)?,
                Fate::Duplicate { of, .. } => self.acknowledged(*of, body, submitted.interface)?,
                Fate::Kept => return Err("a message is answered as a cursor".into()),
                Fate::NotStored { code, .. } => {
                    let (content, _) = content::read(body).ok_or("no content")?;
                    if !submitted.is_repeat && self.by_content.contains_key(&content) {
                        return Err(format!("{content:?} is stored, but its source was told `{code}`"));
                    }
                }
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, id: MessageId, body: &Bytes, interface: InterfaceId) -> Verdict {
        let is_strict = self.is_strict(interface);
        let is_unflushed = self.unflushed.contains(&id);
        self.acknowledged += 1;
        let known = self.messages.get_mut(&id).or_else(|| self.expired.get_mut(&id));
        // Its answer was on its way when the store lost it.
        let Some(shadow) = known.or_else(|| self.vanished.get_mut(&id).filter(|_| !is_strict)) else {
            return Err(format!("message {id} is acknowledged and not stored"));
        };
        if shadow.body != *body || shadow.interface != interface {
            return Err(format!("message {id} is acknowledged and another one is stored under this id"));
        }
        if is_strict && is_unflushed {
            return Err(format!("message {id} of a strict interface is acknowledged before it is flushed"));
        }
        shadow.acknowledged.get_or_insert(self.events);
        Ok(())
    }

    fn is_strict(&self, interface: InterfaceId) -> bool {
        let found = self.settings.interfaces.iter().find(|settings| settings.id == interface);
        found.is_some_and(|settings| settings.durability == Durability::Strict)
    }

    /// The wall clock stepped forward: stored times may be reached early, once.
    pub fn clock_stepped(&mut self) {
        let duties = self.messages.values_mut().flat_map(|shadow| shadow.duties.values_mut());
        duties.for_each(|duty| duty.not_before = Duration::ZERO);
    }

    /// A destination began anew: what stopped it may be mended.
    pub fn renewed(&mut self, destination: DestinationId) {
        if let Some(ledger) = self.own.ledgers.get_mut(&destination) {
            ledger.is_stopped = false;
            ledger.runaways = 0;
        }
    }

    /// A new process knows which destinations are paused.
    pub fn started(&mut self, pauses: &[(DestinationId, Pause)], monotonic: Duration) -> Verdict {
        let paused: BTreeSet<DestinationId> = pauses.iter().map(|(destination, _)| *destination).collect();
        if paused != self.paused {
            return Err(format!("{:?} are paused, and the store remembers {paused:?}", self.paused));
        }
        self.begin_process(monotonic);
        Ok(())
    }
}

fn contents(drafts: &[Draft]) -> impl Iterator<Item = Content> {
    drafts.iter().filter_map(|draft| content::read(&draft.body).map(|(content, _)| content))
}
