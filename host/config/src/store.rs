//! Where messages are kept, and for how long.

use portway_model::Tier;

use crate::{ByteSize, ProjectPath, Secret};

group! {
    /// The embedded store, or a PostgreSQL database.
    StoreSettings at "store" in "portway.toml" {
        /// The database file, on a local disk.
        /// Its folder is the engine's own: the control token and the cache of compiled plugins are there, too.
        path: ProjectPath = ProjectPath::relative("data/portway.db"), marked(Env);
        /// A PostgreSQL database (15 or newer) instead of the file, such as `postgres://portway:${secret:database}@db/portway?sslmode=verify-full`.
        /// It may name several servers, `postgres://db1,db2/portway`: the one that accepts writes is used.
        /// Several engines may use it: one delivers, the others store and stand by. The folder of `path` stays the engine's own.
        url: Option<Secret>, marked(Secret);
        /// The engine's name in that database; one process at a time has it.
        /// Without it the name is that of the machine, and a number that stands for the folder of `path`.
        engine: Option<String>, marked(Env);
        /// How long finished messages are kept: one, three or seven weeks. Interfaces can have their own.
        /// What is pending stays. A shorter one waits for `portway retention confirm`.
        retention: Tier = Tier::LONGEST;
        /// Below so much free disk, intake closes; deliveries go on.
        free_bytes_min: ByteSize = ByteSize::mb(256), within(ByteSize::mb(16), ByteSize::mb(1 << 20));
        /// Above so much write-ahead log, intake closes until it was written back.
        log_bytes_max: ByteSize = ByteSize::mb(1_024), within(ByteSize::mb(16), ByteSize::mb(64 << 10));
    }
}
