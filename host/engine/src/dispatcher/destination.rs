//! One destination: its lanes, what of them is in memory, and what is read next.
//!
//! Memory is held only for lanes with work in hand or in the queue, and for those that wait for
//! something; of the others the store alone knows. What is read is in `feed`, how runs begin in
//! `pick`, how they end in `finish`, what operators do in `change`, held lanes in `held`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use portway_model::{Epoch, Lane, MessageId, OnQuarantine, Timestamp};
use portway_store::{LaneHead, Pause};

use super::apart::{Apart, Careful};
use super::feed::LOW_WATER;
use super::held::HeldRead;
use super::lane::{Blocked, LaneState};
use super::lane_set::LaneSet;
use super::leave::Leaving;
use super::rate::Bucket;
use super::reader::For;
use super::standing::{Change, News, Standing};
use super::stream::{Hint, Keep};
use super::timers::Timer;
use super::{Ctx, Desk};
use crate::event::Read;
use crate::fact::Fact;
use crate::layout::Place;
use crate::settings::DestinationSettings;
use crate::status::Counts;

/// The longest wait, whatever the settings say: beyond it sums of times would overflow.
const WAIT_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Deliveries in a run, whatever the settings say.
const RUN_MAX: u32 = 256;
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
    /// None: as fast as it takes.
    pub rate: Option<Bucket>,
    pub(super) lanes: BTreeMap<Lane, LaneState>,
    pub(super) apart: Apart,
    /// Lanes whose next delivery can be sent, in the order of their turns.
    pub(super) ready: VecDeque<Lane>,
    pub(super) held: HeldRead,
    /// Lanes without an entry of which the store has a backlog.
    pub(super) unread: LaneSet,
    pub(super) next_unread: u16,
    /// Lanes that had a backlog when the last process ended uncleanly, and how many of their first
    /// deliveries it may have had in hand.
    suspect: Option<Box<(LaneSet, u32)>>,
    /// What was recorded before it was tried, by a process that ended since: each goes by itself.
    pub(super) were_in_hand: BTreeSet<MessageId>,
    pub(super) hungry: VecDeque<Lane>,
    /// Reads of queues in hand.
    pub(super) reads: u32,
    pub(super) feed_turn: u8,
    /// What has to be known before the first run.
    pub(super) loading: u32,
    /// It starts nothing any more. None: it stays.
    pub(super) leaving: Option<Leaving>,
    /// Of the tenure in which it began.
    pub(super) epoch: Epoch,
    /// What the owner before sent may arrive until then; none: nothing of it can.
    pub(super) quiet_until: Option<Duration>,
}

impl Destination {
    /// Waits until it is told whether the store has work for it.
    pub fn new(place: Place, mut settings: DestinationSettings, pause: Option<Pause>) -> Self {
        settings.concurrency = settings.concurrency.max(1);
        settings.run_max = settings.run_max.clamp(1, RUN_MAX);
        settings.retry.longest_wait = settings.retry.longest_wait.min(WAIT_MAX);
        Destination {
            place,
            rate: settings.rate.map(Bucket::new),
            settings,
            standing: Standing::new(pause),
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
            were_in_hand: BTreeSet::new(),
            hungry: VecDeque::new(),
            reads: 0,
            feed_turn: 0,
            loading: 1,
            leaving: None,
            epoch: Epoch(0),
            quiet_until: None,
        }
    }

    pub fn holds(&self) -> bool {
        self.settings.on_quarantine == OnQuarantine::Hold
    }

    /// Its deliveries are worth reading and queueing.
    pub fn is_active(&self) -> bool {
        let may_send = self.loading == 0 && self.leaving.is_none() && self.quiet_until.is_none();
        may_send && self.standing.is_active()
    }

    /// Nothing of it can be sent now.
    pub fn is_quiet(&self) -> bool {
        match self.leaving {
            Some(Leaving::Gone) => return true,
            Some(Leaving::ToBegin | Leaving::ToGo) => return false,
            None => {}
        }
        self.loading == 0 && self.quiet_until.is_none() && (!self.is_active() || self.ready.is_empty())
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
        self.begin_tenure(desk, ctx.at.monotonic);
        let destination = self.settings.id;
        if has_work {
            self.loading += 1;
            desk.reader.ask(For::LaneHeads(self.place), Read::LaneHeads(destination));
            self.apart.fresh.expect_more();
            let after = Timestamp(0);
            desk.reader.ask(For::NextDue(self.place), Read::NextDue { destination, after });
            if desk.tenure.as_ref().is_some_and(|tenure| tenure.unclean) {
                // No more than that was in hand or not yet written, of any lane.
                let unflushed_max = u32::try_from(ctx.layout.limits.unflushed_max).unwrap_or(u32::MAX);
                self.apart.careful = Careful { fresh: unflushed_max, due: unflushed_max };
                self.suspect = Some(Box::new((LaneSet::default(), unflushed_max)));
                self.loading += 1;
                desk.reader.ask(For::Suspects(self.place), Read::Suspects(destination));
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

    /// What was recorded, and has no result.
    pub fn on_suspects(&mut self, suspects: Vec<MessageId>, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.loading = self.loading.saturating_sub(1);
        self.were_in_hand = suspects.into_iter().collect();
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
            Change::Stopped | Change::Paused => {}
        }
        self.tell(change, desk, ctx);
        if !self.is_active() {
            self.leave_to_store(desk);
        }
        self.review_all(desk, ctx);
    }

    fn tell(&self, change: Change, desk: &mut Desk, ctx: &Ctx<'_>) {
        let name = || ctx.layout.name(self.place);
        let fact = match self.standing.news(change) {
            None => return,
            Some(News::Runs) => Fact::DestinationResumed { name: name() },
            Some(News::Waits(why)) => Fact::DestinationWaits { name: name(), why: why.clone() },
            Some(News::Stopped(why)) => Fact::DestinationStopped { name: name(), why: why.clone() },
            Some(News::Paused(pause)) => Fact::DestinationPaused { name: name(), pause: pause.clone() },
        };
        desk.facts.push(fact);
    }

    /// Keeps in memory only what the store cannot tell.
    pub(super) fn leave_to_store(&mut self, desk: &mut Desk) {
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

    pub(super) fn review_all(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
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
            if self.apart.is_rewinding() {
                let is_free = self.in_hand == 0;
                self.count_apart(desk, |apart| apart.try_rewind(is_free));
            }
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

/// A head that is not due yet blocks its lane until it is.
fn block_on_head(lane: &mut LaneState, ctx: &Ctx<'_>, longest: Duration) {
    let Some(head) = lane.stream.front() else { return };
    let Some(due_at) = head.due_at.filter(|due_at| *due_at > ctx.at.steady) else { return };
    let until = ctx.at.deadline(due_at, longest);
    let reason = "waits for its next attempt".into();
    let blocked = Blocked { message: head.message, attempts: head.attempts, until, reason };
    lane.blocked = Some(Box::new(blocked));
}
