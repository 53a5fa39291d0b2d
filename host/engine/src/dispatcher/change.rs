//! What operators do to deliveries and destinations, as the dispatcher sees it: after it is stored.

use portway_model::{Failure, Lane, MessageId};
use portway_store::ActionKind;

use super::destination::Destination;
use super::{Ctx, Desk};

impl Destination {
    /// A delivery was changed; `no` is its lane now.
    pub fn acted(
        &mut self,
        no: Lane,
        message: MessageId,
        kind: ActionKind,
        desk: &mut Desk,
        ctx: &mut Ctx<'_>,
    ) {
        // The lane it came from is not told: where lanes are held, all of them are looked up.
        if self.holds() {
            self.read_held(desk);
        }
        match kind {
            ActionKind::Dismiss if no.is_ordered() => {
                // A page in hand may still show it as pending.
                self.count_lane(no, desk, |lane| {
                    lane.stream.remove(message);
                    lane.stream.cancel_read();
                    lane.unblock(message);
                });
            }
            ActionKind::Dismiss => self.count_apart(desk, |apart| apart.remove(message)),
            ActionKind::Resend { .. } if no.is_ordered() => {
                if self.lanes.contains_key(&no) {
                    self.count_lane(no, desk, |lane| lane.stream.rewind(message));
                } else {
                    self.mark_unread(no);
                }
            }
            ActionKind::Resend { .. } => {
                self.count_apart(desk, |apart| apart.remove(message));
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

    pub fn stop(&mut self, author: &str, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let why = Failure::new("stopped", format!("stopped by {author}"));
        let change = self.standing.stop(why, ctx.at.wall);
        self.changed(change, desk, ctx);
    }

    pub fn wake(&mut self, desk: &mut Desk, ctx: &mut Ctx<'_>) {
        let change = self.standing.wake(ctx.at.monotonic);
        self.changed(change, desk, ctx);
    }
}
