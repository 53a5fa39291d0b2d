//! The states of a delivery and of a message, and their stored numbers.
//!
//! Numbers are never reused. A number from a newer binary reads as `None`: the row
//! is shown and left alone.

use serde::{Deserialize, Serialize};

macro_rules! stored_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $number:literal $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$case_doc])* $case),+ }

        impl $name {
            /// Every case, in the order of its number.
            pub const ALL: &[$name] = &[$($name::$case),+];

            /// As stored.
            pub const fn number(self) -> u8 {
                match self { $($name::$case => $number),+ }
            }

            /// From what is stored.
            pub const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some($name::$case),)+ _ => None }
            }

            /// As shown to people and programs.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$case => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.iter().copied().find(|case| case.as_str() == text).ok_or(())
            }
        }
    };
}

stored_enum!(
    /// Where a delivery stands.
    DeliveryState {
        /// To be sent, or sent again.
        Pending = 0 "pending",
        /// Its sender said that it arrived.
        Sent = 1 "sent",
        /// A transform said that it is not for this destination.
        Filtered = 2 "filtered",
        /// A person must look; never retried by itself.
        Quarantined = 3 "quarantined",
        /// A person decided that it is not to be sent.
        Dismissed = 4 "dismissed",
    }
);

stored_enum!(
    /// Where a message stands, from its deliveries.
    MessageStatus {
        /// At least one delivery is pending.
        Pending = 0 "pending",
        /// Nothing is pending and nothing is quarantined.
        Finished = 1 "finished",
        /// Nothing is pending, at least one delivery is quarantined.
        Quarantined = 2 "quarantined",
        /// Repeats an earlier message; has no deliveries and no body of its own.
        Duplicate = 3 "duplicate",
    }
);

impl DeliveryState {
    /// Nothing more is done unless an operator asks.
    pub const fn is_final(self) -> bool {
        match self {
            DeliveryState::Pending => false,
            DeliveryState::Sent
            | DeliveryState::Filtered
            | DeliveryState::Quarantined
            | DeliveryState::Dismissed => true,
        }
    }
}

impl MessageStatus {
    /// What a message's deliveries make of it.
    pub fn of_deliveries(states: impl IntoIterator<Item = DeliveryState>) -> MessageStatus {
        let mut status = MessageStatus::Finished;
        for state in states {
            match state {
                DeliveryState::Pending => return MessageStatus::Pending,
                DeliveryState::Quarantined => status = MessageStatus::Quarantined,
                DeliveryState::Sent | DeliveryState::Filtered | DeliveryState::Dismissed => {}
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_numbers_read_back() {
        for state in DeliveryState::ALL {
            assert_eq!(DeliveryState::from_number(state.number()), Some(*state));
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        assert_eq!(DeliveryState::from_number(200), None);
    }

    #[test]
    fn a_message_is_pending_while_any_delivery_is() {
        use DeliveryState::{Pending, Quarantined, Sent};
        assert_eq!(MessageStatus::of_deliveries([Quarantined, Pending]), MessageStatus::Pending);
        assert_eq!(MessageStatus::of_deliveries([Sent, Quarantined]), MessageStatus::Quarantined);
        assert_eq!(MessageStatus::of_deliveries([]), MessageStatus::Finished);
    }
}
