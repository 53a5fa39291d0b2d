//! What operators do to deliveries and destinations, as the dispatcher sees it: after it is stored.

use portway_model::{DestinationId, Lane, MessageId, Round};
use portway_store::{Action, ActionKind, DestinationAction, Pause};

use super::destination::Destination;
use super::stream::Hint;
use super::{Ctx, Desk};

/// A delivery that an action changed, as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pub destination: DestinationId,
    pub lane: Lane,
    pub message: MessageId,
    /// What is in memory of an earlier round is out of date.
    pub before: Round,
}

impl Changed {
    pub fn new(action: &Action, now: (DestinationId, Lane, Round)) -> Self {
        let (destination, lane, round) = now;
        let before = match action.kind {
            ActionKind::Resend { .. } | ActionKind::Retry => round,
            ActionKind::Dismiss => round.next(),
        };
        Changed { destination, lane, message: action.message, before }
    }
}

impl Destination {
    /// Runs that are not handed over lost these.
    pub fn lost(&mut self, hints: &[Hint]) {
        self.in_hand = self.in_hand.saturating_sub(u32::try_from(hints.len()).unwrap_or(u32::MAX));
        for hint in hints {
            self.apart.leave(hint.message, hint.round);
        }
    }

    /// A delivery was changed.
    pub fn acted(&mut self, changed: Changed, kind: ActionKind, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let Changed { lane: no, message, before, .. } = changed;
        // The lane it came from is not told: where lanes are held, all of them are looked up.
        if self.holds() {
            self.read_held(desk);
        }
        match kind {
            ActionKind::Dismiss if no.is_ordered() => {
                // A page in hand may still show it as pending.
                self.count_lane(no, desk, |lane| {
                    lane.stream.remove(message, before);
                    lane.stream.cancel_read();
                    lane.unblock(message);
                });
            }
            ActionKind::Retry if no.is_ordered() => {
                // A page in hand may still show that it waits.
                self.count_lane(no, desk, |lane| {
                    lane.stream.hurry(message);
                    lane.stream.cancel_read();
                    lane.unblock(message);
                });
            }
            ActionKind::Retry => {
                let now = self.apart.now(&ctx.at);
                self.arm(now, desk, ctx);
            }
            ActionKind::Dismiss => self.count_apart(desk, |apart| apart.remove(message, before)),
            ActionKind::Resend { .. } if no.is_ordered() => match self.lanes.get_mut(&no) {
                Some(lane) => lane.rewind = Some(lane.rewind.map_or(message, |earlier| earlier.min(message))),
                None => self.mark_unread(no),
            },
            ActionKind::Resend { .. } => {
                self.count_apart(desk, |apart| apart.remove(message, before));
                // It is due at the moment of the transaction, which is over.
                let now = self.apart.now(&ctx.at);
                self.arm(now, desk, ctx);
            }
        }
        self.review(no, desk, ctx);
    }

    pub fn resume(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let change = self.standing.resume();
        self.changed(change, desk, ctx);
    }

    /// Runs in hand end; nothing new begins.
    pub fn pause(&mut self, action: DestinationAction, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let DestinationAction { author, reason, .. } = action;
        let change = self.standing.pause(Pause { since: ctx.at.wall, author, reason });
        self.changed(change, desk, ctx);
    }

    pub fn wake(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        self.end_quiet(desk, ctx);
        let change = self.standing.wake(ctx.at.monotonic);
        self.changed(change, desk, ctx);
    }
}
