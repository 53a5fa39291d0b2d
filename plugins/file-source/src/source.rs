//! The source as the host sees it: fills a poll from one file after the other.
//!
//! A file that was begun goes on before another is taken up, unless it changed: then it
//! waits until it rests again, and the others do not wait for it.

use std::collections::VecDeque;

use portway_records::{Format, Mark};
use portway_sdk::{
    Content, Context, Failure, Found, INLINE_BYTES_MAX, Item, PollSource, Query, Receipt, Trouble, clock,
    files, log,
};

use crate::INBOX;
use crate::cursor::{Begun, Cursor, Ended, Known, Outcome};
use crate::draft::Drafter;
use crate::look::{NAMES_MAX, look, of_inbox};
use crate::read::{Halt, Next, Reading, proof, read_exact};
use crate::settings::{After, AfterFailure, OnError, Rules, Settings};
use crate::settle::settle;
use crate::work::Work;

/// The longest pause: a clock may be set, and a folder may fill, at any time.
const PAUSE_MS_MAX: u64 = 5 * 60 * 1000;
const PAUSE_MS_MIN: u64 = 10;

/// One interface's file source.
#[derive(Debug)]
pub struct FileSource {
    rules: Rules,
    cache: Cache,
    said_cut: bool,
}

/// What saves work while the cursor is the one that was given back last.
#[derive(Debug, Default)]
struct Cache {
    cursor: Vec<u8>,
    reading: Option<(Known, Reading)>,
    /// Ready files of the last look.
    ready: VecDeque<Known>,
}

/// How far a file was read.
enum Reached {
    End,
    /// The poll is full.
    Full,
    Halted(Halt),
}

impl PollSource for FileSource {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(FileSource { rules: Rules::of(settings)?, cache: Cache::default(), said_cut: false })
    }

    fn poll(&mut self, query: Query) -> Result<Found, Trouble> {
        let mut cursor = Cursor::decode(&query.cursor)?;
        // They are settled by now; those that could not be moved are among the passed ones.
        cursor.ended.clear();
        if query.cursor != self.cache.cursor {
            self.cache = Cache::default();
        }
        let mut work = Work::new(cursor, &query, clock::now_ms());
        let filled = match (self.fill(&mut work), work.trouble.take()) {
            (Ok(false), Some(trouble)) if work.items.is_empty() => Err(trouble),
            (filled, _) => filled,
        };
        let is_full = match filled {
            Ok(is_full) => is_full,
            // What was found before is not lost; the trouble comes again.
            Err(_) if !work.items.is_empty() || !work.cursor.ended.is_empty() => true,
            Err(trouble) => {
                self.cache = Cache::default();
                return Err(trouble);
            }
        };
        let again_ms = if is_full { 0 } else { self.pause_ms(&work) };
        self.cache.cursor = work.cursor.encode()?;
        Ok(Found { items: work.items, cursor: self.cache.cursor.clone(), again_ms })
    }

    fn settle(&mut self, cursor: &[u8], receipts: Vec<Receipt>) -> Result<(), Trouble> {
        settle(&self.rules, &Cursor::decode(cursor)?, &receipts)
    }
}

impl FileSource {
    fn pause_ms(&self, work: &Work) -> u32 {
        let interval = u64::try_from(self.rules.interval.as_millis()).unwrap_or(u64::MAX);
        let pause = work.rests_in_ms.map_or(interval, |rests_in| rests_in.min(interval));
        u32::try_from(pause.clamp(PAUSE_MS_MIN, PAUSE_MS_MAX)).unwrap_or(u32::MAX)
    }

    /// Reads until the poll is full or nothing is ready. True: there is more.
    fn fill(&mut self, work: &mut Work) -> Result<bool, Trouble> {
        loop {
            if work.cursor.is_full() {
                // A look forgets those that are gone, or says what is wrong.
                self.cache.ready.clear();
                if work.has_looked {
                    return Ok(true);
                }
                self.look(work)?;
            }
            let Some(begun) = self.next_file(work)? else { return Ok(false) };
            let ordinal = work.files;
            work.files += 1;
            if !work.cursor.has_room_for_ended(&begun.file.path) {
                self.put_back(work, begun);
                return Ok(true);
            }
            let mut begun = begun;
            let reached = match self.rules.format {
                None => self.read_whole(work, &begun.file, ordinal),
                Some(format) => self.read_records(work, format, &mut begun, ordinal),
            };
            match reached {
                Reached::End => self.end(work, &begun.file, Outcome::Read, ordinal),
                Reached::Full => {
                    self.put_back(work, begun);
                    return Ok(true);
                }
                Reached::Halted(halt) => self.halted(work, begun, ordinal, halt)?,
            }
        }
    }

    /// The file to read on, from the place that its records are stored up to.
    fn next_file(&mut self, work: &mut Work) -> Result<Option<Begun>, Trouble> {
        while let Some(begun) = unchanged_begun(work)? {
            if let Some(begun) = self.proven(work, begun)? {
                return Ok(Some(begun));
            }
        }
        loop {
            while let Some(file) = self.cache.ready.pop_front() {
                if work.put_off.contains(&file.path) {
                    continue;
                }
                // What was ready at the last look may be gone or changed by now.
                match files::stat(INBOX, &file.path) {
                    Ok(entry) if file.is(&entry) => {
                        if let Some(begun) = self.resume(work, file)? {
                            return Ok(Some(begun));
                        }
                    }
                    Ok(_) | Err(files::Error::NotFound | files::Error::NotAFile) => {}
                    Err(error) => return Err(of_inbox(error)),
                }
            }
            if work.has_looked {
                return Ok(None);
            }
            self.look(work)?;
        }
    }

    fn look(&mut self, work: &mut Work) -> Result<(), Trouble> {
        work.has_looked = true;
        let sight = look(&self.rules, &mut work.cursor, work.now_ms)?;
        if sight.is_cut && !std::mem::replace(&mut self.said_cut, true) {
            log::notice(
                "inbox-too-full",
                format!("the inbox holds more than {NAMES_MAX} names; the others wait until some are gone"),
            );
        }
        work.rests_in_ms = sight.rests_in_ms;
        self.cache.ready = sight.ready;
        Ok(())
    }

    /// The place of a ready file: where it was left, if it was begun and is the same.
    fn resume(&self, work: &mut Work, file: Known) -> Result<Option<Begun>, Trouble> {
        let same = |begun: &Begun| begun.file.identity == file.identity || begun.file.path == file.path;
        let Some(index) = work.cursor.begun.iter().position(same) else {
            return Ok(Some(fresh(file)));
        };
        let begun = work.cursor.begun.remove(index);
        let before = begun.file.path.clone();
        let Some(begun) = self.proven(work, Begun { file, ..begun })? else { return Ok(None) };
        if begun.records == 0 {
            return Ok(Some(begun));
        }
        let Begun { file: Known { path, .. }, records, .. } = &begun;
        let (code, what) = match *path == before {
            true => ("file-grew", "grew or was touched while it was read".to_owned()),
            false => ("file-renamed", format!("was `{before}` when it was begun")),
        };
        log::notice(code, format!("`{path}` {what}; it is read on behind record {records}"));
        Ok(Some(begun))
    }

    /// The same place where the file is shown to be the one it belongs to, else its start.
    /// None: it cannot be told now.
    fn proven(&self, work: &mut Work, begun: Begun) -> Result<Option<Begun>, Trouble> {
        if self.is_cached(&begun) {
            return Ok(Some(begun));
        }
        let shown = open(&begun.file).and_then(|file| match begun.at <= begun.file.size {
            true => proof(&file, begun.at),
            false => Ok([0; 16]),
        });
        match shown {
            Ok(shown) if shown == begun.proof => Ok(Some(begun)),
            Ok(_) => {
                let Begun { file: Known { path, .. }, records, .. } = &begun;
                log::notice(
                    "file-changed",
                    format!("`{path}` is not what {records} records were read of; all of it is read"),
                );
                Ok(Some(fresh(begun.file)))
            }
            Err(Halt::Trouble(trouble)) => self.later(work, begun, trouble).map(|()| None),
            // Reading it comes to the same.
            Err(Halt::Changed | Halt::Failed { .. }) => Ok(Some(begun)),
        }
    }

    fn is_cached(&self, begun: &Begun) -> bool {
        let reading = self.cache.reading.as_ref();
        reading.is_some_and(|(known, reading)| *known == begun.file && reading.mark() == mark_of(begun))
    }

    /// Keeps a file's place until the next poll.
    fn put_back(&mut self, work: &mut Work, begun: Begun) {
        if begun.records > 0 {
            work.cursor.begun.insert(0, begun);
        } else {
            self.cache.ready.push_front(begun.file);
        }
    }

    fn read_whole(&mut self, work: &mut Work, file: &Known, ordinal: u32) -> Reached {
        if file.size == 0 {
            log::notice("empty-file", format!("`{}` is empty and became no message", file.path));
            return Reached::End;
        }
        if !work.has_room(file.size) {
            return Reached::Full;
        }
        match self.whole(file) {
            Ok(content) => {
                let draft = Drafter::new(&self.rules, file, ordinal).draft(content, 0, 1);
                work.push(Item::Message(draft), file.size);
                Reached::End
            }
            Err(halt) => Reached::Halted(halt),
        }
    }

    fn whole(&self, known: &Known) -> Result<Content, Halt> {
        let limit = self.rules.limits.record_bytes_max;
        if known.size > limit {
            let text = format!("it has {} bytes, more than the {limit} that a message may have", known.size);
            return Err(Halt::Failed { code: "record-too-large", text });
        }
        let file = open(known)?;
        let content = if known.size <= INLINE_BYTES_MAX as u64 {
            Content::Inline(read_exact(&file, 0, known.size)?)
        } else {
            Content::Blob(file.slice(0, known.size).map_err(Halt::from)?)
        };
        if is_unchanged(known)? { Ok(content) } else { Err(Halt::Changed) }
    }

    fn read_records(&mut self, work: &mut Work, format: Format, begun: &mut Begun, ordinal: u32) -> Reached {
        let result = open(&begun.file).and_then(|file| {
            let is_cached = self.is_cached(begun);
            let mut reading = match self.cache.reading.take() {
                Some((_, reading)) if is_cached => reading,
                _ => Reading::open(&self.rules, format, &file, begun)?,
            };
            let (size, place) = (work.size(), begun.clone());
            let reached = self.take_records(work, &file, &mut reading, begun, ordinal);
            if begun.records > place.records && !matches!(reached, Reached::End) {
                let mark = reading.mark();
                (begun.at, begun.phase, begun.counts) = (mark.at, mark.phase, mark.counts);
                match proof(&file, begun.at) {
                    Ok(proof) => begun.proof = proof,
                    // A place that cannot be proven is no place to go on at.
                    Err(halt) => {
                        work.shrink(size);
                        *begun = place;
                        return Err(halt);
                    }
                }
            }
            self.cache.reading = Some((begun.file.clone(), reading));
            Ok(reached)
        });
        result.unwrap_or_else(Reached::Halted)
    }

    /// Adds records until the file ends or the poll is full. A record that was added is
    /// counted whatever comes of the next.
    fn take_records(
        &self,
        work: &mut Work,
        file: &files::File,
        reading: &mut Reading,
        begun: &mut Begun,
        ordinal: u32,
    ) -> Reached {
        let drafter = Drafter::new(&self.rules, &begun.file, ordinal);
        loop {
            let record = match reading.next(file, || is_unchanged(&begun.file)) {
                Ok(Next::Record(record)) => record,
                Ok(Next::End) => {
                    if begun.records == 0 {
                        log::notice("empty-file", format!("`{}` holds no record", begun.file.path));
                    }
                    return Reached::End;
                }
                Err(halt) => return Reached::Halted(halt),
            };
            let len = reading.message_len(record);
            if !work.has_room(len) {
                return Reached::Full;
            }
            let content = match reading.take(file, record) {
                Ok(content) => content,
                Err(halt) => return Reached::Halted(halt),
            };
            begun.records += 1;
            work.push(Item::Message(drafter.draft(content, record.start, begun.records)), len);
        }
    }

    fn halted(&mut self, work: &mut Work, begun: Begun, ordinal: u32, halt: Halt) -> Result<(), Trouble> {
        match halt {
            Halt::Changed => {
                work.put_off.push(begun.file.path.clone());
                if begun.records == 0 {
                    return Ok(());
                }
                if work.cursor.has_room_for_begun(&begun.file) {
                    work.cursor.begun.push(begun);
                    return Ok(());
                }
                let text = "it changes while it is read, and so do too many others".to_owned();
                self.failed(work, &begun, ordinal, "changes-while-read", &text)
            }
            Halt::Failed { code, text } => self.failed(work, &begun, ordinal, code, &text),
            Halt::Trouble(trouble) => self.later(work, begun, trouble),
        }
    }

    /// A file that cannot be read now. It may be this one alone: the others are tried.
    fn later(&self, work: &mut Work, begun: Begun, trouble: Trouble) -> Result<(), Trouble> {
        work.put_off.push(begun.file.path.clone());
        let has_room = work.cursor.has_room_for_begun(&begun.file);
        if begun.records > 0 {
            work.cursor.begun.push(begun);
        }
        // Without room for more places that must be kept, the folder is taken to be away.
        if self.rules.on_error == OnError::Stop || !has_room {
            return Err(trouble);
        }
        work.trouble.get_or_insert(trouble);
        Ok(())
    }

    fn failed(
        &mut self,
        work: &mut Work,
        begun: &Begun,
        ordinal: u32,
        code: &'static str,
        text: &str,
    ) -> Result<(), Trouble> {
        let path = &begun.file.path;
        let stored = match begun.records {
            0 => String::new(),
            1 => "; the record before is a message".to_owned(),
            records => format!("; the {records} records before are messages"),
        };
        if self.rules.on_error == OnError::Stop {
            self.put_back(work, begun.clone());
            return Err(Trouble::misconfigured(code, format!("`{path}` cannot be read: {text}{stored}")));
        }
        let fate = match self.rules.after_failure {
            AfterFailure::Move => "it goes to `failed`",
            AfterFailure::Leave => "it is left alone until it changes",
        };
        log::notice(code, format!("`{path}` cannot be read: {text}{stored}; {fate}"));
        self.end(work, &begun.file, Outcome::Failed, ordinal);
        Ok(())
    }

    /// Notes a file that is done with once this poll is committed.
    fn end(&self, work: &mut Work, file: &Known, outcome: Outcome, ordinal: u32) {
        let mark = file.mark();
        let ended = Ended { path: file.path.clone(), mark, outcome, ordinal, at_ms: work.now_ms };
        work.cursor.ended.push(ended);
        let stays = match outcome {
            Outcome::Read => self.rules.after == After::Leave,
            Outcome::Failed => self.rules.after_failure == AfterFailure::Leave,
        };
        let list = if stays { &mut work.cursor.passed } else { &mut work.cursor.moved };
        list.push(mark);
    }
}

/// A file that was begun and is what it was. Others changed or have another name: a look
/// finds them when they rest again.
fn unchanged_begun(work: &mut Work) -> Result<Option<Begun>, Trouble> {
    for index in 0..work.cursor.begun.len() {
        let Some(begun) = work.cursor.begun.get(index) else { break };
        let path = &begun.file.path;
        if work.put_off.contains(path) || work.changed.contains(path) {
            continue;
        }
        match files::stat(INBOX, path) {
            Ok(entry) if begun.file.is(&entry) => return Ok(Some(work.cursor.begun.remove(index))),
            Ok(_) | Err(files::Error::NotFound | files::Error::NotAFile) => {
                work.changed.push(path.clone());
            }
            Err(error) => return Err(of_inbox(error)),
        }
    }
    Ok(None)
}

fn fresh(file: Known) -> Begun {
    Begun { file, at: 0, phase: 0, counts: [0; 3], records: 0, proof: [0; 16] }
}

fn open(known: &Known) -> Result<files::File, Halt> {
    match files::open(INBOX, &known.path) {
        Ok(file) if file.identity() == known.identity && file.size() == known.size => Ok(file),
        Ok(_) | Err(files::Error::NotFound) => Err(Halt::Changed),
        Err(error) => Err(error.into()),
    }
}

fn is_unchanged(known: &Known) -> Result<bool, Halt> {
    match files::stat(INBOX, &known.path) {
        Ok(entry) => Ok(known.is(&entry)),
        Err(files::Error::NotFound) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn mark_of(begun: &Begun) -> Mark {
    Mark { at: begun.at, phase: begun.phase, counts: begun.counts }
}
