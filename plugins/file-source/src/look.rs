//! Which files of the inbox are ready, the oldest first.
//!
//! Whether a file rests is found out over two looks; the time of the first is in the
//! cursor. Files that were passed are forgotten once they are gone.

use std::collections::{HashMap, HashSet, VecDeque};

use portway_sdk::{Trouble, files, log};

use crate::INBOX;
use crate::cursor::{Cursor, FileMark, Known, PASSED_MAX, WAITING_MAX, WAITING_TIMES_MAX, Waiting};
use crate::settings::Rules;

/// Names of one scan, by the contract.
const SCAN_MAX: u32 = 1_000;
/// Bytes of a path, by the host.
const PATH_BYTES_MAX: usize = 1_024;
/// Names that are looked at altogether.
pub const NAMES_MAX: usize = 10_000;

/// What a look shows.
#[derive(Debug, Default)]
pub struct Sight {
    /// Files to read, in this order.
    pub ready: VecDeque<Known>,
    /// How long until the next of the others may be ready.
    pub rests_in_ms: Option<u64>,
    /// There is more than may be looked at.
    pub is_cut: bool,
}

/// Looks at the inbox, and brings the cursor up to date with it.
pub fn look(rules: &Rules, cursor: &mut Cursor, now_ms: u64) -> Result<Sight, Trouble> {
    let mut found = Found::default();
    walk(rules, "", 0, &mut found)?;
    let marks: HashSet<FileMark> = found.files.iter().map(|(_, mark)| *mark).collect();
    // What was to be moved or deleted is gone, or could not be.
    cursor.moved.retain(|mark| marks.contains(mark));
    if !found.is_cut {
        cursor.passed.retain(|mark| marks.contains(mark));
        forget_vanished(cursor, &found.files);
    }
    if cursor.is_full() {
        return Err(Trouble::misconfigured(
            "inbox-not-emptied",
            format!("{PASSED_MAX} files that were read or failed lie in the inbox; move or delete them"),
        ));
    }
    pass_unspeakable(cursor, &mut found.files);
    let passed: HashSet<FileMark> = cursor.passed.iter().chain(&cursor.moved).copied().collect();
    found.files.retain(|(_, mark)| !passed.contains(mark));
    found.files.sort_by(|(a, _), (b, _)| (a.modified_ms, &a.path).cmp(&(b.modified_ms, &b.path)));
    if rules.marker.is_some() || rules.settle_ms == 0 {
        cursor.waiting.clear();
        return Ok(Sight {
            ready: found.files.into_iter().map(|(file, _)| file).collect(),
            rests_in_ms: None,
            is_cut: found.is_cut,
        });
    }
    Ok(Sight { is_cut: found.is_cut, ..rest(rules, cursor, found.files, now_ms) })
}

/// Files whose names the host takes from nobody are passed over, with a notice each.
fn pass_unspeakable(cursor: &mut Cursor, files: &mut Vec<(Known, FileMark)>) {
    files.retain(|(file, mark)| {
        let is_odd = |character: char| character == '\\' || character.is_control();
        if file.path.len() <= PATH_BYTES_MAX && !file.path.contains(is_odd) {
            return true;
        }
        if !cursor.is_full() && !cursor.passed.contains(mark) {
            cursor.passed.push(*mark);
            log::notice(
                "odd-name",
                format!(
                    "`{}` is left alone: its name is too long or holds a backslash or a control character",
                    file.path
                ),
            );
        }
        false
    });
}

/// Files that were begun and are gone are forgotten, with a notice.
fn forget_vanished(cursor: &mut Cursor, files: &[(Known, FileMark)]) {
    cursor.begun.retain(|begun| {
        let same = |file: &Known| file.path == begun.file.path || file.identity == begun.file.identity;
        let is_there = files.iter().any(|(file, _)| same(file));
        if !is_there {
            log::notice(
                "file-vanished",
                format!(
                    "`{}` is gone after {} of its records became messages",
                    begun.file.path, begun.records
                ),
            );
        }
        is_there
    });
}

/// Parts files that rest from those that wait.
fn rest(rules: &Rules, cursor: &mut Cursor, files: Vec<(Known, FileMark)>, now_ms: u64) -> Sight {
    let mut since: HashMap<[u8; 6], u64> = HashMap::new();
    for group in &cursor.waiting {
        // A clock that was set back makes a file wait anew, not for ever.
        since.extend(group.files.iter().map(|file| (*file, group.since_ms.min(now_ms))));
    }
    let mut sight = Sight::default();
    let mut groups: Vec<Waiting> = Vec::new();
    let mut watched = 0;
    for (file, mark) in files {
        let [a, b, c, d, e, f, ..] = mark;
        let short = [a, b, c, d, e, f];
        let since_ms = since.get(&short).copied().unwrap_or(now_ms);
        if watched < WAITING_MAX {
            // Those that are ready are watched too: they may not be read in this poll.
            if let Some(group) = groups.iter_mut().find(|group| group.since_ms == since_ms) {
                group.files.push(short);
            } else if groups.len() < WAITING_TIMES_MAX {
                groups.push(Waiting { since_ms, files: vec![short] });
            }
            watched += 1;
        }
        let rests_in_ms = since_ms.saturating_add(rules.settle_ms).saturating_sub(now_ms);
        if rests_in_ms == 0 {
            sight.ready.push_back(file);
        } else {
            sight.rests_in_ms = Some(sight.rests_in_ms.map_or(rests_in_ms, |other| other.min(rests_in_ms)));
        }
    }
    cursor.waiting = groups;
    sight
}

#[derive(Default)]
struct Found {
    files: Vec<(Known, FileMark)>,
    names: usize,
    /// There is more than may be looked at.
    is_cut: bool,
}

fn walk(rules: &Rules, path: &str, depth: u8, found: &mut Found) -> Result<(), Trouble> {
    let mut entries: Vec<files::Entry> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.name.as_str());
        let page = match files::scan(INBOX, path, after, SCAN_MAX) {
            // A folder below the inbox may go while it is looked through.
            Err(files::Error::NotFound) if depth > 0 => return Ok(()),
            page => page.map_err(of_inbox)?,
        };
        // A page may be short since names went while it was made: only an empty one is the end.
        let is_end = page.is_empty();
        found.names += page.len();
        entries.extend(page);
        if found.names >= NAMES_MAX {
            found.is_cut = true;
        }
        if is_end || found.is_cut {
            break;
        }
    }
    let markers: HashSet<String> = match &rules.marker {
        None => HashSet::new(),
        Some(marker) => {
            let named = entries.iter().filter(|entry| !entry.is_folder);
            named.filter_map(|entry| entry.name.strip_suffix(marker)).map(str::to_owned).collect()
        }
    };
    for entry in entries.into_iter().filter(|entry| !entry.name.starts_with('.')) {
        let below = if path.is_empty() { entry.name.clone() } else { format!("{path}/{}", entry.name) };
        if entry.is_folder {
            if depth < rules.depth && !found.is_cut {
                walk(rules, &below, depth + 1, found)?;
            }
        } else if is_wanted(rules, &entry.name, &markers) {
            let file = Known::of(below, entry);
            let mark = file.mark();
            found.files.push((file, mark));
        }
    }
    Ok(())
}

fn is_wanted(rules: &Rules, name: &str, markers: &HashSet<String>) -> bool {
    let is_ready = match &rules.marker {
        None => true,
        Some(marker) => !name.ends_with(marker.as_str()) && markers.contains(name),
    };
    is_ready && rules.patterns.iter().any(|pattern| pattern.matches(name))
}

/// Why the inbox cannot be looked at.
pub fn of_inbox(error: files::Error) -> Trouble {
    match error {
        files::Error::Denied | files::Error::Unsupported => {
            Trouble::misconfigured("denied", format!("the folder `{INBOX}` cannot be read: {error}"))
        }
        error => {
            Trouble::unavailable("inbox-unavailable", format!("the folder `{INBOX}` cannot be read: {error}"))
        }
    }
}
