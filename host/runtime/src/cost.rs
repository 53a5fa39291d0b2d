//! What each message of a batch cost, where somebody asks for it.
//!
//! A plugin says which message it is at (`begin`); what it uses from there to the next one is that
//! message's. Nothing is kept for a batch that nobody watches.

use std::time::Instant;

use portway_model::Cost;

use crate::instance::Instance;
use crate::opening::Opening;

/// What one message cost, and when the plugin was at it for the first and the last time.
#[derive(Clone, Copy, Debug)]
pub struct MessageCost {
    pub cost: Cost,
    pub began: Instant,
    pub ended: Instant,
}

/// Where one call was at which time.
pub(crate) struct Marks {
    started: Instant,
    /// Places of its messages in the batch, where they are others than in the call.
    indexes: Vec<u32>,
    messages: usize,
    begun: Vec<Begun>,
}

/// A message was begun when so much fuel was used.
struct Begun {
    index: u32,
    fuel: u64,
    at: Instant,
}

impl Marks {
    /// A call on so many messages begins.
    pub fn new(messages: usize, indexes: &[u32]) -> Marks {
        let begun = Vec::with_capacity(messages);
        Marks { started: Instant::now(), indexes: indexes.to_vec(), messages, begun }
    }

    pub fn begin(&mut self, index: u32, fuel: u64) {
        self.begun.push(Begun { index, fuel, at: Instant::now() });
    }

    /// The call has ended and used so much. What no message is known to have used all share.
    pub fn settle(self, fuel: u64, costs: &mut [Option<MessageCost>]) {
        let ended = Instant::now();
        let first = self.begun.first();
        let nobodys = Cost {
            fuel: first.map_or(fuel, |first| first.fuel),
            time: first.map_or(ended, |first| first.at) - self.started,
        };
        let share = nobodys.share(self.messages);
        if self.begun.is_empty() {
            let all = (0_u32..).take(self.messages);
            all.for_each(|index| add(costs, self.place(index), share, (self.started, ended)));
        }
        let mut begun = self.begun.iter().peekable();
        while let Some(Begun { index, fuel: before, at }) = begun.next() {
            let (after, until) = begun.peek().map_or((fuel, ended), |next| (next.fuel, next.at));
            let own = Cost { fuel: after.saturating_sub(*before), time: until - *at };
            add(costs, self.place(*index), own + share, (*at, until));
        }
    }

    fn place(&self, index: u32) -> usize {
        self.indexes.get(index as usize).map_or(index, |place| *place) as usize
    }
}

/// Several calls may be about one message.
fn add(costs: &mut [Option<MessageCost>], place: usize, cost: Cost, (began, ended): (Instant, Instant)) {
    if let Some(known) = costs.get_mut(place) {
        let known = known.get_or_insert(MessageCost { cost: Cost::default(), began, ended });
        known.cost += cost;
        known.ended = ended;
    }
}

/// Times one call of a source, or nothing.
pub(crate) struct Timer(Option<Instant>);

impl Opening {
    pub(crate) fn timer(&self) -> Timer {
        Timer(self.timed.then(Instant::now))
    }
}

impl Timer {
    /// What the call that has ended cost.
    pub fn cost(self, instance: &Instance) -> Cost {
        self.0.map_or(Cost::default(), |began| Cost { fuel: instance.fuel(), time: began.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fuel(costs: &[Option<MessageCost>]) -> Vec<Option<u64>> {
        costs.iter().map(|cost| cost.map(|cost| cost.cost.fuel)).collect()
    }

    #[test]
    fn fuel_belongs_to_the_message_that_was_begun() {
        let mut costs = vec![None; 3];
        let mut marks = Marks::new(3, &[]);
        marks.begin(0, 30);
        marks.begin(1, 130);
        marks.settle(180, &mut costs);
        assert_eq!(fuel(&costs), [Some(110), Some(60), None], "the last was not begun");
        let mut marks = Marks::new(1, &[2]);
        marks.begin(0, 5);
        marks.settle(7, &mut costs);
        assert_eq!(fuel(&costs), [Some(110), Some(60), Some(7)], "its place in the batch is another");
    }

    #[test]
    fn a_plugin_that_begins_nothing_shares_evenly() {
        let mut costs = vec![None; 2];
        Marks::new(2, &[]).settle(100, &mut costs);
        Marks::new(1, &[1]).settle(9, &mut costs);
        assert_eq!(fuel(&costs), [Some(50), Some(59)]);
    }
}
