//! Where messages are kept, and for how long.

use portway_model::Tier;

use crate::{ByteSize, ProjectPath};

group! {
    /// The embedded store.
    StoreSettings at "store" in "portway.toml" {
        /// The database file, on a local disk.
        /// Its folder is the engine's own: the control token and the cache of compiled plugins are there, too.
        path: ProjectPath = ProjectPath::relative("data/portway.db"), marked(Env);
        /// How long finished messages are kept: one, three or seven weeks. Interfaces can have their own.
        /// What is pending stays. A shorter one waits for `portway retention confirm`.
        retention: Tier = Tier::LONGEST;
        /// Below so much free disk, intake closes; deliveries go on.
        free_bytes_min: ByteSize = ByteSize::mb(256), within(ByteSize::mb(16), ByteSize::mb(1 << 20));
        /// Above so much write-ahead log, intake closes until it was written back.
        log_bytes_max: ByteSize = ByteSize::mb(1_024), within(ByteSize::mb(16), ByteSize::mb(64 << 10));
    }
}
