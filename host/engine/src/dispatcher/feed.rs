//! What a destination reads from the store, and when: pages of its lanes, and of deliveries whose
//! time has come.

use portway_model::{Lane, MessageId, Timestamp};
use portway_store::Pending;

use super::apart::MayBeMore;
use super::destination::Destination;
use super::reader::For;
use super::stream::Stream;
use super::timers::Timer;
use super::{Ctx, Desk};
use crate::event::{Read, ReadId};

/// Deliveries in a page.
const PAGE: usize = 256;
/// A smaller page is not worth a read; one of this size a destination gets also when nothing is
/// free, if it has nothing else to do.
const PAGE_MIN: usize = 16;
/// A queue with less than this reads on.
pub(super) const LOW_WATER: usize = 128;

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

impl Destination {
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
        if self.apart.is_rewinding() {
            // It begins again: what is read now would be thrown away.
            return;
        }
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

    fn stream(&mut self, no: Lane) -> Option<(&mut Stream, Option<MessageId>)> {
        if no.is_ordered() {
            self.lanes.get_mut(&no).map(|lane| (&mut lane.stream, lane.held))
        } else {
            Some((&mut self.apart.fresh, None))
        }
    }
}
