//! Questions on the terminal, and lines that answer them.

use std::io::BufRead;

use tokio::sync::mpsc;

/// What becomes of deliveries that wait for a destination that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OnRemoved {
    /// Ask on the terminal.
    Ask,
    /// They stay in the store, until the destination comes back.
    Keep,
    /// They are dismissed.
    Dismiss,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Keep,
    Dismiss,
    /// The interface goes on as it was.
    Undo,
}

impl Answer {
    /// None: that is no answer.
    pub fn of(line: &str) -> Option<Answer> {
        match line.trim().to_lowercase().as_str() {
            "k" | "keep" => Some(Answer::Keep),
            "d" | "dismiss" => Some(Answer::Dismiss),
            "u" | "undo" => Some(Answer::Undo),
            _ => None,
        }
    }
}

/// Lines of the standard input, read from the first question on.
#[derive(Default)]
pub(super) struct Lines {
    lines: Option<mpsc::Receiver<String>>,
}

impl Lines {
    /// The next line; none: there are no more. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(read).recv().await
    }
}

/// A read of a terminal cannot be ended: it has a thread of its own.
fn read() -> mpsc::Receiver<String> {
    let (line, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let read = std::io::stdin().lock().lines();
        for text in read.map_while(Result::ok) {
            if line.blocking_send(text).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_or_a_word_is_an_answer() {
        assert_eq!(Answer::of(" K\n"), Some(Answer::Keep));
        assert_eq!(Answer::of("dismiss"), Some(Answer::Dismiss));
        assert_eq!(Answer::of("u"), Some(Answer::Undo));
        assert_eq!((Answer::of(""), Answer::of("yes")), (None, None));
    }
}
