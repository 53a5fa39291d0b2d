//! What a destination promises about a delivery whose end is not known.

/// How often a message may arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guarantee {
    /// It is sent until it is known to have arrived: after a crash or a time-out perhaps once more.
    #[default]
    AtLeastOnce,
    /// What may have arrived is never sent again by itself: a person decides.
    AtMostOnce,
}
