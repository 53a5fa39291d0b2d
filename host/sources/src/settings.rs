//! Limits of a driver. Those of its listener are in `net::listen::ListenSettings`.

use std::time::Duration;

/// What one connection may take, and how long things may last.
#[derive(Clone, Copy, Debug)]
pub struct SourceLimits {
    /// Bytes of one message; more that belongs to no item yet ends the connection.
    pub message_bytes_max: usize,
    /// Items received and not answered; beyond it the connection is not read.
    pub items_in_flight_max: usize,
    /// Bytes of messages received and not answered; beyond it the connection is not read.
    pub bytes_in_flight_max: usize,
    /// A peer that does not take its answer for so long is given up.
    pub write_timeout: Duration,
    /// After the word to stop, frames that have begun may go on for so long.
    pub stop_frame_timeout: Duration,
    /// After the word to stop, everything ends within this time.
    pub stop_timeout: Duration,
    /// Before a peer hears that the intake is busy or full, so that one which asks again at
    /// once does not keep everybody busy.
    pub busy_pause: Duration,
    /// What a peer still sends after its connection was ended is thrown away for so long, so
    /// that it can read the last answer.
    pub linger: Duration,
}

impl Default for SourceLimits {
    fn default() -> Self {
        SourceLimits {
            message_bytes_max: 64 << 20,
            items_in_flight_max: 256,
            bytes_in_flight_max: 8 << 20,
            write_timeout: Duration::from_secs(30),
            stop_frame_timeout: Duration::from_secs(2),
            stop_timeout: Duration::from_secs(10),
            busy_pause: Duration::from_millis(100),
            linger: Duration::from_secs(1),
        }
    }
}
