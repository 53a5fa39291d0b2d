//! A sender that misbehaves as its settings say, and otherwise says that all has arrived.

use std::time::Duration;

use plugin_hostile::{Deed, Settings, act, trap};
use portway_sdk::{
    Answer, Body, Call, Context, Failure, Message, Problem, SendVerdict, Sender, Trouble, connect, progress,
    send_each,
};

/// One destination's.
pub struct Hostile(Settings);

impl Sender for Hostile {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        settings.open()?;
        Ok(Hostile(settings))
    }

    fn send(&mut self, _call: &Call, message: Message) -> Result<Answer, Problem> {
        let deed = self.0.deed_for(&message.body.bytes()?);
        act(deed);
        match deed {
            Deed::HugeVerdict => Ok(Answer::new("ok", "x".repeat(48 << 20))),
            Deed::EndlessWait => loop {
                let mut connection = connect::open("peer")?;
                // Whatever comes of it, it waits again.
                let _ = connection.read(1, Duration::from_secs(3600));
            },
            _ => Ok(Answer::new("ok", "taken")),
        }
    }

    fn send_batch(&mut self, call: &Call, messages: Vec<Message>) -> Result<Vec<SendVerdict>, Trouble> {
        let count = messages.len();
        let Some(at) = messages.iter().position(|message| self.is_provoked(&message.body)) else {
            return send_each(call, messages, |_| Ok(Answer::default()));
        };
        match self.0.deed {
            Deed::SilentTrap => trap(),
            Deed::UnknownIndex => progress::sent(count + 1000),
            Deed::IndexGoingBack => {
                progress::begin(count.saturating_sub(1));
                progress::begin(0);
            }
            Deed::TrapAfterSent => {
                (0..=at).for_each(|index| {
                    progress::begin(index);
                    progress::sent(index);
                });
                trap();
            }
            _ => {}
        }
        let mut verdicts = send_each(call, messages, |message| self.send(call, message))?;
        match self.0.deed {
            Deed::TooFewVerdicts => verdicts.truncate(count.saturating_sub(1)),
            Deed::TooManyVerdicts => verdicts.push(SendVerdict::Sent(Answer::default())),
            Deed::SentAfterUntried => {
                for (index, verdict) in verdicts.iter_mut().enumerate() {
                    let odd =
                        if index == at { SendVerdict::Untried } else { SendVerdict::Sent(Answer::default()) };
                    *verdict = odd;
                }
            }
            _ => {}
        }
        Ok(verdicts)
    }
}

impl Hostile {
    fn is_provoked(&self, body: &Body) -> bool {
        body.bytes().is_ok_and(|bytes| self.0.deed_for(&bytes) != Deed::None)
    }
}

portway_sdk::export_sender!(Hostile);
