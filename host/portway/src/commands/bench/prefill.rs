//! Fills a project's store before its engine starts.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use portway_config::Project;
use portway_engine::ports::Clock;
use portway_model::{
    Answer, AttemptNo, Attributes, DestinationId, Draft, Epoch, Failure, GroupId, InterfaceId, Key, Lane,
    Round, code,
};
use portway_store::{
    Claimed, DeliveryResult, Durability, MessageOutcome, NewDelivery, NewMessage, Settled, WriteBatch,
};

use super::engine::open_store;
use crate::traffic::Template;
use crate::traffic::message::KEY_PREFIX;
use crate::wiring::SystemClock;

/// Messages in one transaction.
const BATCH: u64 = 2_048;
/// A retry that does not come due while anything is measured.
const FAR: Duration = Duration::from_secs(3_600);

/// What to fill in, spread evenly over the interfaces.
pub struct Prefill {
    pub messages: u64,
    pub state: State,
    pub body_bytes: usize,
}

/// How the deliveries wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    /// The first delivery of each interface waits for a retry, so that its lane is blocked.
    HeadInRetry,
    /// Every delivery waits for a retry.
    AllInRetry,
    /// Every delivery is done.
    Delivered,
}

/// Stores them through the port, as an engine would.
pub async fn prefill(project: &Project, what: &Prefill) -> Result<()> {
    let (store, registered) = open_store(project).await?;
    let groups: Vec<GroupId> = registered.interfaces.iter().map(|(id, _)| GroupId(id.0)).collect();
    let Claimed::Owned(tenure) = store.claim(&groups, SystemClock::new().now()).await? else {
        anyhow::bail!("another engine has the store")
    };
    let template = Template::new(what.body_bytes);
    let clock = SystemClock::new();
    let mut done = 0;
    while done < what.messages {
        let count = BATCH.min(what.messages - done);
        let numbers = done..done + count;
        let messages = numbers.map(|number| {
            let index = (number % registered.interfaces.len().max(1) as u64) as usize;
            message(project, &registered.interfaces, index, number, &template, &clock)
        });
        let batch = WriteBatch {
            mark: done + 1,
            now: clock.now(),
            durability: Durability::Relaxed,
            messages: messages.collect(),
            ..WriteBatch::default()
        };
        let targets: Vec<Vec<NewDelivery>> =
            batch.messages.iter().map(|message| message.deliveries.clone()).collect();
        let outcome = store.write(batch).await?;
        let mut results = Vec::new();
        for (number, (outcome, targets)) in (done..).zip(outcome.messages.iter().zip(&targets)) {
            let is_head = number < registered.interfaces.len() as u64;
            for target in targets {
                if let Some(settled) = settled(what.state, is_head, &clock) {
                    results.extend(result((outcome, target.destination), tenure.epoch, settled));
                }
            }
        }
        for (number, results) in (1..).zip(results.chunks(BATCH as usize)) {
            let (mark, results) = (u64::MAX - (done << 16) - number, results.to_vec());
            let batch = WriteBatch { mark, now: clock.now(), results, ..WriteBatch::default() };
            store.write(batch).await?;
        }
        done += count;
    }
    store.close().await?;
    Ok(())
}

fn message(
    project: &Project,
    registered: &[(InterfaceId, Vec<DestinationId>)],
    index: usize,
    number: u64,
    template: &Template,
    clock: &SystemClock,
) -> NewMessage {
    let name = format!("{KEY_PREFIX}{:04}", number % 1_000);
    let key = Key::new(&name);
    let (id, destinations) = registered.get(index).cloned().unwrap_or_default();
    let settings = project.interfaces.get(index).map_or(&[][..], |interface| &interface.destinations);
    let deliveries = settings.iter().zip(&destinations).map(|(settings, destination)| NewDelivery {
        destination: *destination,
        lane: Lane::of(settings.order, key.as_ref()),
    });
    NewMessage {
        interface: id,
        group: GroupId(id.0),
        received_at: clock.now(),
        deliveries: deliveries.collect(),
        draft: Draft {
            body: Bytes::from(template.message(&name, number)),
            key,
            dedupe: None,
            occurred_at: None,
            attributes: Attributes::default(),
            doubt: None,
        },
        dedupe: None,
        origin: None,
        edited: None,
        terms: Vec::new(),
    }
}

/// What becomes of a delivery; none: it waits.
fn settled(state: State, is_head: bool, clock: &SystemClock) -> Option<Settled> {
    let retry = || {
        let failure = Failure::new(code::plugin::UNREACHABLE, "asked to come later");
        Settled::Retry { due_at: clock.now() + FAR, failure }
    };
    match (state, is_head) {
        (State::Waiting, _) | (State::HeadInRetry, false) => None,
        (State::HeadInRetry, true) | (State::AllInRetry, _) => Some(retry()),
        (State::Delivered, _) => Some(Settled::Sent(Answer::default())),
    }
}

fn result(
    (outcome, destination): (&MessageOutcome, DestinationId),
    epoch: Epoch,
    settled: Settled,
) -> Option<DeliveryResult> {
    let MessageOutcome::Stored { id, .. } = outcome else {
        return None;
    };
    Some(DeliveryResult {
        state: Vec::new(),
        destination,
        message: *id,
        epoch,
        round: Round(0),
        attempts: AttemptNo(1),
        settled,
        attempted: None,
        output: None,
    })
}
