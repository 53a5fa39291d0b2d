//! Replies: a code of three digits and a text, on one line or on several.

/// Bytes of one line; the protocol says 512.
const LINE_BYTES_MAX: usize = 2_048;
/// Lines of one reply.
const LINES_MAX: usize = 128;
/// What is told of a reply's text.
const SHOWN_BYTES_MAX: usize = 1_000;

/// What the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub code: u16,
    /// What stands behind the code, a line each.
    pub lines: Vec<String>,
}

impl Reply {
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.code)
    }

    pub fn is_temporary(&self) -> bool {
        (400..500).contains(&self.code)
    }

    pub fn is_permanent(&self) -> bool {
        (500..600).contains(&self.code)
    }

    /// The server closes the connection.
    pub fn is_farewell(&self) -> bool {
        self.code == 421
    }

    /// The text in one line.
    pub fn text(&self) -> String {
        let mut text = self.lines.join(" / ");
        if text.len() > SHOWN_BYTES_MAX {
            let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        text
    }

    /// Code and text.
    pub fn shown(&self) -> String {
        format!("{} {}", self.code, self.text()).trim().to_owned()
    }
}

/// What came so far, and what of it is a reply.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    bytes: Vec<u8>,
    /// Lines of a reply that goes on.
    begun: Option<Reply>,
}

impl Heard {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Nothing came that was not taken.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.begun.is_none()
    }

    /// The next whole reply; none: more has to come. An error: these bytes are no reply.
    pub fn take(&mut self) -> Result<Option<Reply>, String> {
        while let Some(line) = self.take_line()? {
            let (code, is_last, text) = parse(&line)?;
            let reply = self.begun.get_or_insert_with(|| Reply { code, lines: Vec::new() });
            if reply.code != code {
                return Err(format!("the lines of one answer have the codes {} and {code}", reply.code));
            }
            if reply.lines.len() >= LINES_MAX {
                return Err(format!("an answer has more than {LINES_MAX} lines"));
            }
            reply.lines.push(text);
            if is_last {
                return Ok(self.begun.take());
            }
        }
        Ok(None)
    }

    fn take_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let end = self.bytes.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n');
        match end {
            Some(end) => Ok(Some(self.bytes.drain(..=end).collect())),
            None if self.bytes.len() >= LINE_BYTES_MAX => {
                Err(format!("a line of an answer has more than {LINE_BYTES_MAX} bytes"))
            }
            None => Ok(None),
        }
    }
}

/// `250-text` or `250 text`: the code, whether it is the last line, the text.
fn parse(line: &[u8]) -> Result<(u16, bool, String), String> {
    let text: String = String::from_utf8_lossy(line)
        .trim_end()
        .chars()
        .filter(|character| !character.is_control())
        .collect();
    let shown = || text.chars().take(60).collect::<String>();
    let code = text.get(..3).filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
    let code: u16 = code
        .and_then(|code| code.parse().ok())
        .filter(|code| (200..600).contains(code))
        .ok_or_else(|| format!("an answer begins with `{}`, which is no code", shown()))?;
    let rest = text.get(3..).unwrap_or_default();
    match (rest.strip_prefix('-'), rest.strip_prefix(' ')) {
        (Some(more), _) => Ok((code, false, more.to_owned())),
        (None, Some(last)) => Ok((code, true, last.to_owned())),
        (None, None) if rest.is_empty() => Ok((code, true, String::new())),
        (None, None) => Err(format!("`{}` has neither a blank nor `-` behind its code", shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(bytes: &[u8]) -> Heard {
        let mut heard = Heard::default();
        heard.push(bytes);
        heard
    }

    fn said(bytes: &[u8]) -> String {
        match heard(bytes).take() {
            Ok(Some(reply)) => format!("{} [{}]", reply.code, reply.lines.join("|")),
            Ok(None) => "more".into(),
            Err(why) => why,
        }
    }

    #[test]
    fn a_reply_has_one_line_or_several() {
        assert_eq!(said(b"250 ok\r\n"), "250 [ok]");
        assert_eq!(said(b"250-a\r\n250-b\r\n250 c\r\n"), "250 [a|b|c]");
        assert_eq!(said(b"354\n"), "354 []");
        assert_eq!(said(b"250-a\r\n250"), "more");
        assert_eq!(said(b"25"), "more");
    }

    #[test]
    fn what_is_no_reply_says_why() {
        assert_eq!(said(b"SSH-2.0-x\r\n"), "an answer begins with `SSH-2.0-x`, which is no code");
        assert_eq!(said(b"999 x\r\n"), "an answer begins with `999 x`, which is no code");
        assert_eq!(said(b"2500\r\n"), "`2500` has neither a blank nor `-` behind its code");
        assert_eq!(said(b"250-a\r\n550 b\r\n"), "the lines of one answer have the codes 250 and 550");
        assert_eq!(said(&[b'2'; LINE_BYTES_MAX]), "a line of an answer has more than 2048 bytes");
        assert_eq!(said("250-a\r\n".repeat(200).as_bytes()), "an answer has more than 128 lines");
        assert_eq!(
            said(b"\xff\xff\xff\xff\r\n"),
            "an answer begins with `\u{fffd}\u{fffd}\u{fffd}\u{fffd}`, which is no code"
        );
    }

    #[test]
    fn what_is_behind_a_reply_is_noticed() {
        let mut heard = heard(b"250 a\r\n250 b\r\n");
        assert_eq!(heard.take().map(|reply| reply.map(|reply| reply.text())), Ok(Some("a".into())));
        assert!(!heard.is_empty());
        assert!(heard.take().is_ok_and(|reply| reply.is_some()) && heard.is_empty());
    }

    #[test]
    fn a_long_text_is_cut_where_a_character_ends() {
        let reply = Reply { code: 550, lines: vec!["ü".repeat(SHOWN_BYTES_MAX)] };
        assert!(reply.text().len() <= SHOWN_BYTES_MAX + 3 && reply.text().ends_with('…'));
    }
}
