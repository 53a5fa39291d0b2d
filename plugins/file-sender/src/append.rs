//! Append mode: messages become records of one file.
//!
//! A run is one append and one sync a file. Where the name depends on the message (a file a
//! day), a run is cut into stretches of one file each, which go one after another: order
//! holds, and what is synced counts as sent even if a later stretch fails. What makes a
//! record is in `record`.

use std::io::Read;

use portway_sdk::{Answer, Body, Call, Message, Problem, SendVerdict, Trouble, files, log, progress};

use crate::name::Name;
use crate::record::Separator;
use crate::{FOLDER, trouble};

/// What is appended at once.
const APPEND_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 64 * 1024;

/// Appends to files.
pub struct Appender {
    name: Name,
    separator: Separator,
    /// The file known to end where a record ends. Another one may end in half a record that
    /// a crash left; without a look at it the next record would be glued to it.
    whole: Option<String>,
}

/// Neighbouring messages of a run that go to one file.
#[derive(Default)]
struct Stretch {
    path: String,
    /// Indexes in the run; none: it has not begun.
    indexes: Vec<usize>,
    waiting: Vec<u8>,
}

impl Appender {
    pub fn new(name: Name, separator: Separator) -> Self {
        Appender { name, separator, whole: None }
    }

    /// A run of one.
    pub fn append_one(&mut self, call: &Call, message: Message) -> Result<Answer, Problem> {
        match self.append(call, vec![message])?.pop() {
            Some(SendVerdict::Sent(answer)) => Ok(answer),
            Some(SendVerdict::Quarantine(failure)) => Err(failure.into()),
            Some(SendVerdict::Retry(later)) => Err(later.into()),
            Some(SendVerdict::Untried) | None => Err(Problem::retry("untried", "the message was not tried")),
        }
    }

    /// A whole run. A message that cannot be written for its own sake is quarantined; an
    /// ordered run ends there.
    pub fn append(&mut self, call: &Call, messages: Vec<Message>) -> Result<Vec<SendVerdict>, Trouble> {
        let mut verdicts = vec![SendVerdict::Untried; messages.len()];
        let result = self.run(call, &messages, &mut verdicts);
        if result.is_err() {
            self.whole = None;
        }
        if call.ordered {
            keep_order(&mut verdicts);
        }
        let nothing_done = verdicts.iter().all(|verdict| *verdict == SendVerdict::Untried);
        match result {
            Err(trouble) if nothing_done => Err(trouble),
            _ => Ok(verdicts),
        }
    }

    fn run(
        &mut self,
        call: &Call,
        messages: &[Message],
        verdicts: &mut [SendVerdict],
    ) -> Result<(), Trouble> {
        let mut stretch = Stretch::default();
        for (index, message) in messages.iter().enumerate() {
            progress::begin(index);
            let path = match self.check(call, message) {
                Ok(path) => path,
                Err(problem) => {
                    set(verdicts, index, verdict_of(problem)?);
                    if call.ordered {
                        break;
                    }
                    continue;
                }
            };
            if !stretch.indexes.is_empty() && stretch.path != path {
                self.end(&mut stretch, verdicts)?;
            }
            if stretch.indexes.is_empty() {
                self.begin(&mut stretch, path)?;
            }
            stretch.indexes.push(index);
            self.add(&mut stretch, &message.body)?;
        }
        self.end(&mut stretch, verdicts)
    }

    /// The path of a message that can be written as one record.
    fn check(&self, call: &Call, message: &Message) -> Result<String, Problem> {
        let path = self.name.render(call, message)?.into_owned();
        self.separator.check(&message.body)?;
        Ok(path)
    }

    fn begin(&self, stretch: &mut Stretch, path: String) -> Result<(), Trouble> {
        let separator = self.separator.bytes();
        if self.whole.as_deref() != Some(&path)
            && !ends_with(&path, separator).map_err(|error| trouble::of_run(error, &path))?
        {
            log::warn(format!("`{path}` ends in half a record; a separator is put behind it"));
            stretch.waiting.extend_from_slice(separator);
        }
        stretch.path = path;
        Ok(())
    }

    fn add(&self, stretch: &mut Stretch, body: &Body) -> Result<(), Trouble> {
        match body {
            Body::Inline(bytes) => stretch.waiting.extend_from_slice(bytes),
            Body::Blob(_) => {
                let mut reader = body.reader();
                loop {
                    let mut chunk = Vec::new();
                    let read = reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
                    let count = read.map_err(|error| Trouble::unavailable("body", error.to_string()))?;
                    if count == 0 {
                        break;
                    }
                    stretch.waiting.extend_from_slice(&chunk);
                    stretch.flush_above(APPEND_BYTES)?;
                }
            }
        }
        let ended =
            self.separator.ends(body).map_err(|error| Trouble::unavailable("body", error.to_string()))?;
        if !ended {
            stretch.waiting.extend_from_slice(self.separator.bytes());
        }
        stretch.flush_above(APPEND_BYTES)
    }

    /// Appends the rest, waits until all of the stretch is on the disk, and only then says
    /// that it is sent.
    fn end(&mut self, stretch: &mut Stretch, verdicts: &mut [SendVerdict]) -> Result<(), Trouble> {
        if stretch.indexes.is_empty() {
            return Ok(());
        }
        stretch.flush_above(0)?;
        files::sync(FOLDER, &stretch.path).map_err(|error| trouble::of_run(error, &stretch.path))?;
        for index in stretch.indexes.drain(..) {
            progress::sent(index);
            set(verdicts, index, SendVerdict::Sent(Answer::new("appended", &stretch.path)));
        }
        self.whole = Some(std::mem::take(&mut stretch.path));
        Ok(())
    }
}

impl Stretch {
    fn flush_above(&mut self, bytes_max: usize) -> Result<(), Trouble> {
        if self.waiting.len() > bytes_max {
            files::append(FOLDER, &self.path, &self.waiting)
                .map_err(|error| trouble::of_run(error, &self.path))?;
            self.waiting.clear();
        }
        Ok(())
    }
}

/// Whether a file is empty, not there, or ends with these bytes.
fn ends_with(path: &str, end: &[u8]) -> Result<bool, files::Error> {
    let file = match files::open(FOLDER, path) {
        Ok(file) => file,
        Err(files::Error::NotFound) => return Ok(true),
        Err(error) => return Err(error),
    };
    let size = file.size();
    let len = u32::try_from(end.len()).unwrap_or(u32::MAX);
    match size.checked_sub(u64::from(len)) {
        Some(offset) => Ok(file.read(offset, len)? == end),
        None => Ok(size == 0),
    }
}

/// After the first of an ordered run that was not sent, nothing may be judged.
fn keep_order(verdicts: &mut [SendVerdict]) {
    let mut verdicts = verdicts.iter_mut().skip_while(|verdict| matches!(verdict, SendVerdict::Sent(_)));
    verdicts.next();
    verdicts.for_each(|verdict| *verdict = SendVerdict::Untried);
}

fn verdict_of(problem: Problem) -> Result<SendVerdict, Trouble> {
    match problem {
        Problem::Quarantine(failure) => Ok(SendVerdict::Quarantine(failure)),
        Problem::Retry(later) => Ok(SendVerdict::Retry(later)),
        Problem::Trouble(trouble) => Err(trouble),
    }
}

fn set(verdicts: &mut [SendVerdict], index: usize, verdict: SendVerdict) {
    if let Some(place) = verdicts.get_mut(index) {
        *place = verdict;
    }
}
