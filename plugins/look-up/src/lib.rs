//! Looks something up in an API for each message, and adds what it finds as attributes.
//!
//! The requests of a batch go side by side. What an answer means is in `answer`.

mod answer;
mod settings;

use std::time::Duration;

use portway_sdk::http::{self, Error, Request, Response};
use portway_sdk::{
    Body, Call, Context, Failure, Message, Output, Problem, Template, Transform, TransformVerdict, Trouble,
    transform_each,
};

use crate::answer::Found;

pub use settings::{Missing, Settings};

/// The slot of the manifest.
const API: &str = "api";

/// The look-up of one destination.
#[derive(Debug)]
pub struct LookUp {
    path: Template,
    attributes: Vec<(String, portway_json::Path)>,
    missing: Missing,
}

impl Transform for LookUp {
    type Settings = Settings;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        settings.read()
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let call = Call::new(String::new(), false, Duration::ZERO);
        let answer = http::send(self.request(&call, &message)?);
        self.judge(message, answer)
    }

    fn transform_batch(
        &mut self,
        call: &Call,
        messages: Vec<Message>,
    ) -> Result<Vec<TransformVerdict>, Trouble> {
        let mut requests = Vec::with_capacity(messages.len());
        let mut refused = Vec::with_capacity(messages.len());
        for message in &messages {
            refused.push(self.request(call, message).map(|request| requests.push(request)).err());
        }
        let mut answers = http::send_all(requests).into_iter();
        let mut refused = refused.into_iter();
        transform_each(messages, |message| match refused.next().flatten() {
            Some(problem) => Err(problem),
            None => self.judge(message, answers.next().unwrap_or(Err(Error::Timeout))),
        })
    }
}

impl LookUp {
    fn request(&self, call: &Call, message: &Message) -> Result<Request, Problem> {
        let path = self.path.render_path(call, message)?;
        Ok(Request::get(format!("{API}:{path}")).with_header("accept", "application/json"))
    }

    fn judge(&self, message: Message, answer: Result<Response, Error>) -> Result<TransformVerdict, Problem> {
        let text = match answer::found(answer)? {
            Found::Nothing => return self.missing.verdict(),
            Found::Answer(text) => text,
        };
        let Message { body, .. } = message;
        Ok(self.with_attributes(body, &text)?.into())
    }

    fn with_attributes(&self, body: Body, text: &str) -> Result<Output, Problem> {
        let document = answer::read(text)?;
        let mut output = Output::new(body);
        for (name, path) in &self.attributes {
            output = output.with_attribute(name.clone(), answer::value(&document, path)?);
        }
        Ok(output)
    }
}

portway_sdk::export_transform!(LookUp);
