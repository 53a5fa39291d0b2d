//! The other side: takes runs as a plugin and a peer would, well or badly.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_engine::{Routed, Run, RunReport, Stop, Verdict};
use portway_model::{
    Answer, Attributes, DestinationId, Envelope, Failure, InterfaceId, Key, Later, MessageId,
};
use rand::{Rng, RngExt};

use crate::auditor::{given, written};
use crate::content::{self, Content, Kind};
use crate::scenario::Rates;

/// What becomes of a run, decided when it begins.
#[derive(Debug)]
pub struct Reception {
    pub report: RunReport,
    /// Who arrived, in order, whatever the report says.
    pub arrived: Vec<MessageId>,
    pub takes: Duration,
    /// The process ends while it is delivered.
    pub kills: Option<MessageId>,
}

/// How destinations take runs.
#[derive(Debug, Default)]
pub struct Receiver {
    /// How often a flaky message failed.
    failures: BTreeMap<(DestinationId, Content), u32>,
    /// Faults have ceased: everything that can arrive does.
    pub is_calm: bool,
}

/// Where routes lead.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub target: InterfaceId,
}

impl Receiver {
    pub fn receive(
        &mut self,
        run: &Run,
        route: Option<Route>,
        rates: &Rates,
        rng: &mut impl Rng,
    ) -> Reception {
        let takes = self.time(rates, rng);
        let mut reception = Reception {
            report: RunReport {
                verdicts: Vec::new(),
                stop: None,
                go_singly: false,
                state: written(run),
                outputs: given(run),
            },
            arrived: Vec::new(),
            takes,
            kills: None,
        };
        if !self.is_calm && rng.random_bool(rates.trouble) {
            self.trouble(run, &mut reception, rng);
        }
        let tried = if reception.report.stop.is_some() {
            rng.random_range(0..=run.messages.len())
        } else {
            run.messages.len()
        };
        self.take(run, tried, route, &mut reception);
        let missing = run.messages.len().saturating_sub(reception.report.verdicts.len());
        reception.report.verdicts.extend(std::iter::repeat_n(Verdict::Untried, missing));
        if !self.is_calm && rng.random_bool(rates.lie) {
            lie(&mut reception.report.verdicts, run.ordered, rng);
        }
        reception
    }

    fn time(&self, rates: &Rates, rng: &mut impl Rng) -> Duration {
        if !self.is_calm && rng.random_bool(rates.hang) {
            return Duration::from_secs(rng.random_range(5..60));
        }
        Duration::from_micros(rng.random_range(100..20_000))
    }

    fn trouble(&mut self, run: &Run, reception: &mut Reception, rng: &mut impl Rng) {
        let after_ms = rng.random_bool(0.3).then(|| rng.random_range(0..5_000));
        reception.report.stop = match rng.random_range(0..10) {
            0 => Some(Stop::Misconfigured(Failure::new("password", "it is wrong"))),
            1..9 => Some(Stop::Unavailable(Later { failure: Failure::new("away", "no answer"), after_ms })),
            // Nothing tried, and no word why.
            _ => {
                reception.report.verdicts = vec![Verdict::Untried; run.messages.len()];
                None
            }
        };
    }

    fn take(&mut self, run: &Run, tried: usize, route: Option<Route>, reception: &mut Reception) {
        if !reception.report.verdicts.is_empty() {
            return;
        }
        for envelope in run.messages.iter().take(tried) {
            let Some((content, kind)) = content::read(&envelope.body) else { continue };
            if kind == Kind::Trap && run.messages.len() > 1 {
                // Nobody knows who it was: what is not done goes on by itself.
                reception.report.go_singly = true;
                return;
            }
            if kind == Kind::Killer {
                reception.kills = Some(envelope.id);
            }
            let verdict = self.verdict(run, envelope, (content, kind), route);
            if matches!(verdict, Verdict::Sent(_) | Verdict::Route(_)) {
                reception.arrived.push(envelope.id);
            }
            let ends = match &verdict {
                Verdict::Sent(_) | Verdict::Route(_) | Verdict::Filtered(_) => false,
                Verdict::Quarantine(_) => run.hold_on_quarantine && run.ordered,
                Verdict::Retry(_) | Verdict::Untried | Verdict::Runaway(_) => run.ordered,
            };
            reception.report.verdicts.push(verdict);
            if ends || reception.kills.is_some() {
                return;
            }
        }
    }

    fn verdict(
        &mut self,
        run: &Run,
        envelope: &Envelope,
        message: (Content, Kind),
        route: Option<Route>,
    ) -> Verdict {
        let (content, kind) = message;
        let retry =
            |code: &str| Verdict::Retry(Later { failure: Failure::new(code, "later"), after_ms: None });
        match kind {
            Kind::Flaky(times) if !self.fails_again(run.destination, content, times) => {}
            Kind::Flaky(_) => return retry("flaky"),
            Kind::Stubborn if !self.is_calm => return retry("stubborn"),
            Kind::Runaway if !self.is_calm => return Verdict::Runaway(Failure::new("fuel", "used up")),
            Kind::Filtered => return Verdict::Filtered("not for us".into()),
            Kind::Refused => return Verdict::Quarantine(Failure::new("refused", "the peer says no")),
            Kind::Trap => return Verdict::Quarantine(Failure::new("trap", "unreachable")),
            Kind::Plain
            | Kind::Stubborn
            | Kind::Runaway
            | Kind::Killer
            | Kind::Doubtful
            | Kind::Unstorable => {}
        }
        match route {
            None => Verdict::Sent(Answer::default()),
            Some(route) => Verdict::Route(vec![routed(route, run.destination, envelope, content)]),
        }
    }

    fn fails_again(&mut self, destination: DestinationId, content: Content, times: u32) -> bool {
        let failures = self.failures.entry((destination, content)).or_default();
        *failures += 1;
        *failures <= times
    }
}

/// What a route makes of a message: a body that tells where it came from.
fn routed(route: Route, from: DestinationId, envelope: &Envelope, content: Content) -> Routed {
    Routed {
        target: route.target,
        key: envelope.key.as_ref().and_then(|key| Key::new(key.as_str())),
        attributes: Attributes::default(),
        body: content::body(content.routed_by(from), Kind::Plain, 64),
    }
}

/// Only lies that can be found out: nobody can see that a message did not arrive.
fn lie(verdicts: &mut Vec<Verdict>, is_ordered: bool, rng: &mut impl Rng) {
    let ends_early = verdicts.last().is_some_and(|last| matches!(last, Verdict::Untried | Verdict::Retry(_)));
    match rng.random_range(0..4) {
        0 => {
            verdicts.pop();
        }
        1 => verdicts.push(Verdict::Sent(Answer::default())),
        2 if is_ordered && ends_early => verdicts.reverse(),
        _ => verdicts.clear(),
    }
}
