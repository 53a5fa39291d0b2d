//! What an answer means for the message.

use portway_sdk::{Answer, Failure, HttpError, Later, Problem, Response, Trouble};

use crate::retry_after;
use crate::settings::{OnRefusal, Settings};

/// Judges answers.
pub struct Judging {
    on_unauthorized: OnRefusal,
    on_forbidden: OnRefusal,
    answer_bytes_max: usize,
}

impl Judging {
    pub fn new(settings: &Settings) -> Self {
        let Settings { on_unauthorized, on_forbidden, answer_bytes_max, .. } = *settings;
        Judging { on_unauthorized, on_forbidden, answer_bytes_max }
    }

    pub fn judge(&self, outcome: Result<Response, HttpError>) -> Result<Answer, Problem> {
        match outcome {
            Ok(response) => self.judge_response(&response),
            // Asking again would deliver it again, and bring the same answer.
            Err(HttpError::TooLarge) => Err(Problem::quarantine(
                "answer-too-large",
                format!("{}; the message has arrived, whatever it said", HttpError::TooLarge),
            )),
            Err(error) => Err(error.into_problem()),
        }
    }

    fn judge_response(&self, response: &Response) -> Result<Answer, Problem> {
        let status = response.status;
        let code = status.to_string();
        let body = self.excerpt(response);
        match status {
            200..=299 => Ok(Answer::new(code, body)),
            300..=399 => Err(Problem::quarantine(code, redirected(response))),
            401 if self.on_unauthorized == OnRefusal::Stop => {
                let text = said("the server does not accept the credentials: it", status, &body);
                Err(Trouble::misconfigured(code, text).into())
            }
            403 if self.on_forbidden == OnRefusal::Stop => {
                let text = said("the credentials do not give access: the server", status, &body);
                Err(Trouble::misconfigured(code, text).into())
            }
            408 | 425 | 429 | 500..=599 => {
                let failure = Failure::new(code, said("the server", status, &body));
                Err(Later { failure, after_ms: retry_after::of(response) }.into())
            }
            _ => Err(Problem::quarantine(code, said("the server", status, &body))),
        }
    }

    /// The beginning of the body, as text. One that cannot be read is not worth more than a
    /// remark: the status has said what became of the message.
    fn excerpt(&self, response: &Response) -> String {
        use std::io::Read as _;

        let mut bytes = Vec::new();
        let read = response.body.reader().take(self.answer_bytes_max as u64).read_to_end(&mut bytes);
        if let Err(error) = read {
            return format!("(the body cannot be read: {error})");
        }
        let is_cut = response.body.len() > bytes.len() as u64;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_cut {
            // A character may have been cut in two.
            if text.ends_with(char::REPLACEMENT_CHARACTER) {
                text.pop();
            }
            text.push('…');
        }
        text
    }
}

fn said(who: &str, status: u16, body: &str) -> String {
    match body.trim() {
        "" => format!("{who} answered {status}"),
        body => format!("{who} answered {status}: {body}"),
    }
}

fn redirected(response: &Response) -> String {
    let status = response.status;
    match response.header("location") {
        Some(location) => format!(
            "the server answered {status} and points to `{location}`; redirects are not followed, \
             grant that address if it is the right one"
        ),
        None => format!("the server answered {status} without saying where to; redirects are not followed"),
    }
}
