//! Where messages are kept, and for how long.

use std::time::Duration;

use crate::{ByteSize, ProjectPath};

group! {
    /// The embedded store.
    StoreSettings at "store" in "portway.toml" {
        /// The database file, on a local disk.
        /// Its folder is the engine's own: the control token and the cache of compiled plugins are there, too.
        path: ProjectPath = ProjectPath::relative("data/portway.db"), marked(Env);
        /// Finished messages older than this are removed.
        /// What is pending or quarantined stays.
        keep: Duration = Duration::from_secs(30 * 86_400), within(Duration::from_secs(60), Duration::from_secs(3_650 * 86_400));
        /// Below so much free disk, intake closes; deliveries go on.
        free_bytes_min: ByteSize = ByteSize::mb(256), within(ByteSize::mb(16), ByteSize::mb(1 << 20));
        /// Above so much write-ahead log, intake closes until it was written back.
        log_bytes_max: ByteSize = ByteSize::mb(1_024), within(ByteSize::mb(16), ByteSize::mb(64 << 10));
    }
}
