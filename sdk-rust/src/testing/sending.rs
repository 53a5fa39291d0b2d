//! Cases of senders that talk to a peer.

use super::{Case, Event, describe_sends, notices, take_events};
use crate::{Sender, Trouble, connect};

impl Case {
    /// Opens a sender with the settings and gives it the messages; of a case whose name begins with
    /// `again-` in two halves. What it says is compared with `verdicts.txt`, what it does with
    /// `traffic.txt`.
    pub fn send<S: Sender>(mut self, describe: impl Fn(&Event) -> String) {
        let opened = self.settings().and_then(|settings| S::open(settings, &self.context()));
        let mut sender = match opened {
            Ok(sender) => sender,
            Err(failure) => {
                return self.expect("verdicts.txt", describe_sends(&Err(Trouble::Misconfigured(failure))));
            }
        };
        let mut runs = vec![std::mem::take(&mut self.messages)];
        if let Some(first) = runs.first_mut().filter(|_| self.name.starts_with("again-")) {
            let second = first.split_off(first.len() / 2);
            runs.push(second);
        }
        let (mut verdicts, mut traffic) = (String::new(), String::new());
        for messages in runs {
            verdicts.push_str(&describe_sends(&sender.send_batch(&self.call, messages)));
            traffic.extend(take_events().iter().map(&describe));
        }
        let notices = notices().into_iter().map(|(code, text)| format!("notice {code}: {text}\n"));
        self.expect("verdicts.txt", verdicts + &notices.collect::<String>());
        self.expect("traffic.txt", traffic);
    }
}

/// An error of a connection by its name in a case.
pub fn connect_error(name: &str) -> connect::Error {
    match name {
        "denied" => connect::Error::Denied,
        "busy" => connect::Error::Busy,
        "timeout" => connect::Error::Timeout,
        "closed" => connect::Error::Closed,
        "untrusted" => connect::Error::Untrusted("certificate expired".into()),
        "unreachable" => connect::Error::Unreachable("connection refused".into()),
        other => connect::Error::Other(other.into()),
    }
}
