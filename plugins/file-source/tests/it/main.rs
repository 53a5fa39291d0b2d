//! The source against a host that keeps its promises and loses its instances: cases from
//! files, restarts at every record, files that change, folders that fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod cases;
mod changes;
mod faults;
mod limits;
mod ready;
mod restarts;

use portway_file_source::FileSource;
use portway_sdk::testing::{self, PollHost};

const SETTLE_MS: u64 = 2_000;

/// A stage with all folders, at noon.
fn stage() {
    testing::reset();
    testing::set_time(1_772_280_000_000);
    ["inbox", "done", "failed"].iter().for_each(|folder| testing::grant_folder(folder));
}

fn open(settings: &str) -> PollHost<FileSource> {
    PollHost::open(settings).unwrap()
}

/// Looks, lets files rest, and reads all that is ready.
fn read_all(host: &mut PollHost<FileSource>) {
    host.drain().unwrap();
    testing::pass_time(SETTLE_MS);
    host.drain().unwrap();
}

fn bodies(host: &PollHost<FileSource>) -> Vec<String> {
    host.stored.iter().map(|stored| String::from_utf8_lossy(&stored.bytes).into_owned()).collect()
}

fn codes() -> Vec<String> {
    testing::take_notices().into_iter().map(|(code, _)| code).collect()
}
