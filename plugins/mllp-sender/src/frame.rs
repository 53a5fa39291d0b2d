//! MLLP frames: `0x0B`, the message, `0x1C 0x0D`.

use std::io::Read;

use portway_hl7::search::find_either;
use portway_sdk::{Body, Problem, ResultExt};

pub const START: u8 = 0x0B;
pub const END: u8 = 0x1C;
pub const END_SECOND: u8 = 0x0D;

/// Bytes of an acknowledgement with what surrounds it.
pub const ACK_BYTES_MAX: usize = 64 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

/// A message that holds a byte of the frame would end up as another one.
pub fn check(body: &Body) -> Result<(), Problem> {
    let mut offset = 0;
    let mut reader = body.reader();
    let mut chunk = Vec::new();
    loop {
        let bytes = match body {
            Body::Inline(bytes) => bytes.as_slice(),
            Body::Blob(_) => {
                chunk.clear();
                reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk).retry("body")?;
                chunk.as_slice()
            }
        };
        if let Some(at) = find_either(bytes, START, END) {
            return Err(Problem::quarantine(
                "frame-byte",
                format!(
                    "the message holds the byte 0x{:02X} at {}, which begins or ends an MLLP frame",
                    bytes.get(at).copied().unwrap_or_default(),
                    offset + at
                ),
            ));
        }
        if matches!(body, Body::Inline(_)) || bytes.is_empty() {
            return Ok(());
        }
        offset += bytes.len();
    }
}

/// What has been received while waiting for a frame.
#[derive(Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
}

/// How far a frame has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is needed.
    Partial,
    /// All but the last byte, which some leave out.
    NoSecondEnd,
    Whole,
    TooLong,
}

/// A frame's message, and what else was received with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub message: Vec<u8>,
    /// Bytes before it that are no frame.
    pub junk_before: usize,
    /// True: nothing came behind it.
    pub is_last: bool,
    /// False: the second byte of its end is missing or another one.
    pub is_exact: bool,
}

impl Received {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn progress(&self) -> Progress {
        match self.end() {
            None if self.bytes.len() > ACK_BYTES_MAX => Progress::TooLong,
            None => Progress::Partial,
            Some(end) if end + 1 == self.bytes.len() => Progress::NoSecondEnd,
            Some(_) => Progress::Whole,
        }
    }

    /// Takes the frame out; none: there is none yet. What is behind it stays.
    pub fn take(&mut self) -> Option<Frame> {
        let end = self.end()?;
        let start = self.bytes.iter().position(|byte| *byte == START)?;
        let message = self.bytes.get(start + 1..end)?.to_vec();
        let is_exact = self.bytes.get(end + 1) == Some(&END_SECOND);
        let next = if is_exact { end + 2 } else { end + 1 };
        self.bytes.drain(..next.min(self.bytes.len()));
        Some(Frame { message, junk_before: start, is_last: self.bytes.is_empty(), is_exact })
    }

    /// What has come that is no whole frame, as the end of a sentence; empty where nothing has.
    /// Of the bytes themselves nothing is shown: they may be about a patient.
    pub fn remains(&self) -> String {
        let count = self.bytes.len();
        if count == 0 {
            String::new()
        } else if self.bytes.contains(&START) {
            format!("; {count} bytes came that hold the beginning of a frame (0x0B), but no end (0x1C)")
        } else if self.bytes.starts_with(b"MSH") {
            format!("; {count} bytes came, an HL7 message without the 0x0B that begins a frame")
        } else {
            format!("; {count} bytes came without the 0x0B that begins a frame")
        }
    }

    /// Where the end of the first frame stands.
    fn end(&self) -> Option<usize> {
        let start = self.bytes.iter().position(|byte| *byte == START)?;
        let inside = self.bytes.get(start..)?;
        inside.iter().position(|byte| *byte == END).map(|at| start + at)
    }
}

#[cfg(test)]
mod tests {
    use portway_sdk::blobs::Blob;

    use super::*;

    fn received(bytes: &[u8]) -> Received {
        let mut received = Received::default();
        received.push(bytes);
        received
    }

    #[test]
    fn a_frame_is_whole_with_its_last_byte() {
        let frame = b"\x0BMSA\x1C\x0D";
        for split in 0..=frame.len() {
            let (first, second) = frame.split_at(split);
            let mut received = received(first);
            let expected = match split {
                6 => Progress::Whole,
                5 => Progress::NoSecondEnd,
                _ => Progress::Partial,
            };
            assert_eq!(received.progress(), expected, "{split}");
            received.push(second);
            let taken = received.take().unwrap();
            assert_eq!(
                taken,
                Frame { message: b"MSA".to_vec(), junk_before: 0, is_last: true, is_exact: true }
            );
        }
    }

    #[test]
    fn what_is_no_whole_frame_is_told_without_its_bytes() {
        let told = |bytes: &[u8]| received(bytes).remains();
        assert_eq!(told(b""), "");
        assert_eq!(told(b"thanks"), "; 6 bytes came without the 0x0B that begins a frame");
        assert!(told(b"MSH|^~\\&|A\rMSA|AA|1\r").contains("an HL7 message without the 0x0B"));
        assert!(told(b"\x0BMSH|").contains("but no end (0x1C)"));
    }

    #[test]
    fn what_surrounds_a_frame_is_told() {
        let mut received = received(b"\r\n\x0BMSA\x1C\x0D\x0B");
        let taken = received.take().unwrap();
        assert_eq!(taken, Frame { message: b"MSA".to_vec(), junk_before: 2, is_last: false, is_exact: true });
        assert_eq!(received.progress(), Progress::Partial);
        let mut received = self::received(b"\x0BMSA\x1C\n");
        assert_eq!(received.take().map(|frame| (frame.is_last, frame.is_exact)), Some((false, false)));
        assert_eq!(self::received(&[b'x'; ACK_BYTES_MAX + 1]).progress(), Progress::TooLong);
    }

    #[test]
    fn a_byte_of_the_frame_in_a_message_is_found_in_both_kinds_of_body() {
        let mut bytes = vec![b'x'; 2 * CHUNK_BYTES];
        assert_eq!(check(&Body::from(Blob::from_bytes(&bytes).unwrap())), Ok(()));
        assert_eq!(check(&Body::from(bytes.clone())), Ok(()));
        bytes[CHUNK_BYTES + 5] = END;
        let problem = check(&Body::from(Blob::from_bytes(&bytes).unwrap())).unwrap_err();
        assert_eq!(check(&Body::from(bytes)), Err(problem.clone()));
        let text = "the message holds the byte 0x1C at 65541, which begins or ends an MLLP frame";
        assert_eq!(problem, Problem::quarantine("frame-byte", text));
    }
}
