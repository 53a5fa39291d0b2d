//! A transform that misbehaves as its settings say, and otherwise passes messages on.

use plugin_hostile::{Deed, Settings, act, tell_time, trap};
use portway_sdk::{
    Body, Call, Context, Failure, Message, Output, Problem, Transform, TransformVerdict, Trouble, http,
    progress, transform_each,
};

/// One destination's.
pub struct Hostile(Settings);

impl Transform for Hostile {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        settings.open()?;
        Ok(Hostile(settings))
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let deed = self.0.deed_for(&message.body.bytes()?);
        act(deed);
        Ok(match deed {
            Deed::HugeVerdict => TransformVerdict::Filter("x".repeat(48 << 20)),
            Deed::HugeBody => TransformVerdict::deliver(vec![b'x'; 48 << 20]),
            Deed::PortwayAttribute => {
                let output = Output::new(message.body).with_attribute("portway.source", "forged");
                output.with_attribute("mine", "kept").into()
            }
            Deed::TellTime => TransformVerdict::deliver(tell_time()),
            Deed::Ask => ask(message)?,
            Deed::AskAll => ask_all(),
            Deed::SeveralOutputs => TransformVerdict::Deliver(vec![Output::new("one"), Output::new("two")]),
            _ => TransformVerdict::Pass,
        })
    }

    fn transform_batch(
        &mut self,
        _call: &Call,
        messages: Vec<Message>,
    ) -> Result<Vec<TransformVerdict>, Trouble> {
        let provoked = messages.iter().map(|message| &message.body).any(|body| self.is_provoked(body));
        if !provoked {
            return transform_each(messages, |_| Ok(TransformVerdict::Pass));
        }
        match self.0.deed {
            Deed::SilentTrap => trap(),
            Deed::UnknownIndex => progress::begin(messages.len() + 1000),
            Deed::IndexGoingBack => {
                progress::begin(messages.len().saturating_sub(1));
                progress::begin(0);
            }
            _ => {}
        }
        let mut verdicts = transform_each(messages, |message| self.transform(message))?;
        match self.0.deed {
            Deed::TooFewVerdicts => verdicts.truncate(verdicts.len().saturating_sub(1)),
            Deed::TooManyVerdicts => verdicts.push(TransformVerdict::Pass),
            _ => {}
        }
        Ok(verdicts)
    }
}

/// What is not answered may work later; what is denied never does.
fn ask(message: Message) -> Result<TransformVerdict, Problem> {
    let url = message.body.text()?.into_owned();
    match http::send(http::Request::get(url).with_header("accept", "text/plain")) {
        Ok(answer) => Ok(TransformVerdict::deliver(format!("{} {}", answer.status, answer.body.text()?))),
        Err(error @ http::Error::Denied(_)) => Err(Problem::quarantine("denied", error.to_string())),
        Err(error) => Err(Problem::retry("not-answered", error.to_string())),
    }
}

fn ask_all() -> TransformVerdict {
    let request = |number: u32| {
        let request = http::Request::post(format!("api:/{number}"), Vec::new());
        http::Request { content: http::Content::OfMessage, ..request }
    };
    let told = http::send_all((1..=3).map(request).collect()).into_iter().map(|outcome| match outcome {
        Ok(answer) => answer.status.to_string(),
        Err(error) => error.to_string(),
    });
    TransformVerdict::deliver(told.collect::<Vec<_>>().join(","))
}

impl Hostile {
    fn is_provoked(&self, body: &Body) -> bool {
        body.bytes().is_ok_and(|bytes| self.0.deed_for(&bytes) != Deed::None)
    }
}

portway_sdk::export_transform!(Hostile);
