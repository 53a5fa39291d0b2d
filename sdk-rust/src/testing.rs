//! The stage that native tests play on: stand-ins for the host's services.
//!
//! Each thread has its own, so tests do not disturb one another; [`reset`] clears it.
//! Folders and peers exist once a test has granted them, everything else is denied, as in
//! the host.

mod case;
pub(crate) mod folder;
mod http;
mod poll;
mod secret;
mod sending;
mod state;
mod stored;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::log::Level;
use crate::{HttpError, Response, connect, files, secrets};

use folder::{Folder, StagedFile};

pub use case::{Case, describe_sends, describe_transforms};
pub use http::HttpHost;
pub use poll::PollHost;
pub use secret::{fail_secrets, grant_reveal, grant_sign};
pub use state::{fail_state, grant_state, state};
pub use stored::Stored;

pub(crate) use secret::StagedSecret;
pub(crate) use state::StagedState;

/// What a plugin did, in the order it did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `progress::begin`
    Begin(u32),
    /// `progress::sent`
    Sent(u32),
    Append {
        folder: String,
        path: String,
        bytes: Vec<u8>,
    },
    Sync {
        folder: String,
        path: String,
    },
    Put {
        folder: String,
        path: String,
        bytes: Vec<u8>,
    },
    Open {
        peer: String,
        fresh: bool,
    },
    /// A credential is written as its name: `<Plain>`.
    Write(Vec<u8>),
    StartTls,
    Keep,
    /// A connection was dropped without being kept.
    Close,
    /// A request to a granted API.
    Ask {
        method: String,
        url: String,
        headers: Vec<(String, String)>,
        /// None: that of the message at hand.
        body: Option<Vec<u8>>,
    },
}

/// What a read from a peer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerRead {
    /// No bytes: the peer has closed.
    Bytes(Vec<u8>),
    Fails(connect::Error),
}

/// What a peer does on one connection. When the reads are used up it stays silent: the
/// next read times out.
#[derive(Clone, Debug)]
pub struct PeerScript {
    pub(crate) reads: VecDeque<PeerRead>,
    pub(crate) writes: VecDeque<Result<(), connect::Error>>,
    pub(crate) protection: connect::Protection,
    pub(crate) tls_failure: Option<connect::Error>,
    pub(crate) credentials: bool,
}

impl Default for PeerScript {
    fn default() -> Self {
        PeerScript {
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            protection: connect::Protection::None,
            tls_failure: None,
            credentials: false,
        }
    }
}

impl PeerScript {
    /// A peer that takes everything and says nothing.
    pub fn new() -> Self {
        PeerScript::default()
    }

    /// The next read gives these bytes; none: the peer has closed.
    pub fn says(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.reads.push_back(PeerRead::Bytes(bytes.as_ref().to_vec()));
        self
    }

    /// The next read fails.
    pub fn read_fails(mut self, error: connect::Error) -> Self {
        self.reads.push_back(PeerRead::Fails(error));
        self
    }

    /// What the grant says of TLS.
    pub fn protected(mut self, protection: connect::Protection) -> Self {
        self.protection = protection;
        self
    }

    /// TLS that begins later fails.
    pub fn tls_fails(mut self, error: connect::Error) -> Self {
        self.tls_failure = Some(error);
        self
    }

    /// The grant has credentials.
    pub fn with_credentials(mut self) -> Self {
        self.credentials = true;
        self
    }

    /// The next write works.
    pub fn write_works(mut self) -> Self {
        self.writes.push_back(Ok(()));
        self
    }

    /// The next write fails.
    pub fn write_fails(mut self, error: connect::Error) -> Self {
        self.writes.push_back(Err(error));
        self
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub events: Vec<Event>,
    pub logs: Vec<(Level, String)>,
    pub notices: Vec<(String, String)>,
    pub folders: BTreeMap<String, Folder>,
    files_made: u64,
    time_ms: Option<u64>,
    /// Operation, how many times it still works, and what happens then.
    pub file_failures: Vec<(String, u32, files::Error)>,
    pub peers: BTreeMap<String, VecDeque<Result<PeerScript, connect::Error>>>,
    pub kept: BTreeMap<String, PeerScript>,
    pub apis: BTreeMap<String, VecDeque<Result<Response, HttpError>>>,
    pub secrets: BTreeMap<String, StagedSecret>,
    pub secret_failures: VecDeque<secrets::Error>,
    pub state: StagedState,
}

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::default();
}

pub(crate) fn with_stage<T>(run: impl FnOnce(&mut Stage) -> T) -> T {
    STAGE.with_borrow_mut(run)
}

/// Clears the stage.
pub fn reset() {
    with_stage(|stage| *stage = Stage::default());
}

/// What the plugin did so far.
pub fn events() -> Vec<Event> {
    with_stage(|stage| stage.events.clone())
}

/// What the plugin did since this was asked last.
pub fn take_events() -> Vec<Event> {
    with_stage(|stage| std::mem::take(&mut stage.events))
}

/// The log lines so far.
pub fn logs() -> Vec<(Level, String)> {
    with_stage(|stage| stage.logs.clone())
}

/// The notices so far: code and text.
pub fn notices() -> Vec<(String, String)> {
    with_stage(|stage| stage.notices.clone())
}

/// The notices since this was asked last.
pub fn take_notices() -> Vec<(String, String)> {
    with_stage(|stage| std::mem::take(&mut stage.notices))
}

impl Stage {
    /// None: no test has set the clock.
    pub fn now_ms(&self) -> Option<u64> {
        self.time_ms
    }

    /// A file that nobody has seen before, made now.
    pub fn new_file(&mut self, bytes: &[u8]) -> StagedFile {
        self.files_made += 1;
        StagedFile {
            bytes: Rc::new(RefCell::new(bytes.to_vec())),
            modified_ms: self.time_ms.unwrap_or_default(),
            identity: self.files_made,
        }
    }
}

/// Stops the clock at this time, in milliseconds since 1970.
pub fn set_time(ms: u64) {
    with_stage(|stage| stage.time_ms = Some(ms));
}

/// Moves the clock that a test has set; without one it begins at 0.
pub fn pass_time(ms: u64) {
    with_stage(|stage| stage.time_ms = Some(stage.time_ms.unwrap_or_default() + ms));
}

/// Grants a folder.
pub fn grant_folder(name: &str) {
    with_stage(|stage| {
        stage.folders.entry(name.to_owned()).or_default();
    });
}

/// What is in a file; none: there is no such file.
pub fn file(folder: &str, path: &str) -> Option<Vec<u8>> {
    with_stage(|stage| Some(stage.folders.get(folder)?.get(path)?.bytes.borrow().clone()))
}

/// The paths in a folder.
pub fn paths(folder: &str) -> Vec<String> {
    with_stage(|stage| stage.folders.get(folder).into_iter().flat_map(Folder::paths).cloned().collect())
}

/// Puts a file into a granted folder, now; one that has the name is another file.
pub fn put_file(folder: &str, path: &str, bytes: &[u8]) {
    grant_folder(folder);
    with_stage(|stage| {
        let file = stage.new_file(bytes);
        if let Some(folder) = stage.folders.get_mut(folder) {
            folder.insert(path, file);
        }
    });
}

/// Changes a file where it lies: it stays the same one, modified now.
pub fn edit_file(folder: &str, path: &str, edit: impl FnOnce(&mut Vec<u8>)) {
    with_stage(|stage| {
        let now = stage.time_ms.unwrap_or_default();
        if let Some(file) = stage.folders.get_mut(folder).and_then(|folder| folder.get_mut(path)) {
            edit(&mut file.bytes.borrow_mut());
            file.modified_ms = now;
        }
    });
}

/// Gives a file another time of its last change.
pub fn set_modified(folder: &str, path: &str, ms: u64) {
    with_stage(|stage| {
        if let Some(file) = stage.folders.get_mut(folder).and_then(|folder| folder.get_mut(path)) {
            file.modified_ms = ms;
        }
    });
}

/// Takes a file away; says whether there was one.
pub fn remove_file(folder: &str, path: &str) -> bool {
    with_stage(|stage| stage.folders.get_mut(folder).and_then(|folder| folder.remove(path)).is_some())
}

/// The next `operation` (`append`, `sync`, `put`, `open`, `read`, `stat`, `scan`, `move`, `remove`) fails.
pub fn fail_file(operation: &str, error: files::Error) {
    fail_file_later(operation, 0, error);
}

/// An operation works so many times, then it fails once.
pub fn fail_file_later(operation: &str, works: u32, error: files::Error) {
    with_stage(|stage| stage.file_failures.push((operation.to_owned(), works, error)));
}

/// What the next new connection to a peer does, or why it cannot be dialled. A kept
/// connection goes on with its own script.
pub fn dial(peer: &str, script: Result<PeerScript, connect::Error>) {
    with_stage(|stage| stage.peers.entry(peer.to_owned()).or_default().push_back(script));
}

/// Grants an API, by its slot or by the beginning of its URLs (`https://api.example/v1`), and says
/// what it answers next. When the answers are used up it stays silent: the next request times out.
pub fn api(name: &str, answer: Result<Response, HttpError>) {
    with_stage(|stage| stage.apis.entry(name.to_owned()).or_default().push_back(answer));
}
