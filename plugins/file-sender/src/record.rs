//! Records: what tells one message from the next in a file.

use std::io::{self, Read};

use portway_sdk::{Body, Problem, ResultExt};

use crate::settings::SeparatorInMessage;

const CHUNK_BYTES: usize = 64 * 1024;

/// What is written behind each message that does not end with it. It may be empty.
#[derive(Clone, Debug)]
pub struct Separator {
    bytes: Vec<u8>,
    in_message: SeparatorInMessage,
}

impl Separator {
    pub fn new(text: String, in_message: SeparatorInMessage) -> Self {
        Separator { bytes: text.into_bytes(), in_message }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a message needs no separator behind it.
    pub fn ends(&self, body: &Body) -> io::Result<bool> {
        match body {
            Body::Inline(bytes) => Ok(bytes.ends_with(&self.bytes)),
            Body::Blob(blob) => {
                let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
                let Some(offset) = blob.size().checked_sub(u64::from(len)) else { return Ok(false) };
                Ok(blob.read(offset, len).map_err(io::Error::other)? == self.bytes)
            }
        }
    }

    /// Whether a reader of the file would get the message back as one record.
    pub fn check(&self, body: &Body) -> Result<(), Problem> {
        let Some(first) = self.bytes.first() else { return Ok(()) };
        let allowed = self.in_message == SeparatorInMessage::Allow;
        let without = matches!(body, Body::Inline(bytes) if !bytes.contains(first));
        if allowed || without {
            return Ok(());
        }
        // With what will stand behind it: a separator can begin in the message's last bytes
        // and end in its own separator.
        let ends = self.ends(body).retry("body")?;
        let (behind, place) = match ends {
            true => (&[][..], body.len().saturating_sub(self.bytes.len() as u64)),
            false => (self.bytes(), body.len()),
        };
        match find(body.reader().chain(behind), &self.bytes).retry("body")? {
            Some(at) if at != place => Err(Problem::quarantine(
                "separator-in-message",
                format!(
                    "the message holds the separator {:?} at byte {at}, so a reader would take it for several; \
                     set another `separator`, or `separator_in_message` to `allow`",
                    String::from_utf8_lossy(&self.bytes)
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Where these bytes first occur.
fn find(mut reader: impl Read, wanted: &[u8]) -> io::Result<Option<u64>> {
    let mut window: Vec<u8> = Vec::new();
    let mut offset = 0_u64;
    loop {
        let count = reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut window)?;
        if let Some(at) = window.windows(wanted.len()).position(|part| part == wanted) {
            return Ok(Some(offset + at as u64));
        }
        if count == 0 {
            return Ok(None);
        }
        // Its beginning may be here and its end in the next chunk.
        let passed = window.len().saturating_sub(wanted.len() - 1);
        window.drain(..passed);
        offset += passed as u64;
    }
}

#[cfg(test)]
mod tests {
    use portway_sdk::blobs::Blob;

    use super::*;

    /// Where the stray separator is said to be, for the message inline and as a blob.
    fn check(separator: &str, message: &[u8]) -> String {
        let separator = Separator::new(separator.into(), SeparatorInMessage::Quarantine);
        let [inline, blob] =
            [Body::from(message), Body::from(Blob::from_bytes(message).unwrap())].map(|body| match separator
                .check(&body)
            {
                Ok(()) => "fine".to_owned(),
                Err(problem) => format!("{problem:?}").split(" at byte ").nth(1).unwrap()[..1].to_owned(),
            });
        assert_eq!(inline, blob);
        inline
    }

    #[test]
    fn a_separator_is_fine_at_the_end_alone() {
        assert_eq!(check("\n", b"abc"), "fine");
        assert_eq!(check("\n", b"abc\n"), "fine");
        assert_eq!(check("\n", b""), "fine");
        assert_eq!(check("\n", b"\n"), "fine");
        assert_eq!(check("\n", b"a\nc\n"), "1");
        assert_eq!(check("\n", b"abc\n\n"), "3");
        assert_eq!(check("", b"a\nc"), "fine");
    }

    #[test]
    fn a_separator_that_ends_in_the_messages_own_is_found() {
        assert_eq!(check("\r\n", b"abc\r"), "fine");
        assert_eq!(check("==", b"ab="), "2");
        assert_eq!(check("==", b"ab=="), "fine");
        assert_eq!(check("aba", b"xab"), "1");
    }

    #[test]
    fn a_separator_across_two_chunks_is_found() {
        let mut message = vec![b'x'; 2 * CHUNK_BYTES];
        message[CHUNK_BYTES - 1] = b'\r';
        message[CHUNK_BYTES] = b'\n';
        assert_eq!(find(message.as_slice(), b"\r\n").unwrap(), Some(CHUNK_BYTES as u64 - 1));
    }
}
