//! Senders: bring messages to a destination with the host's services.

use serde::de::DeserializeOwned;

use crate::{Call, Context, Failure, Later, Message, Problem, Trouble, progress};

/// A plugin that brings messages to one destination.
pub trait Sender: Sized + 'static {
    /// Read from the destination's settings; [`NoSettings`](crate::NoSettings) where there are none.
    type Settings: DeserializeOwned;

    /// Takes the settings; a failure is shown to whoever wrote them.
    fn open(settings: Self::Settings, context: &Context) -> Result<Self, Failure>;

    /// Sends one message, and returns when it has arrived. An error by `?` quarantines it.
    fn send(&mut self, call: &Call, message: Message) -> Result<Answer, Problem>;

    /// One verdict a message, in order. Implement it where a batch is cheaper than its
    /// messages; then [`progress::begin`] and [`progress::sent`] are yours to call.
    fn send_batch(&mut self, call: &Call, messages: Vec<Message>) -> Result<Vec<SendVerdict>, Trouble> {
        send_each(call, messages, |message| self.send(call, message))
    }
}

/// What the peer said, for the record of the attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub code: String,
    pub text: String,
}

impl Answer {
    /// A code and a text.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Answer { code: code.into(), text: text.into() }
    }
}

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendVerdict {
    Sent(Answer),
    /// Not tried: an earlier one of the lane failed, or time ran out.
    Untried,
    Retry(Later),
    Quarantine(Failure),
}

/// Calls a function for each message, telling the host what began and what arrived.
///
/// In an ordered call the rest stays untried after the first that was not sent. Trouble
/// ends the call: as its result where nothing was done yet, else with the rest untried, so
/// that what was done is not lost and the next call meets the same trouble at once.
pub fn send_each(
    call: &Call,
    messages: Vec<Message>,
    mut send: impl FnMut(Message) -> Result<Answer, Problem>,
) -> Result<Vec<SendVerdict>, Trouble> {
    let count = messages.len();
    let mut verdicts = Vec::with_capacity(count);
    for (index, message) in messages.into_iter().enumerate() {
        // The first is tried whatever the time, otherwise nothing would ever move.
        if index > 0 && call.deadline.is_over() {
            break;
        }
        progress::begin(index);
        let verdict = match send(message) {
            Ok(answer) => {
                progress::sent(index);
                SendVerdict::Sent(answer)
            }
            Err(Problem::Quarantine(failure)) => SendVerdict::Quarantine(failure),
            Err(Problem::Retry(later)) => SendVerdict::Retry(later),
            Err(Problem::Trouble(trouble)) if verdicts.is_empty() => return Err(trouble),
            Err(Problem::Trouble(_)) => break,
        };
        let goes_on = !call.ordered || matches!(verdict, SendVerdict::Sent(_));
        verdicts.push(verdict);
        if !goes_on {
            break;
        }
    }
    verdicts.resize(count, SendVerdict::Untried);
    Ok(verdicts)
}

/// Makes a type that implements [`Sender`] the plugin. Natively it only checks the type.
#[macro_export]
macro_rules! export_sender {
    ($plugin:ty) => {
        $crate::__export!(sender, Sender, $plugin);
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{self, Event};

    /// Sends a run whose bodies say what happens to them.
    fn run(ordered: bool, time_left: Duration, bodies: &str) -> String {
        testing::reset();
        let call = Call::new("store", ordered, time_left);
        let messages = bodies.split_whitespace().map(Message::new).collect();
        let result = send_each(&call, messages, |message| match message.body.text()?.as_ref() {
            "ok" => Ok(Answer::default()),
            "retry" => Err(Problem::retry("r", "")),
            "away" => Err(Trouble::unavailable("a", "").into()),
            _ => Err(Problem::quarantine("q", "")),
        });
        match result {
            Err(_) => "trouble".into(),
            Ok(verdicts) => verdicts.iter().map(name).collect::<Vec<_>>().join(" "),
        }
    }

    fn name(verdict: &SendVerdict) -> &'static str {
        match verdict {
            SendVerdict::Sent(_) => "sent",
            SendVerdict::Untried => "untried",
            SendVerdict::Retry(_) => "retry",
            SendVerdict::Quarantine(_) => "quarantine",
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_ordered_run_ends_at_the_first_that_was_not_sent() {
        assert_eq!(run(true, LONG, "ok bad ok"), "sent quarantine untried");
        assert_eq!(run(false, LONG, "ok bad retry ok"), "sent quarantine retry sent");
    }

    #[test]
    fn trouble_is_the_result_only_where_nothing_was_done() {
        assert_eq!(run(true, LONG, "away ok"), "trouble");
        assert_eq!(run(true, LONG, "ok away ok"), "sent untried untried");
        assert_eq!(run(false, LONG, "bad away ok"), "quarantine untried untried");
    }

    #[test]
    fn without_time_the_first_is_tried_and_no_more() {
        assert_eq!(run(true, Duration::ZERO, "ok ok"), "sent untried");
    }

    #[test]
    fn the_host_is_told_what_began_and_what_arrived() {
        run(false, LONG, "ok bad ok");
        let expected = [Event::Begin(0), Event::Sent(0), Event::Begin(1), Event::Begin(2), Event::Sent(2)];
        assert_eq!(testing::events(), expected);
    }
}
