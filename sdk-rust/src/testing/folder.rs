//! A granted folder of the stage: files with the times and identities they have in the host.
//!
//! A file that was opened stays what it was when another takes its name, and shows what is
//! written to it afterwards, as an open file does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::files::{Entry, Error};

/// Bytes that open files share.
pub(crate) type Bytes = Rc<RefCell<Vec<u8>>>;

#[derive(Clone, Debug)]
pub(crate) struct StagedFile {
    pub bytes: Bytes,
    pub modified_ms: u64,
    pub identity: u64,
}

/// Files by their paths. Folders are there while something is in them.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    files: BTreeMap<String, StagedFile>,
}

impl Folder {
    pub fn get(&self, path: &str) -> Option<&StagedFile> {
        self.files.get(path)
    }

    pub fn get_mut(&mut self, path: &str) -> Option<&mut StagedFile> {
        self.files.get_mut(path)
    }

    pub fn insert(&mut self, path: &str, file: StagedFile) {
        self.files.insert(path.to_owned(), file);
    }

    pub fn remove(&mut self, path: &str) -> Option<StagedFile> {
        self.files.remove(path)
    }

    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }

    /// Names directly below a path, in byte order.
    pub fn scan(&self, path: &str, after: Option<&str>, limit: u32) -> Vec<Entry> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
        for (path, file) in &self.files {
            let Some(below) = path.strip_prefix(&prefix) else { continue };
            match below.split_once('/') {
                None => entries.insert(below, entry(below, file)),
                Some((folder, _)) => entries.insert(folder, folder_entry(folder)),
            };
        }
        let wanted = entries.into_iter().filter(|(name, _)| after.is_none_or(|after| *name > after));
        wanted.take(usize::try_from(limit).unwrap_or(usize::MAX)).map(|(_, entry)| entry).collect()
    }

    pub fn stat(&self, path: &str) -> Result<Entry, Error> {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.files.get(path).map(|file| entry(name, file)).ok_or(Error::NotFound)
    }
}

fn entry(name: &str, file: &StagedFile) -> Entry {
    Entry {
        name: name.to_owned(),
        size: file.bytes.borrow().len() as u64,
        modified_ms: file.modified_ms,
        identity: file.identity.to_string(),
        is_folder: false,
    }
}

fn folder_entry(name: &str) -> Entry {
    Entry { name: name.to_owned(), size: 0, modified_ms: 0, identity: String::new(), is_folder: true }
}
