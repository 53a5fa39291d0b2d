//! One destination: its lanes, what of them is in memory, and what is read next.
//!
//! Memory is held only for lanes with work in hand or in the queue, and for those that wait for
//! something; of the others the store alone knows. How runs begin is in `pick`, how they end in
//! `finish`, what operators do in `change`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use portway_model::{Lane, MessageId, OnQuarantine, Timestamp};
use portway_store::{LaneHead, Pending};

use super::apart::{Apart, Careful, MayBeMore};
use super::lane::{Blocked, LaneState};
use super::lane_set::LaneSet;
use super::reader::For;
use super::standing::{Change, Standing};
use super::stream::{Hint, Keep, Stream};
use super::timers::Timer;
use super::{Ctx, Desk};
use crate::event::{Read, ReadId};
use crate::layout::Place;
use crate::settings::DestinationSettings;
use crate::status::Counts;

/// Deliveries in a page.
const PAGE: usize = 256;
/// A smaller page is not worth a read; one of this size a destination gets also when nothing is
/// free, if it has nothing else to do.
const PAGE_MIN: usize = 16;
/// Deliveries in a run, whatever the settings say.
const RUN_MAX: u32 = 256;
/// A queue with less than this reads on.
const LOW_WATER: usize = 128;

/// See the file.
#[derive(Debug)]
pub(crate) struct Destination {
    pub place: Place,
    pub settings: DestinationSettings,
    pub standing: Standing,
    /// In the engine's list of destinations that are ready.
    pub queued: bool,
    /// Runs in hand.
    pub runs: u32,
    /// Deliveries in hand.
    pub in_hand: u32,
    pub counts: Counts,
    pub(super) lanes: BTreeMap<Lane, LaneState>,
    pub(super) apart: Apart,
    /// Lanes whose next delivery can be sent, in the order of their turns.
    pub(super) ready: VecDeque<Lane>,
    pub(super) held: HeldRead,
    /// Lanes without an entry of which the store has a backlog.
    unread: LaneSet,
    next_unread: u16,
    /// Lanes that had a backlog when the last process ended uncleanly, and how many of their first
    /// deliveries it may have had in hand.
    suspect: Option<Box<(LaneSet, u32)>>,
    hungry: VecDeque<Lane>,
    /// Reads of queues in hand.
    reads: u32,
    feed_turn: u8,
    /// What has to be known before the first run.
    loading: u32,
}

/// What is known of quarantined deliveries that hold their lanes.
#[derive(Debug, Default)]
pub(super) struct HeldRead {
    read: Option<ReadId>,
    /// Something changed since the read was asked for.
    is_stale: bool,
    /// The first answer is waited for.
    is_first: bool,
    /// Held by results that are not written yet.
    pub unwritten: Vec<(Lane, MessageId)>,
}

impl Destination {
    /// Waits until it is told whether the store has work for it.
    pub fn new(place: Place, mut settings: DestinationSettings) -> Self {
        settings.concurrency = settings.concurrency.max(1);
        settings.run_max = settings.run_max.clamp(1, RUN_MAX);
        Destination {
            place,
            settings,
            standing: Standing::default(),
            queued: false,
            runs: 0,
            in_hand: 0,
            counts: Counts::default(),
            lanes: BTreeMap::new(),
            apart: Apart::default(),
            ready: VecDeque::new(),
            held: HeldRead::default(),
            unread: LaneSet::default(),
            next_unread: 0,
            suspect: None,
            hungry: VecDeque::new(),
            reads: 0,
            feed_turn: 0,
            loading: 1,
        }
    }

    pub fn holds(&self) -> bool {
        self.settings.on_quarantine == OnQuarantine::Hold
    }

    /// Its deliveries are worth reading and queueing.
    pub fn is_active(&self) -> bool {
        self.loading == 0 && self.standing.is_active()
    }

    /// A run of this lane that begins with this message is still right.
    pub fn takes(&self, no: Lane, first: MessageId) -> bool {
        self.is_active() && self.lanes.get(&no).is_none_or(|lane| lane.admits(first))
    }

    pub fn lanes_count(&self) -> usize {
        self.lanes.len()
    }

    /// What the store has for it is known: reads what has to be known before the first run.
    pub fn load(&mut self, has_work: bool, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.loading = self.loading.saturating_sub(1);
        let destination = self.settings.id;
        if has_work {
            self.loading += 1;
            desk.reader.ask(For::LaneHeads(self.place), Read::LaneHeads(destination));
            self.apart.fresh.expect_more();
            let after = Timestamp(0);
            desk.reader.ask(For::NextDue(self.place), Read::NextDue { destination, after });
            if desk.is_careful {
                // No more than that was in hand or not yet written, of any lane.
                let unflushed_max = u32::try_from(ctx.layout.limits.unflushed_max).unwrap_or(u32::MAX);
                self.apart.careful = Careful { fresh: unflushed_max, due: unflushed_max };
                self.suspect = Some(Box::new((LaneSet::default(), unflushed_max)));
            }
        }
        if self.holds() {
            self.loading += 1;
            self.held.is_first = true;
            self.read_held(desk);
        }
        self.review_all(desk, ctx);
    }

    pub fn on_lane_heads(&mut self, heads: Vec<LaneHead>, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.loading = self.loading.saturating_sub(1);
        for head in heads {
            if let Some(suspect) = &mut self.suspect {
                suspect.0.insert(head.lane);
            }
            match self.lanes.get_mut(&head.lane) {
                Some(lane) => {
                    lane.stream.expect_more();
                    if let Some(suspect) = &mut self.suspect
                        && suspect.0.remove(head.lane)
                    {
                        lane.careful = suspect.1;
                    }
                }
                None => self.unread.insert(head.lane),
            }
        }
        self.review_all(desk, ctx);
    }

    /// Asks which lanes are held, again if something changed since it was asked.
    pub fn read_held(&mut self, desk: &mut Desk) {
        self.held.is_stale = self.held.read.is_some();
        if !self.held.is_stale {
            let read = desk.reader.ask(For::HeldHeads(self.place), Read::HeldHeads(self.settings.id));
            self.held.read = Some(read);
        }
    }

    /// What is known of held lanes changes: an answer in hand is out of date.
    pub(super) fn outdate_held(&mut self) {
        self.held.is_stale |= self.held.read.is_some();
    }

    pub fn on_held_heads(&mut self, id: ReadId, heads: Vec<LaneHead>, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if self.held.read.take() != Some(id) {
            return;
        }
        if self.held.is_stale {
            self.read_held(desk);
            return;
        }
        if ctx.is_acting {
            // A resent delivery may be out of this answer before its lane knows that it comes again.
            desk.parked.push((self.place, Lane::APART));
            return;
        }
        if std::mem::take(&mut self.held.is_first) {
            self.loading = self.loading.saturating_sub(1);
        }
        self.lanes.values_mut().for_each(|lane| lane.held = None);
        let unwritten = std::mem::take(&mut self.held.unwritten);
        for head in heads.iter().map(|head| (head.lane, head.message)).chain(unwritten.iter().copied()) {
            self.lane(head.0).hold(head.1);
        }
        self.held.unwritten = unwritten;
        self.review_all(desk, ctx);
    }

    /// A commit stored a delivery.
    pub fn hint(&mut self, no: Lane, hint: Hint, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let has_room = self.is_active() && desk.budget.room() > 0;
        if !no.is_ordered() {
            let keep = if has_room { Keep::Yes } else { Keep::No };
            self.count_apart(desk, |apart| apart.fresh.hint(hint, keep));
        } else if self.unread.contains(no) || (!has_room && !self.lanes.contains_key(&no)) {
            self.unread.insert(no);
        } else {
            let is_tight = desk.budget.is_tight();
            let lane = self.lane(no);
            let waits = lane.held.is_some() || (lane.blocked.is_some() && is_tight);
            let keep = if has_room && !waits { Keep::Yes } else { Keep::No };
            let before = lane.stream.len();
            lane.stream.hint(hint, keep);
            desk.budget.count(before, lane.stream.len());
        }
        self.review(no, desk, ctx);
    }

    /// A commit stored a delivery as quarantined.
    pub fn doubt(&mut self, no: Lane, message: MessageId) {
        self.counts.quarantined += 1;
        if self.holds() && no.is_ordered() {
            self.outdate_held();
            self.lane(no).hold(message);
        }
    }

    /// A page of a lane or of the deliveries apart.
    pub fn on_page(&mut self, no: Lane, page: Page, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.reads = self.reads.saturating_sub(1);
        desk.budget.unreserve(page.limit);
        let mut below = MessageId(u64::MAX);
        // A commit in hand may have quarantined what holds the lane: its messages wait until it is known.
        let is_early = self.holds() && no.is_ordered() && ctx.is_writing;
        if is_early {
            below = MessageId(desk.stored_to.0.saturating_add(1));
        }
        let Some((stream, lane_held)) = self.stream(no) else { return };
        let is_cut = is_early && page.rows.last().is_some_and(|row| row.message >= below);
        if !stream.answered(page.id) {
            self.review(no, desk, ctx);
            return;
        }
        let before = stream.len();
        stream.page(page.rows, page.limit, below.min(lane_held.unwrap_or(below)));
        desk.budget.count(before, stream.len());
        if is_cut && let Some(lane) = self.lanes.get_mut(&no) {
            lane.parked = true;
            desk.parked.push((self.place, no));
        }
        self.review(no, desk, ctx);
    }

    /// A page of deliveries whose time has come.
    pub fn on_due(&mut self, page: Page, until: Timestamp, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.reads = self.reads.saturating_sub(1);
        desk.budget.unreserve(page.limit);
        if self.apart.answered(page.id) {
            let mut more = MayBeMore::Yes;
            self.count_apart(desk, |apart| more = apart.page(page.rows, page.limit));
            if more == MayBeMore::No {
                let read = Read::NextDue { destination: self.settings.id, after: until };
                desk.reader.ask(For::NextDue(self.place), read);
            }
        }
        self.review(Lane::APART, desk, ctx);
    }

    pub fn on_next_due(&mut self, due_at: Option<Timestamp>, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        match due_at {
            Some(due_at) => self.arm(due_at, desk, ctx),
            None => self.apart.none_due(),
        }
        self.review(Lane::APART, desk, ctx);
    }

    /// A delivery apart is due at this time.
    pub(super) fn arm(&mut self, due_at: Timestamp, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if let Some(at) = self.apart.arm(due_at, &ctx.at, self.settings.retry.longest_wait) {
            desk.timers.set(at, Timer::Due(self.place));
        }
    }

    pub fn wake_due(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if let Some(at) = self.apart.wake(&ctx.at, self.settings.retry.longest_wait) {
            desk.timers.set(at, Timer::Due(self.place));
        }
        self.review(Lane::APART, desk, ctx);
    }

    pub fn wake_lane(&mut self, no: Lane, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if let Some(lane) = self.lanes.get_mut(&no) {
            lane.wake(ctx.at.monotonic);
        }
        self.review(no, desk, ctx);
    }

    pub fn unpark(&mut self, no: Lane, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if !no.is_ordered() {
            return self.read_held(desk);
        }
        if let Some(lane) = self.lanes.get_mut(&no) {
            lane.parked = false;
        }
        self.review(no, desk, ctx);
    }

    /// Takes in that the destination as a whole goes on, waits or stops.
    pub fn changed(&mut self, change: Change, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        match change {
            Change::None => return,
            Change::Resumed => {}
            Change::Waits(until) => desk.timers.set(until, Timer::Destination(self.place)),
            Change::Stopped => {}
        }
        if !self.is_active() {
            self.leave_to_store(desk);
        }
        self.review_all(desk, ctx);
    }

    /// Keeps in memory only what the store cannot tell.
    fn leave_to_store(&mut self, desk: &mut Desk) {
        self.ready.clear();
        self.hungry.clear();
        self.apart.listed = false;
        self.count_apart(desk, Apart::trim);
        for lane in self.lanes.values_mut() {
            (lane.listed, lane.hungry) = (false, false);
            let before = lane.stream.len();
            lane.stream.trim(1);
            lane.stream.strip();
            desk.budget.count(before, lane.stream.len());
        }
    }

    fn review_all(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let lanes: Vec<Lane> = self.lanes.keys().copied().collect();
        for no in lanes {
            self.review(no, desk, ctx);
        }
        self.review(Lane::APART, desk, ctx);
    }

    /// Looks at a lane after anything about it changed: lists it, lets it read on, or forgets it.
    pub(super) fn review(&mut self, no: Lane, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let is_active = self.is_active();
        if !no.is_ordered() {
            if is_active && self.apart.is_ready() && !self.apart.listed {
                self.apart.listed = true;
                self.ready.push_back(no);
            }
            return;
        }
        let longest = self.settings.retry.longest_wait;
        self.count_lane(no, desk, LaneState::try_rewind);
        let Some(lane) = self.lanes.get_mut(&no) else { return };
        if lane.run.is_none() && lane.blocked.is_none() {
            block_on_head(lane, ctx, longest);
            if let Some(blocked) = &lane.blocked {
                desk.timers.set(blocked.until, Timer::Lane(self.place, no));
            }
        }
        if lane.is_stuck() && desk.budget.is_tight() {
            let before = lane.stream.len();
            lane.stream.trim(1);
            lane.stream.strip();
            desk.budget.count(before, lane.stream.len());
        }
        if is_active && lane.is_ready() && !lane.listed {
            lane.listed = true;
            self.ready.push_back(no);
        }
        if is_active && lane.wants_page(LOW_WATER) {
            lane.hungry = true;
            self.hungry.push_back(no);
        }
        let is_left = !is_active && lane.can_be_left();
        if is_left || lane.is_done() {
            self.forget(no, desk);
        }
    }

    fn forget(&mut self, no: Lane, desk: &mut Desk) {
        let Some(lane) = self.lanes.remove(&no) else { return };
        desk.budget.count(lane.stream.len(), 0);
        if lane.stream.is_behind() || !lane.stream.is_empty() {
            self.unread.insert(no);
        }
    }

    /// Asks for what can be read now. Who comes first changes, so that nobody starves when there
    /// is room for one page only.
    pub fn feed(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        if !self.is_active() {
            return;
        }
        let reads_before = self.reads;
        for turn in 0..3 {
            match (self.feed_turn + turn) % 3 {
                0 => self.feed_hungry(desk),
                1 => self.feed_unread(desk),
                _ => self.feed_apart(desk, ctx),
            }
        }
        if self.reads > reads_before {
            self.feed_turn = (self.feed_turn + 1) % 3;
        }
    }

    fn feed_hungry(&mut self, desk: &mut Desk) {
        for _ in 0..self.hungry.len() {
            if self.page_limit(Need::Dire, desk).is_none() {
                return;
            }
            let Some(no) = self.hungry.pop_front() else { return };
            let is_idle =
                self.lanes.get(&no).is_some_and(|lane| lane.stream.is_empty() && lane.run.is_none());
            match self.page_limit(if is_idle { Need::Dire } else { Need::More }, desk) {
                Some(limit) => self.read_lane(no, limit, desk),
                None => self.hungry.push_back(no),
            }
        }
    }

    fn feed_unread(&mut self, desk: &mut Desk) {
        let open_max = (self.settings.concurrency as usize * 2).clamp(2, 32);
        while self.ready.len() + (self.reads as usize) < open_max
            && let Some(no) = self.unread.next_from(self.next_unread)
        {
            let Some(limit) = self.page_limit(Need::Dire, desk) else { return };
            self.next_unread = no.number() + 1;
            self.lane(no);
            self.read_lane(no, limit, desk);
        }
    }

    fn read_lane(&mut self, no: Lane, limit: u32, desk: &mut Desk) {
        let Some(lane) = self.lanes.get_mut(&no) else { return };
        lane.hungry = false;
        let after = lane.stream.known();
        let read = Read::Lane { destination: self.settings.id, lane: no, after, limit };
        lane.stream.asked(desk.reader.ask(For::Lane(self.place, no), read));
        desk.budget.reserve(limit);
        self.reads += 1;
    }

    fn feed_apart(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let need = if self.apart.is_ready() { Need::More } else { Need::Dire };
        let fresh = &self.apart.fresh;
        if fresh.is_behind()
            && !fresh.is_reading()
            && fresh.len() < LOW_WATER
            && let Some(limit) = self.page_limit(need, desk)
        {
            let after = self.apart.fresh.known();
            let read = Read::Lane { destination: self.settings.id, lane: Lane::APART, after, limit };
            let id = desk.reader.ask(For::Fresh(self.place), read);
            self.apart.fresh.asked(id);
            desk.budget.reserve(limit);
            self.reads += 1;
        }
        if self.apart.wants_due()
            && let Some(limit) = self.page_limit(need, desk)
        {
            // Those that are known already come first in the page.
            let with_known = limit.saturating_add(u32::try_from(self.apart.excluded()).unwrap_or(u32::MAX));
            let until = self.apart.now(&ctx.at);
            let read = Read::Due { destination: self.settings.id, until, limit: with_known };
            let id = desk.reader.ask(For::Due(self.place), read);
            self.apart.asked(id, limit);
            desk.budget.reserve(with_known);
            self.reads += 1;
        }
    }

    /// How much to read now; none: nothing is free.
    fn page_limit(&self, need: Need, desk: &Desk) -> Option<u32> {
        let room = desk.budget.room();
        let limit = if room >= PAGE_MIN { room.min(PAGE) } else { PAGE_MIN };
        let has_nothing = need == Need::Dire && self.ready.is_empty() && self.reads == 0;
        (room >= PAGE_MIN || has_nothing).then_some(u32::try_from(limit).unwrap_or(u32::MAX))
    }

    /// The entry of a lane, made if it has none.
    pub(super) fn lane(&mut self, no: Lane) -> &mut LaneState {
        let (unread, suspect) = (&mut self.unread, &mut self.suspect);
        self.lanes.entry(no).or_insert_with(|| {
            let mut lane = if unread.remove(no) { LaneState::unread() } else { LaneState::default() };
            if let Some(suspect) = suspect
                && suspect.0.remove(no)
            {
                lane.careful = suspect.1;
            }
            lane
        })
    }

    /// The backlog of a lane without an entry has to be read.
    pub(super) fn mark_unread(&mut self, no: Lane) {
        self.unread.insert(no);
    }

    fn stream(&mut self, no: Lane) -> Option<(&mut Stream, Option<MessageId>)> {
        if no.is_ordered() {
            self.lanes.get_mut(&no).map(|lane| (&mut lane.stream, lane.held))
        } else {
            Some((&mut self.apart.fresh, None))
        }
    }

    /// Does something to the deliveries apart and keeps the budget's count right.
    pub(super) fn count_apart(&mut self, desk: &mut Desk, change: impl FnOnce(&mut Apart)) {
        let before = self.apart.len();
        change(&mut self.apart);
        desk.budget.count(before, self.apart.len());
    }

    /// Does something to a lane and keeps the budget's count right.
    pub(super) fn count_lane(&mut self, no: Lane, desk: &mut Desk, change: impl FnOnce(&mut LaneState)) {
        if let Some(lane) = self.lanes.get_mut(&no) {
            let before = lane.stream.len();
            change(lane);
            desk.budget.count(before, lane.stream.len());
        }
    }
}

/// Why a page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// To have the next deliveries at hand.
    More,
    /// There are none.
    Dire,
}

/// A page with the limit it was asked for with.
#[derive(Debug)]
pub(crate) struct Page {
    pub id: ReadId,
    pub rows: Vec<Pending>,
    pub limit: u32,
}

/// A head that is not due yet blocks its lane until it is.
fn block_on_head(lane: &mut LaneState, ctx: &Ctx<'_>, longest: Duration) {
    let Some(head) = lane.stream.front() else { return };
    let Some(due_at) = head.due_at.filter(|due_at| *due_at > ctx.at.steady) else { return };
    let until = ctx.at.deadline(due_at, longest);
    let reason = "waits for its next attempt".into();
    let blocked = Blocked { message: head.message, attempts: head.attempts, until, reason };
    lane.blocked = Some(Box::new(blocked));
}
