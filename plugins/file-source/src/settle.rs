//! After the commit: files that are done with are moved or deleted.
//!
//! Safe to repeat. A file that is gone was moved before; one that is not what was read is
//! another file and stays.

use portway_sdk::{Fate, Receipt, Trouble, clock, files, log};

use crate::cursor::{Cursor, Ended, Known, Outcome};
use crate::draft::ordinal_of;
use crate::settings::{After, AfterFailure, Rules};
use crate::{DONE, FAILED, INBOX};

/// Names that are tried where a name is taken.
const NAMES_MAX: u32 = 100;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 255;

/// Moves or deletes what the committed cursor says has ended.
pub fn settle(rules: &Rules, cursor: &Cursor, receipts: &[Receipt]) -> Result<(), Trouble> {
    let not_stored = not_stored(cursor, receipts);
    for ended in &cursor.ended {
        let outcome = if not_stored.contains(&ended.ordinal) { Outcome::Failed } else { ended.outcome };
        act(rules, ended, outcome)?;
    }
    Ok(())
}

/// Files of which the host refused a record: they fail, whatever the cursor says.
fn not_stored(cursor: &Cursor, receipts: &[Receipt]) -> Vec<u32> {
    let mut ordinals = Vec::new();
    for receipt in receipts {
        let Fate::NotStored(later) = &receipt.fate else { continue };
        let ordinal = ordinal_of(&receipt.ticket);
        if ordinals.contains(&ordinal) {
            continue;
        }
        ordinals.push(ordinal);
        let ended = cursor.ended.iter().find(|ended| ended.ordinal == ordinal).map(|ended| &ended.path);
        let path = ended.or_else(|| cursor.begun.first().map(|begun| &begun.file.path));
        let path = path.map_or("a file", String::as_str);
        log::notice("record-not-stored", format!("a record of `{path}` was not stored: {}", later.failure));
    }
    ordinals
}

fn act(rules: &Rules, ended: &Ended, outcome: Outcome) -> Result<(), Trouble> {
    let entry = match files::stat(INBOX, &ended.path) {
        Ok(entry) => entry,
        // Moved before, or taken away by somebody else.
        Err(files::Error::NotFound) => return remove_marker(rules, ended),
        Err(error) => return not_done(ended, &error),
    };
    if Known::of(ended.path.clone(), entry).mark() != ended.mark {
        log::notice(
            "changed-after-reading",
            format!("`{}` changed after it was read; it is taken for a new file", ended.path),
        );
        return Ok(());
    }
    let done = match (outcome, rules.after, rules.after_failure) {
        (Outcome::Read, After::Move, _) => move_to(DONE, ended),
        (Outcome::Failed, _, AfterFailure::Move) => move_to(FAILED, ended),
        (Outcome::Read, After::Delete, _) => files::remove(INBOX, &ended.path),
        (Outcome::Read, After::Leave, _) | (Outcome::Failed, _, AfterFailure::Leave) => return Ok(()),
    };
    match done {
        Ok(()) | Err(files::Error::NotFound) => remove_marker(rules, ended),
        Err(error) => not_done(ended, &error),
    }
}

/// Under its name; where that is taken, with the time it ended in it.
fn move_to(folder: &str, ended: &Ended) -> Result<(), files::Error> {
    let mut result = Err(files::Error::Exists);
    for attempt in 0..NAMES_MAX {
        let to_path = target_name(ended, attempt);
        result = files::rename(files::Move {
            folder: INBOX,
            path: &ended.path,
            to_folder: folder,
            to_path: &to_path,
            on_exists: files::OnExists::Fail,
        });
        if result != Err(files::Error::Exists) {
            break;
        }
    }
    result
}

/// `order.csv`, then `order-20260228T235959.123Z.csv`, then `order-20260228T235959.123Z-2.csv`.
fn target_name(ended: &Ended, attempt: u32) -> String {
    // The other folder has no folders in it.
    let name = match ended.path.contains('/') {
        true => ended.path.replace('%', "%25").replace('/', "%2F"),
        false => ended.path.clone(),
    };
    if attempt == 0 && name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let stamp: String = clock::rfc3339(ended.at_ms).chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let again = if attempt > 1 { format!("-{attempt}") } else { String::new() };
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() < 32 => {
            (stem, format!(".{extension}"))
        }
        _ => (name.as_str(), String::new()),
    };
    let end = format!("-{stamp}{again}{extension}");
    let fits = stem.floor_char_boundary(NAME_BYTES_MAX.saturating_sub(end.len()));
    let stem = stem.get(..fits).unwrap_or_default();
    format!("{stem}{end}")
}

fn remove_marker(rules: &Rules, ended: &Ended) -> Result<(), Trouble> {
    let Some(marker) = &rules.marker else { return Ok(()) };
    match files::remove(INBOX, &format!("{}{marker}", ended.path)) {
        Ok(()) | Err(files::Error::NotFound) => Ok(()),
        Err(error) => not_done(ended, &error),
    }
}

/// What is wrong with the folder makes the host ask again. What is wrong with the file is
/// told: it stays, and is not read again.
fn not_done(ended: &Ended, error: &files::Error) -> Result<(), Trouble> {
    let text = format!("`{}` was read and cannot be moved or deleted: {error}", ended.path);
    match error {
        files::Error::Denied | files::Error::Unsupported => Err(Trouble::misconfigured(
            "not-moved",
            format!("{text}; grant `inbox` and the folder it goes to with write access"),
        )),
        files::Error::Full | files::Error::Unavailable(_) => Err(Trouble::unavailable("not-moved", text)),
        files::Error::NotFound | files::Error::Exists | files::Error::NotAFile | files::Error::Other(_) => {
            log::notice("not-moved", format!("{text}; it stays where it is"));
            Ok(())
        }
    }
}
