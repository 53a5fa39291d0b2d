//! Budgets of the whole engine.

use std::time::Duration;

use crate::ByteSize;

group! {
    /// Budgets of the whole engine. Every one has a default that suits a small server.
    LimitSettings at "limits" in "portway.toml" {
        /// Bytes of one message; a larger one is refused while it arrives.
        message_bytes_max: ByteSize = ByteSize::mb(64), within(ByteSize::kb(1), ByteSize::mb(1_024));
        /// Bytes of messages that wait to be committed; beyond it intake answers busy.
        intake_bytes_max: ByteSize = ByteSize::mb(256), within(ByteSize::mb(1), ByteSize::mb(64 << 10));
        /// Messages in one commit.
        batch_messages_max: u32 = 2_048, within(1, 65_536);
        /// Bytes of messages in one commit.
        batch_bytes_max: ByteSize = ByteSize::mb(16), within(ByteSize::kb(64), ByteSize::mb(1_024));
        /// Bytes of messages that wait in memory for their delivery; the others wait on disk.
        waiting_bytes_max: ByteSize = ByteSize::mb(64), within(ByteSize::mb(1), ByteSize::mb(64 << 10));
        /// Deliveries that wait in memory; the others wait on disk.
        waiting_max: u32 = 65_536, within(256, 16_777_216);
        /// Runs of deliveries at the same time over all destinations.
        runs_max: u32 = 64, within(1, 4_096);
        /// Results of a destination that are not flushed to disk yet; beyond it its sends wait.
        unflushed_max: u32 = 256, within(1, 65_536);
        /// Pause between two passes that remove old messages.
        prune_every: Duration = Duration::from_secs(60), within(Duration::from_secs(1), Duration::from_secs(86_400));
        /// Instances of plugins at the same time.
        instances_max: u32 = 256, within(1, 16_384);
        /// Memory of one instance of a plugin.
        memory_bytes_max: ByteSize = ByteSize::mb(256), within(ByteSize::mb(1), ByteSize::mb(4_096));
        /// Fuel for each message, in WebAssembly instructions.
        fuel_per_message: u64 = 2_000_000_000, within(1_000_000, 1_000_000_000_000);
        /// Time of one call of a plugin; a call for a destination gets the destination's time-out where that is shorter.
        call_timeout: Duration = Duration::from_secs(30), within(Duration::from_millis(100), Duration::from_secs(3_600));
        /// Bytes that one call may copy into and out of a plugin.
        copy_bytes_max: ByteSize = ByteSize::mb(512), within(ByteSize::mb(1), ByteSize::mb(16 << 10));
        /// How long a stop waits for what is in hand.
        stop_timeout: Duration = Duration::from_secs(30), within(Duration::from_secs(1), Duration::from_secs(3_600));
    }
}
