//! Cases of senders that talk to a peer.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Case, Event, PeerScript, describe_sends, dial, notices, take_events};
use crate::{Sender, Trouble, connect};

/// One connection that is dialled, or why there is none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Dial<B> {
    Refused { refused: String },
    Steps(Vec<Step<B>>),
}

/// What a peer does. Each read and each write takes the next of its kind; writes without one work.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Step<B> {
    /// `wanted`, `required` or `tls`, as the grant says.
    Protection(String),
    Credentials,
    TlsFails(String),
    Says(B),
    /// The same so many times.
    SaysOften(B, usize),
    Closes,
    ReadFails(String),
    WriteWorks,
    WriteFails(String),
}

impl Case {
    /// Opens a sender with the settings and gives it the messages; of a case whose name begins with
    /// `again-` in two halves.
    ///
    /// `peer.json` is what the granted peer does, a list of steps for each connection that is dialled,
    /// with bytes as `B` reads them (a `String`, or a type with escapes). What the sender says is
    /// compared with `verdicts.txt`, what it does with `traffic.txt`; `show` is how bytes stand there.
    pub fn send<S: Sender, B: DeserializeOwned + AsRef<[u8]>>(
        mut self,
        peer: &str,
        show: impl Fn(&[u8]) -> String,
    ) {
        for connection in self.json::<Vec<Dial<B>>>("peer.json").unwrap_or_default() {
            dial(peer, script(connection));
        }
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
            traffic.extend(take_events().iter().map(|event| describe(event, &show)));
        }
        let notices = notices().into_iter().map(|(code, text)| format!("notice {code}: {text}\n"));
        self.expect("verdicts.txt", verdicts + &notices.collect::<String>());
        self.expect("traffic.txt", traffic);
    }
}

fn script<B: AsRef<[u8]>>(connection: Dial<B>) -> Result<PeerScript, connect::Error> {
    let steps = match connection {
        Dial::Refused { refused } => return Err(connect_error(&refused)),
        Dial::Steps(steps) => steps,
    };
    Ok(steps.into_iter().fold(PeerScript::new(), |script, step| match step {
        Step::Protection(word) => script.protected(match word.as_str() {
            "wanted" => connect::Protection::Wanted,
            "required" => connect::Protection::Required,
            _ => connect::Protection::Tls,
        }),
        Step::Credentials => script.with_credentials(),
        Step::TlsFails(text) => script.tls_fails(connect_error(&text)),
        Step::Says(bytes) => script.says(bytes),
        Step::SaysOften(bytes, times) => script.says(bytes.as_ref().repeat(times)),
        Step::Closes => script.says(""),
        Step::ReadFails(text) => script.read_fails(connect_error(&text)),
        Step::WriteWorks => script.write_works(),
        Step::WriteFails(text) => script.write_fails(connect_error(&text)),
    }))
}

fn describe(event: &Event, show: impl Fn(&[u8]) -> String) -> String {
    match event {
        Event::Begin(index) => format!("begin {index}\n"),
        Event::Sent(index) => format!("sent {index}\n"),
        Event::Open { fresh: true, .. } => "open, new\n".into(),
        Event::Open { fresh: false, .. } => "open, kept\n".into(),
        Event::StartTls => "TLS begins\n".into(),
        Event::Write(bytes) => show(bytes),
        Event::Keep => "keep\n".into(),
        Event::Close => "close\n".into(),
        other => format!("{other:?}\n"),
    }
}

/// An error of a connection by its name in a case.
fn connect_error(name: &str) -> connect::Error {
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
