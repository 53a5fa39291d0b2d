//! What an operator would note in a diary. The core says it, the shell logs it; what can be
//! counted is in `status`.

use portway_model::{DestinationId, Epoch, Failure, MessageId};
use portway_store::Pause;

use crate::age::ClockDoubt;

/// See the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    DestinationWaits {
        name: DestinationName,
        why: Failure,
    },
    DestinationStopped {
        name: DestinationName,
        why: Failure,
    },
    DestinationPaused {
        name: DestinationName,
        pause: Pause,
    },
    /// It works, or may be tried, again.
    DestinationResumed {
        name: DestinationName,
    },
    Quarantined {
        name: DestinationName,
        message: MessageId,
        why: Failure,
    },
    /// It is not in the project any more, and deliveries wait for it.
    Orphaned {
        destination: DestinationId,
    },
    /// No message is taken.
    IntakeClosed {
        why: Failure,
    },
    IntakeOpened,
    /// This engine runs the deliveries of its groups from now on.
    Owns {
        epoch: Epoch,
        /// The owner before did not stop in order.
        unclean: bool,
    },
    /// Others may run them: it begins nothing new.
    OwnsNoLonger,
    /// Messages do not age as the clock says.
    ClockDoubted {
        doubt: ClockDoubt,
    },
    ClockBelieved,
}

/// A destination as people call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationName {
    pub interface: String,
    pub destination: String,
}

impl Fact {
    pub(crate) fn emit(&self) {
        match self {
            Fact::DestinationWaits { name: DestinationName { interface, destination }, why } => {
                tracing::warn!(%interface, %destination, code = %why.code, "waits: {}", why.text);
            }
            Fact::DestinationStopped { name: DestinationName { interface, destination }, why } => {
                tracing::error!(%interface, %destination, code = %why.code, "stopped: {}", why.text);
            }
            Fact::DestinationPaused { name: DestinationName { interface, destination }, pause } => {
                let Pause { author, reason, .. } = pause;
                tracing::warn!(%interface, %destination, %author, "paused: {reason}");
            }
            Fact::DestinationResumed { name: DestinationName { interface, destination } } => {
                tracing::info!(%interface, %destination, "goes on");
            }
            Fact::Quarantined { name: DestinationName { interface, destination }, message, why } => {
                tracing::debug!(%interface, %destination, message_id = %message, code = %why.code, "quarantined: {}", why.text);
            }
            Fact::Orphaned { destination } => {
                tracing::warn!(%destination, "deliveries wait for a destination that is not in the project");
            }
            Fact::IntakeClosed { why } => {
                tracing::warn!(code = %why.code, "takes no messages: {}", why.text);
            }
            Fact::IntakeOpened => tracing::info!("takes messages again"),
            Fact::Owns { epoch, unclean } => tracing::info!(%epoch, unclean, "delivers from now on"),
            Fact::OwnsNoLonger => {
                tracing::warn!(
                    "the store does not know this engine as the owner any more: it stores messages and delivers none"
                );
            }
            Fact::ClockDoubted { doubt } => {
                let direction = if doubt.is_ahead { "ahead of" } else { "behind" };
                let (off_s, after_s) = (doubt.off.as_secs(), doubt.after.as_secs());
                tracing::warn!(
                    off_s,
                    after_s,
                    "the clock is {direction} the age of messages: they age as time passes until it is believed"
                );
            }
            Fact::ClockBelieved => tracing::info!("messages age as the clock says again"),
        }
    }
}
