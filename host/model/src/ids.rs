//! Identifiers and counters as types of their own, so that none is taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }
    };
}

number!(
    /// The store's number of a message: from 1, rising in commit order, below 2^53.
    MessageId, u64
);
number!(
    /// The store's number of a destination; never reused, also after it was removed.
    DestinationId, u32
);
number!(
    /// The store's number of an interface; never reused.
    InterfaceId, u32
);
number!(
    /// What an engine owns as a whole; today each interface is its own group.
    GroupId, u32
);
number!(
    /// Which time in a row of owners a group is owned: rises with each new owner.
    Epoch, u64
);
number!(
    /// Which try of a delivery within its round; the first is 1, 0 means none yet.
    AttemptNo, u32
);
number!(
    /// How often an operator started a delivery anew; the first is 0.
    Round, u32
);

impl MessageId {
    /// Before every message.
    pub const ZERO: MessageId = MessageId(0);
}

impl AttemptNo {
    /// The attempt after this one; stays at the largest number there is.
    #[must_use]
    pub fn next(self) -> AttemptNo {
        AttemptNo(self.0.saturating_add(1))
    }
}

impl Round {
    /// The round after this one; stays at the largest number there is.
    #[must_use]
    pub fn next(self) -> Round {
        Round(self.0.saturating_add(1))
    }
}
