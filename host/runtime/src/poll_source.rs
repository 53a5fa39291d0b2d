//! Poll sources: asked for what comes after a cursor, told when it is stored.
//!
//! The cursor is the only memory that counts: any instance may be asked, and asked again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portway_bindings::exports::portway::plugin::poll_source as wit;
use portway_bindings::portway::plugin::types as wit_types;
use portway_model::Cost;
use tokio::time::Instant as Moment;

use crate::batch::Opened;
use crate::convert::{Lie, small_number_in, trouble_in};
use crate::fault::CallError;
use crate::instance::{Instance, Use, run};
use crate::kept::Kept;
use crate::pool::Pool;
use crate::source::{Receipt, SourceItem, items_in, receipts_of};

/// Bytes of a cursor.
pub const CURSOR_BYTES_MAX: usize = 64 << 10;
/// Fuel for each byte that may be found, beside what a message may use.
const FUEL_PER_BYTE: u64 = 1_000;

/// A poll source opened for one interface. Cheap to clone.
#[derive(Clone)]
pub struct PollSource {
    opened: Arc<Opened>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Query {
    /// What the last committed [`Found`] said; empty the very first time.
    pub cursor: Bytes,
    pub items_max: u32,
    /// Of all messages together; a single message may be more.
    pub bytes_max: u32,
    pub wait_max: Duration,
    /// Messages of the interface that are not finished yet.
    pub unfinished: u32,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    pub items: Vec<SourceItem>,
    pub cursor: Bytes,
    /// When to ask again; zero: at once.
    pub again: Duration,
    /// What finding it cost; zero where calls are not timed.
    pub cost: Cost,
}

impl PollSource {
    pub(crate) fn new(pool: Arc<Pool>, user: Use) -> PollSource {
        PollSource { opened: Arc::new(Opened { pool, user }) }
    }

    /// Opens it now, to see whether it takes its settings.
    pub async fn check(&self) -> Result<(), CallError> {
        self.opened.check().await
    }

    /// The next items after the cursor.
    pub async fn poll(&self, query: &Query) -> Result<Found, CallError> {
        let deadline = self.opened.deadline(Duration::MAX);
        let mut lease = self.opened.lease(deadline).await?;
        let result = self.poll_in(&mut lease.instance, query, deadline).await;
        self.opened.release(lease, result)
    }

    /// After the commit; safe to repeat.
    pub async fn settle(&self, cursor: &Bytes, receipts: Vec<Receipt>) -> Result<(), CallError> {
        let deadline = self.opened.deadline(Duration::MAX);
        let mut lease = self.opened.lease(deadline).await?;
        let receipts = receipts_of(receipts);
        let result = settle_in(&mut lease.instance, &self.opened.user, cursor, &receipts, deadline).await;
        self.opened.release(lease, result)
    }

    async fn poll_in(
        &self,
        instance: &mut Instance,
        query: &Query,
        deadline: Moment,
    ) -> Result<Found, CallError> {
        let user = &self.opened.user;
        let resource = instance.resource(user, deadline).await?;
        let fuel = user.opening.limits.fuel_per_message + FUEL_PER_BYTE * u64::from(query.bytes_max);
        instance.start(&user.opening.observer, &mut std::iter::empty(), fuel, deadline)?;
        let meter = instance.wasi_meter();
        let asked = query_of(query);
        let timer = user.opening.timer();
        let Instance { exports, store, .. } = &mut *instance;
        let call = async { exports.poll_source()?.poller().call_poll(store, resource, &asked).await };
        let outcome = run(deadline, &meter, call).await;
        let cost = timer.cost(instance);
        let found = match instance.finish(outcome)? {
            Ok(found) => found,
            Err(trouble) => {
                let trouble = trouble_in(trouble).map_err(|lie| instance.lie(lie, None))?;
                return Err(CallError::Trouble(trouble));
            }
        };
        let control = self.opened.pool.plugin.manifest.control;
        let found = found_in(instance, query, control, found);
        let found = found.map_err(|lie| instance.lie(lie, None))?;
        Ok(Found { cost, ..found })
    }
}

async fn settle_in(
    instance: &mut Instance,
    user: &Use,
    cursor: &Bytes,
    receipts: &[wit_types::Receipt],
    deadline: Moment,
) -> Result<(), CallError> {
    let resource = instance.resource(user, deadline).await?;
    let fuel = instance.fuel_of(receipts.len());
    instance.start(&user.opening.observer, &mut std::iter::empty(), fuel, deadline)?;
    let meter = instance.wasi_meter();
    let Instance { exports, store, .. } = &mut *instance;
    let call = async { exports.poll_source()?.poller().call_settle(store, resource, cursor, receipts).await };
    let outcome = run(deadline, &meter, call).await;
    instance.finish(outcome)?.or_else(|trouble| {
        let trouble = trouble_in(trouble).map_err(|lie| instance.lie(lie, None))?;
        Err(CallError::Trouble(trouble))
    })
}

fn query_of(query: &Query) -> wit::Query {
    wit::Query {
        cursor: query.cursor.to_vec(),
        items_max: query.items_max,
        bytes_max: query.bytes_max,
        wait_max_ms: u32::try_from(query.wait_max.as_millis()).unwrap_or(u32::MAX >> 1),
        unfinished: query.unfinished,
    }
}

/// Checks what was found against what was asked for.
fn found_in(instance: &mut Instance, query: &Query, control: bool, found: wit::Found) -> Result<Found, Lie> {
    if found.cursor.len() > CURSOR_BYTES_MAX {
        let bytes = found.cursor.len();
        return Err(format!("a cursor of {bytes} bytes, at most {CURSOR_BYTES_MAX} are allowed"));
    }
    if found.items.len() > query.items_max as usize {
        return Err(format!("{} items, {} were asked for", found.items.len(), query.items_max));
    }
    let again_ms = small_number_in(found.again_ms, "again-ms")?;
    // There is no input to cut from: every span is a lie.
    let items = items_in(instance.store.data_mut(), &Kept::new(0), 0, control, found.items)?;
    check_bytes(&items, query.bytes_max)?;
    Ok(Found {
        items,
        cursor: found.cursor.into(),
        again: Duration::from_millis(u64::from(again_ms)),
        cost: Cost::default(),
    })
}

fn check_bytes(items: &[SourceItem], bytes_max: u32) -> Result<(), Lie> {
    let sizes = items.iter().filter_map(|item| match item {
        SourceItem::Message { draft, .. } => Some(draft.body.len()),
        SourceItem::Refused { .. } | SourceItem::Control { .. } => None,
    });
    let (count, bytes) = sizes.fold((0, 0_usize), |(count, bytes), size| (count + 1, bytes + size));
    if count > 1 && bytes > bytes_max as usize {
        return Err(format!("{bytes} bytes of messages, {bytes_max} were asked for"));
    }
    Ok(())
}
