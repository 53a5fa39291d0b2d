//! Where an interface delivers: transforms, then a sender or a route, and the policy.

use std::time::Duration;

use portway_model::{Guarantee, OnQuarantine, Order};

use crate::list::words;
use crate::{At, Name, PluginUse, RateSettings, RetrySettings};

group! {
    /// Where an interface delivers, as `[[destination]]`.
    /// A destination has a `sender` or a `route`.
    DestinationSettings at "destination" in "interfaces/*.toml" {
        /// Its name; unique within the interface.
        name: At<Name>;
        /// `strict`: one delivery after another.
        /// `key`: one after another for each key, side by side for different keys.
        /// `none`: side by side.
        order: Order = Order::Key;
        /// Runs of deliveries at the same time; with `strict` always one.
        concurrency: u32 = 4, within(1, 256);
        /// Deliveries in one run.
        run_max: u32 = 256, within(1, 256);
        /// Time for one run, transforms and sender together.
        timeout: Duration = Duration::from_secs(30), within(Duration::from_millis(100), Duration::from_secs(3_600));
        /// What a quarantined delivery does to the ones after it in its order.
        /// `continue`: they go on. `hold`: they wait until it was resent or dismissed.
        on_quarantine: OnQuarantine = OnQuarantine::Continue;
        /// How often a message may arrive.
        /// `at-least-once`: it is sent until it is known to have arrived, after a crash or a time-out perhaps once more.
        /// `at-most-once`: what may have arrived is quarantined and never sent again by itself; each run costs a flush before it is sent.
        guarantee: Guarantee = Guarantee::AtLeastOnce;
        /// How failed deliveries are tried again.
        retry: RetrySettings, absent(Defaults);
        /// How fast it is sent to.
        rate: Option<RateSettings>;
        /// Keep what the transforms made and the sender was given, the newest of each delivery, for
        /// `portway message show ID --output DESTINATION`; at most 1 MiB of a message and 8 MiB of a run.
        /// It goes with its message.
        save_output: bool = false;
        /// What changes the message on its way, in this order; at most 16.
        transform: Vec<PluginUse> = Vec::new();
        /// What delivers the message.
        sender: Option<PluginUse>;
        /// Another interface of the project that gets the message, exactly once.
        route: Option<At<Name>>;
    }
}

impl DestinationSettings {
    /// Transforms of one destination.
    pub const TRANSFORMS_MAX: usize = 16;
}

words!(Order { "strict" => Order::Strict, "key" => Order::Key, "none" => Order::None });
words!(Guarantee { "at-least-once" => Guarantee::AtLeastOnce, "at-most-once" => Guarantee::AtMostOnce });
words!(OnQuarantine { "continue" => OnQuarantine::Continue, "hold" => OnQuarantine::Hold });
