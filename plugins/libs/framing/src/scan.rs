//! Goes through a message that is to be sent: what to put around it, or why it cannot be framed.
//!
//! A message is framed only where a decoder with the same settings would cut the same message out.

use std::fmt;

use crate::{Framing, delimiters::Progress, shown};

/// A message on its way through.
#[derive(Debug)]
pub struct Scan<'a> {
    framing: &'a Framing,
    progress: Progress,
    /// Bytes so far.
    len: u64,
    /// Where something stood first that ends a frame, behind its last byte.
    closed_at: Option<u64>,
}

/// What goes around a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapping {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

/// Why a message cannot be framed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A frame needs content.
    Empty,
    /// It holds what ends a frame, so that its rest would be another one.
    Closes { sequence: Vec<u8>, at: u64 },
    /// It holds what begins a frame, so that it would be taken for two.
    Opens { sequence: Vec<u8> },
    /// Its last bytes and what ends the frame would be read as something else.
    EndUnclear { sequence: Vec<u8> },
    /// Its length does not fit.
    TooLong { len: u64 },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequence = |sequence: &[u8]| shown(sequence, sequence.len());
        match self {
            Unfit::Empty => f.write_str("the message is empty, and a frame without content is none"),
            Unfit::Closes { sequence: bytes, at } => {
                write!(f, "the message holds `{}` at byte {at}, which ends a frame", sequence(bytes))
            }
            Unfit::Opens { sequence: bytes } => {
                write!(f, "the message holds `{}`, which begins a frame", sequence(bytes))
            }
            Unfit::EndUnclear { sequence: bytes } => write!(
                f,
                "the last bytes of the message and `{}` behind them would be read as another end",
                sequence(bytes)
            ),
            Unfit::TooLong { len } => {
                write!(f, "the length of the message, {len} bytes, does not fit in what is before its frame")
            }
        }
    }
}

impl<'a> Scan<'a> {
    pub fn new(framing: &'a Framing) -> Scan<'a> {
        Scan { framing, progress: Progress::default(), len: 0, closed_at: None }
    }

    /// The next bytes of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let (Framing::Delimited(delimiters), None) = (self.framing, self.closed_at) {
            let (used, is_closed) = delimiters.advance(&mut self.progress, bytes);
            self.closed_at = is_closed.then_some(self.len + used as u64);
        }
        self.len += bytes.len() as u64;
    }

    /// The message is whole.
    pub fn finish(mut self) -> Result<Wrapping, Unfit> {
        if self.len == 0 {
            return Err(Unfit::Empty);
        }
        let delimiters = match self.framing {
            Framing::Counted(length) => {
                let head = length.write(self.len).ok_or(Unfit::TooLong { len: self.len })?;
                return Ok(Wrapping { head, tail: Vec::new() });
            }
            Framing::Delimited(delimiters) => delimiters,
        };
        let head = delimiters.start().map_or_else(Vec::new, |start| start.bytes().to_vec());
        let closing = delimiters.closing().bytes();
        if self.progress.start_inside {
            return Err(Unfit::Opens { sequence: head });
        }
        if let Some(at) = self.closed_at {
            let brings_its_end = delimiters.keeps_end() && at == self.len;
            return match brings_its_end {
                true if self.len == closing.len() as u64 => Err(Unfit::Empty),
                true => Ok(Wrapping { head, tail: Vec::new() }),
                false => Err(Unfit::Closes { sequence: closing.to_vec(), at: at - closing.len() as u64 }),
            };
        }
        let (used, is_closed) = delimiters.advance(&mut self.progress, closing);
        if !is_closed || used < closing.len() || self.progress.start_inside {
            return Err(Unfit::EndUnclear { sequence: closing.to_vec() });
        }
        let tail = delimiters.end().map_or_else(Vec::new, |end| end.bytes().to_vec());
        Ok(Wrapping { head, tail })
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::{Decoder, Event, FramingSettings, Leftover};

    fn framing(json: &str) -> Framing {
        portway_sdk::parse_settings::<FramingSettings>(json).unwrap().framing().unwrap()
    }

    fn wrapped(framing: &Framing, body: &[u8]) -> Result<Vec<u8>, Unfit> {
        let mut scan = Scan::new(framing);
        body.chunks(3).for_each(|chunk| scan.feed(chunk));
        let wrapping = scan.finish()?;
        Ok([wrapping.head.as_slice(), body, &wrapping.tail].concat())
    }

    fn told(json: &str, body: &[u8]) -> String {
        wrapped(&framing(json), body).map_or_else(|unfit| unfit.to_string(), |bytes| shown(&bytes, 99))
    }

    #[test]
    fn a_message_is_put_between_what_the_settings_say() {
        assert_eq!(told(r#"{"type":"delimiters","start":"\\x02","end":"\\x03"}"#, b"ab"), "\\x02ab\\x03");
        assert_eq!(told(r#"{"type":"delimiters","start":"$"}"#, b"ab"), "$ab");
        assert_eq!(told(r#"{"type":"line"}"#, b"ab\r"), "ab\\r\\n");
        assert_eq!(told(r#"{"type":"line","keep_end":true}"#, b"ab\n"), "ab\\n");
        assert_eq!(told(r#"{"type":"line","keep_end":true}"#, b"ab"), "ab\\n");
        assert_eq!(told(r#"{"type":"length","bytes":2}"#, b"ab"), "\\x00\\x02ab");
        assert_eq!(told(r#"{"type":"digits","digits":4,"counts_itself":true}"#, b"ab"), "0006ab");
    }

    #[test]
    fn a_message_that_would_break_its_frame_is_unfit() {
        let both = r#"{"type":"delimiters","start":"<<","end":">>"}"#;
        assert_eq!(told(both, b"a>>b"), "the message holds `>>` at byte 1, which ends a frame");
        assert_eq!(told(both, b"a<<b"), "the message holds `<<`, which begins a frame");
        assert!(told(both, b"ab>").contains("would be read as another end"));
        assert_eq!(told(both, b""), "the message is empty, and a frame without content is none");
        assert_eq!(
            told(r#"{"type":"line"}"#, b"a\n"),
            "the message holds `\\n` at byte 1, which ends a frame"
        );
        assert_eq!(
            told(r#"{"type":"line","keep_end":true}"#, b"a\nb\n"),
            "the message holds `\\n` at byte 1, which ends a frame"
        );
        assert!(told(r#"{"type":"line","keep_end":true}"#, b"\n").contains("is empty"));
        assert!(told(r#"{"type":"delimiters","start":"$$"}"#, b"a$").contains("another end"));
        assert!(
            told(r#"{"type":"digits","digits":1}"#, b"0123456789")
                .contains("the length of the message, 10 bytes, does not fit")
        );
    }

    fn any_framing() -> impl Strategy<Value = String> {
        prop_oneof![
            ("[ab]{1,3}", "[bc]{1,3}").prop_map(|(start, end)| format!(
                r#"{{"type":"delimiters","start":"{start}","end":"{end}"}}"#
            )),
            "[ab]{1,3}".prop_map(|end| format!(r#"{{"type":"delimiters","end":"{end}"}}"#)),
            "[ab]{1,3}".prop_map(|start| format!(r#"{{"type":"delimiters","start":"{start}"}}"#)),
            prop::sample::select(vec![
                r#"{"type":"line"}"#,
                r#"{"type":"line","end":"crlf","keep_end":true}"#,
                r#"{"type":"length","bytes":1,"counts_itself":true}"#,
                r#"{"type":"length","bytes":4,"order":"little"}"#,
                r#"{"type":"digits","digits":2}"#,
            ])
            .prop_map(str::to_owned),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_sent_is_cut_out_again(json in any_framing(), bodies in proptest::collection::vec("[abc\r\n]{0,8}", 1..5)) {
            let settings: FramingSettings = portway_sdk::parse_settings(&json).unwrap();
            let Ok(framing) = settings.framing() else { return Ok(()) };
            let mut stream = Vec::new();
            let mut sent = Vec::new();
            for body in &bodies {
                if let Ok(bytes) = wrapped(&framing, body.as_bytes()) {
                    stream.extend(bytes);
                    sent.push(body.clone());
                }
            }
            let keeps = json.contains("keep_end");
            let mut decoder = Decoder::new(Rc::new(framing), 100, 0);
            let mut cut = Vec::new();
            let mut rest = stream.as_slice();
            loop {
                let (used, event) = decoder.take(rest);
                rest = &rest[used..];
                match event {
                    Some(Event::Frame(frame)) => {
                        prop_assert!(!frame.start_inside);
                        cut.push(String::from_utf8(stream[frame.start as usize..(frame.start + frame.len) as usize].to_vec()).unwrap());
                    }
                    Some(event) => prop_assert!(false, "{event:?}"),
                    None => break,
                }
            }
            match decoder.finish() {
                Leftover::Unended(frame) => cut.push(String::from_utf8(stream[frame.start as usize..].to_vec()).unwrap()),
                leftover => prop_assert_eq!(leftover, Leftover::Nothing),
            }
            if keeps {
                sent.iter_mut().filter(|body| !body.ends_with("\r\n")).for_each(|body| body.push_str("\r\n"));
            }
            prop_assert_eq!(cut, sent);
        }
    }
}
