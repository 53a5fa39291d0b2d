//! Files mode: a file for each message.

use std::io::Read;

use portway_sdk::{Answer, Body, Call, Message, Problem, files};

use crate::name::Name;
use crate::settings::OnExists;
use crate::{FOLDER, trouble};

/// What is read at once of a file that may be the message's own.
const CHUNK_BYTES: u32 = 256 * 1024;

/// Makes files.
pub struct Putter {
    name: Name,
    on_exists: OnExists,
}

impl Putter {
    pub fn new(name: Name, on_exists: OnExists) -> Self {
        Putter { name, on_exists }
    }

    /// Returns when the file and its name are on the disk. A file that is there already with
    /// the same bytes is what an earlier attempt left behind.
    pub fn put(&self, call: &Call, message: &Message) -> Result<Answer, Problem> {
        let path = self.name.render(call, message)?;
        let on_exists = match self.on_exists {
            OnExists::Fail => files::OnExists::Fail,
            OnExists::Replace => files::OnExists::Replace,
        };
        let result = match &message.body {
            Body::Inline(bytes) => files::put(FOLDER, &path, bytes, on_exists),
            Body::Blob(blob) => files::put_blob(FOLDER, &path, blob, on_exists),
        };
        match result {
            Ok(()) => Ok(Answer::new("written", path)),
            Err(files::Error::Exists) if holds(&path, &message.body)? => Ok(Answer::new("present", path)),
            Err(files::Error::Exists) => Err(Problem::quarantine(
                "name-taken",
                format!(
                    "a file `{path}` with other bytes exists already; set `on_exists` to `replace`, or a name with `{{id}}`"
                ),
            )),
            Err(error) => Err(trouble::of_message(error, &path)),
        }
    }
}

/// Whether a file holds exactly these bytes.
fn holds(path: &str, body: &Body) -> Result<bool, Problem> {
    let unreadable = |error| trouble::of_message(error, path);
    let file = files::open(FOLDER, path).map_err(unreadable)?;
    if file.size() != body.len() {
        return Ok(false);
    }
    let mut reader = body.reader();
    let mut offset = 0;
    while offset < body.len() {
        let chunk = file.read(offset, CHUNK_BYTES).map_err(unreadable)?;
        let mut expected = vec![0; chunk.len()];
        reader.read_exact(&mut expected)?;
        if chunk.is_empty() || chunk != expected {
            return Ok(false);
        }
        offset += chunk.len() as u64;
    }
    Ok(true)
}
