//! Fills a project's store before its engine starts.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use portway_config::Project;
use portway_engine::ports::Clock;
use portway_model::{
    AttemptNo, Attributes, DestinationId, Draft, Epoch, Failure, GroupId, InterfaceId, Key, Lane, Round, code,
};
use portway_store::{
    Claimed, DeliveryResult, Durability, MessageOutcome, NewDelivery, NewMessage, Settled, Store, WriteBatch,
};
use portway_store_sqlite::{SqliteSettings, SqliteStore};

use crate::traffic::Template;
use crate::traffic::message::KEY_PREFIX;
use crate::wiring::{SystemClock, topology};

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
}

/// Stores them through the port, as an engine would.
pub async fn prefill(project: &Project, what: &Prefill) -> Result<()> {
    let folder = project.data_dir();
    std::fs::create_dir_all(folder)?;
    let store = SqliteStore::open(SqliteSettings::new(project.store.path.as_path())).await?;
    let registered = store.register(&topology(project)).await?;
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
        let targets: Vec<DestinationId> = batch
            .messages
            .iter()
            .filter_map(|message| Some(message.deliveries.first()?.destination))
            .collect();
        let outcome = store.write(batch).await?;
        let stored =
            outcome.messages.iter().zip(targets).enumerate().filter_map(|(at, (outcome, target))| {
                let is_head = done + (at as u64) < registered.interfaces.len() as u64;
                let retries =
                    what.state == State::AllInRetry || (what.state == State::HeadInRetry && is_head);
                retries.then_some((outcome, target))
            });
        let results: Vec<DeliveryResult> =
            stored.filter_map(|(outcome, target)| retry((outcome, target), tenure.epoch, &clock)).collect();
        if !results.is_empty() {
            let batch =
                WriteBatch { mark: u64::MAX - done, now: clock.now(), results, ..WriteBatch::default() };
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

fn retry(
    (outcome, destination): (&MessageOutcome, DestinationId),
    epoch: Epoch,
    clock: &SystemClock,
) -> Option<DeliveryResult> {
    let MessageOutcome::Stored { id, .. } = outcome else {
        return None;
    };
    let failure = Failure::new(code::plugin::UNREACHABLE, "asked to come later");
    Some(DeliveryResult {
        state: Vec::new(),
        destination,
        message: *id,
        epoch,
        round: Round(0),
        attempts: AttemptNo(1),
        settled: Settled::Retry { due_at: clock.now() + FAR, failure },
        attempted: None,
        output: None,
    })
}
