//! What commands print: data to stdout, the rest to stderr, and nothing past this file.
//!
//! Text that came from outside is escaped on its way to people: a message or a peer's answer
//! must not command a terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::{ExitCode, Termination};

use serde::Serialize;

/// How a command ended, for whoever started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// It was tried and did not work.
    Failed = 1,
    /// The command line is wrong; written by clap.
    Usage = 2,
    /// The project has problems, or another engine delivers what this one would.
    Problems = 3,
    /// No engine runs for the project.
    NotRunning = 4,
    /// The engine refused what was asked.
    Refused = 5,
    /// It was only looked, and there is something to do.
    ToDo = 6,
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// For people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// Where a command's words go.
pub struct Output {
    format: Format,
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
    /// Whether a live line can be rewritten in place.
    live: bool,
    /// Whether stdout is a terminal.
    screen: bool,
}

impl Output {
    /// The streams of this process.
    pub fn of_process(format: Format) -> Self {
        Output {
            format,
            stdout: Box::new(io::stdout()),
            stderr: Box::new(io::stderr()),
            live: io::stderr().is_terminal(),
            screen: io::stdout().is_terminal(),
        }
    }

    /// Other streams, for tests.
    pub fn to(format: Format, stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>) -> Self {
        Output { format, stdout, stderr, live: false, screen: false }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether stdout is a terminal, which shows a screen and not a stream.
    pub fn is_screen(&self) -> bool {
        self.screen
    }

    /// The command's data: `text` for people, one JSON document a line for programs.
    pub fn data<T: Serialize>(&mut self, data: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        let line = match self.format {
            Format::Text => escape_lines(&text(data)),
            Format::Json => serde_json::to_string(data)?,
        };
        writeln!(self.stdout, "{}", line.trim_end_matches('\n'))?;
        self.stdout.flush()
    }

    /// Bytes as they are, but for a terminal, which gets them escaped.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.screen {
            let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
            writeln!(self.stdout, "{}", escape_lines(&text))?;
        } else {
            self.stdout.write_all(bytes)?;
        }
        self.stdout.flush()
    }

    /// Begins the screen anew, where there is one.
    pub fn clear_screen(&mut self) -> io::Result<()> {
        if self.screen { self.stdout.write_all(b"\x1b[H\x1b[2J") } else { Ok(()) }
    }

    /// A word beside the data. Nothing follows from a stderr that is closed.
    pub fn note(&mut self, text: impl fmt::Display) {
        let _ = writeln!(self.stderr, "{}", escape_lines(&text.to_string()));
    }

    /// A line that the next one replaces; only where somebody looks.
    pub fn live(&mut self, text: impl fmt::Display) {
        if self.live {
            let _ = write!(self.stderr, "\r\x1b[K{}", escape(&text.to_string()));
            let _ = self.stderr.flush();
        }
    }

    /// Ends the live line.
    pub fn live_end(&mut self) {
        if self.live {
            let _ = write!(self.stderr, "\r\x1b[K");
        }
    }

    /// An error with its chain of causes, each once, what to do, and where more is said.
    pub fn error(&mut self, error: &anyhow::Error, hint: Option<&str>, code: Option<&str>) {
        let mut text = format!("error: {error}");
        let mut last = error.to_string();
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            if !last.contains(&cause) {
                text.push_str(&format!("\n  because: {cause}"));
            }
            last = cause;
        }
        if let Some(hint) = hint {
            text.push_str(&format!("\n  hint: {hint}"));
        }
        if let Some(code) = code {
            text.push_str(&format!("\n  hint: {}", says_more(&[code])));
        }
        self.note(text);
    }
}

/// Which pages explain what was printed.
pub fn says_more(codes: &[&str]) -> String {
    match codes {
        [code] => format!("`portway explain {code}` says more"),
        codes => format!("`portway explain CODE` says more of `{}`", codes.join("`, `")),
    }
}

/// A text without control characters.
pub fn escape(text: &str) -> String {
    text.chars().flat_map(escape_character).collect()
}

fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

fn escape_character(character: char) -> impl Iterator<Item = char> {
    // Also what turns the direction of writing around, which can fake a line.
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escaped = character.is_control() || turns;
    let (plain, escape) =
        if escaped { (None, Some(character.escape_default())) } else { (Some(character), None) };
    plain.into_iter().chain(escape.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_commands_a_terminal() {
        assert_eq!(escape("a\x1b[2Jé\r\u{202e}b"), "a\\u{1b}[2Jé\\r\\u{202e}b");
        assert_eq!(escape_lines("a\tb\nc"), "a\\tb\nc");
    }
}
