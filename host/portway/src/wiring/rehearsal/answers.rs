//! Stated answers of web services, and what plugins asked for them.
//!
//! Each plugin that asks has its own, in their order; nothing of what it asks leaves the process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portway_config::{AnswerFailure, CaseAnswer, CaseFile};
use portway_net::http::{HttpError, HttpResponse};
use portway_runtime::{Asked, HttpAnswers};

/// Requests of one plugin that are kept.
const ASKED_MAX: usize = 1_000;

/// The answers for a source, or for the plugins of a destination. `transform` counts from 1; none:
/// the sender or the source.
#[derive(Debug, Default)]
pub struct Answers {
    desks: BTreeMap<Option<u32>, Arc<Desk>>,
}

/// Where one plugin asks.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<Business>);

#[derive(Debug, Default)]
struct Business {
    waiting: VecDeque<Result<HttpResponse, HttpError>>,
    asked: Vec<Asked>,
}

impl Answers {
    /// Those for the plugins of a destination.
    pub fn of(case: &CaseFile, destination: &str) -> Answers {
        Answers::where_named(case, Some(destination))
    }

    /// Those for the source.
    pub fn of_source(case: &CaseFile) -> Answers {
        Answers::where_named(case, None)
    }

    fn where_named(case: &CaseFile, destination: Option<&str>) -> Answers {
        let mut answers = Answers::default();
        let named = |answer: &CaseAnswer| answer.destination.as_ref().map(|name| name.value.to_string());
        for answer in case.answer.iter().filter(|answer| named(answer).as_deref() == destination) {
            answers.desk(answer.transform).lock().waiting.push_back(stated(answer));
        }
        answers
    }

    /// Whether an answer is stated for a plugin.
    pub fn are_stated_for(&self, transform: Option<u32>) -> bool {
        self.desks.get(&transform).is_some_and(|desk| !desk.lock().waiting.is_empty())
    }

    /// What a plugin asked since this was asked last.
    pub fn take_asked(&self, transform: Option<u32>) -> Vec<Asked> {
        let desk = self.desks.get(&transform);
        desk.map(|desk| std::mem::take(&mut desk.lock().asked)).unwrap_or_default()
    }

    pub(super) fn desk(&mut self, transform: Option<u32>) -> Arc<Desk> {
        self.desks.entry(transform).or_default().clone()
    }
}

impl Desk {
    /// The next answer; the last one stays.
    pub(super) fn next(&self) -> Option<Result<HttpResponse, HttpError>> {
        let waiting = &mut self.lock().waiting;
        if waiting.len() > 1 { waiting.pop_front() } else { waiting.front().cloned() }
    }

    fn lock(&self) -> MutexGuard<'_, Business> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpAnswers for Desk {
    fn answer(&self, asked: Asked) -> Result<HttpResponse, HttpError> {
        {
            let asked_before = &mut self.lock().asked;
            if asked_before.len() < ASKED_MAX {
                asked_before.push(asked);
            }
        }
        let nothing = || HttpError::Denied("nothing leaves a rehearsal, and no answer is stated".into());
        self.next().unwrap_or_else(|| Err(nothing()))
    }
}

fn stated(answer: &CaseAnswer) -> Result<HttpResponse, HttpError> {
    match answer.fails {
        Some(AnswerFailure::Timeout) => return Err(HttpError::Timeout),
        Some(AnswerFailure::Unreachable) => return Err(HttpError::Unreachable("nobody answers".to_owned())),
        None => {}
    }
    let headers = answer.headers.json.as_object().into_iter().flatten();
    let headers = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str().unwrap_or_default().to_owned()));
    let body = answer.body.0.clone().into_bytes().into();
    Ok(HttpResponse { status: answer.status, headers: headers.collect(), body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_their_order_and_the_last_stays() {
        let mut answers = Answers::default();
        let desk = answers.desk(Some(1));
        assert_eq!(desk.next(), None);
        for status in [200, 503] {
            let answer = HttpResponse { status, headers: Vec::new(), body: Default::default() };
            desk.lock().waiting.push_back(Ok(answer));
        }
        let statuses: Vec<_> = (0..3).map(|_| desk.next().unwrap().unwrap().status).collect();
        assert_eq!(statuses, [200, 503, 503]);
        assert!(answers.are_stated_for(Some(1)) && !answers.are_stated_for(None));
    }
}
