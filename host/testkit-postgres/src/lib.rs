//! PostgreSQL servers for tests: clusters of their own, started and stopped by whoever holds them.
//!
//! It finds the server's programs, or installs them, and knows nothing of stores. A cluster lives in a
//! temporary folder, listens on a free port of the loopback interface, and never runs as root. Parts of it
//! can be on a small file system, which a test fills.

mod account;
mod cluster;
mod disk;
mod files;
mod packages;
mod pooler;
mod programs;
mod standby;

pub use cluster::{Cluster, ClusterSettings, ServerCertificate, Small};
pub use disk::SmallDisk;
pub use pooler::{Lending, Pooler};
pub use programs::Programs;
