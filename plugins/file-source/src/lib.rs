//! The file source: files of a granted folder become messages, whole or record by record.
//!
//! [`look`] finds out which files are ready, `read` takes records out of one, [`source`]
//! fills a poll with them, `settle` moves or deletes what is stored. All that must survive
//! is in the [`cursor`]; what an instance keeps beside it only saves work. Where records
//! end is known by `portway-records`.

pub mod cursor;
mod draft;
mod look;
mod read;
mod settings;
mod settle;
mod source;
mod work;

pub use settings::Settings;
pub use source::FileSource;

/// The slots of the manifest.
const INBOX: &str = "inbox";
const DONE: &str = "done";
const FAILED: &str = "failed";

portway_sdk::export_poll_source!(FileSource);
