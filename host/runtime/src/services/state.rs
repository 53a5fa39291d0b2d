//! `state`: what one use of a plugin keeps for its destination.
//!
//! Reads see what is stored, and over it what the call has written. Writes stay in the call: they
//! go out with it, by message.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use portway_bindings::portway::host::state::Error;
use portway_model::StateWrite;
use wasmtime::component::Linker;

use super::{SYSTEM, define_waiting};
use crate::guest::Guest;
use crate::state::{Space, TooMuch};

/// Keys of one scan.
const KEYS_MAX: u32 = 1_000;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut state = linker.instance("portway:host/state@0.1.0")?;
    define_waiting(
        &mut state,
        "get",
        SYSTEM,
        |_| 0,
        |guest, (key,): (String,)| {
            Box::pin(async move {
                let value = get(guest, &key).await;
                if let Ok(Some(value)) = &value {
                    guest.meter.owe(SYSTEM.per_byte * value.len() as u64);
                }
                Ok((value.map(|value| value.map(|value| value.to_vec())),))
            })
        },
    )?;
    define_waiting(
        &mut state,
        "put",
        SYSTEM,
        |(_, value): &(String, Vec<u8>)| value.len(),
        |guest, (key, value)| Box::pin(async move { Ok((write(guest, key, Some(value.into())).await,)) }),
    )?;
    define_waiting(
        &mut state,
        "delete",
        SYSTEM,
        |_| 0,
        |guest, (key,): (String,)| Box::pin(async move { Ok((write(guest, key, None).await,)) }),
    )?;
    define_waiting(
        &mut state,
        "scan",
        SYSTEM,
        |(_, _, limit): &(String, Option<String>, u32)| (*limit).min(KEYS_MAX) as usize * 64,
        |guest, (prefix, after, limit)| {
            Box::pin(async move { Ok((scan(guest, &prefix, after.as_deref(), limit.min(KEYS_MAX)).await,)) })
        },
    )
}

fn space(guest: &Guest) -> Result<Arc<Space>, Error> {
    guest.reach.state.clone().ok_or(Error::Denied)
}

/// The message at hand, by its place in the batch. While a plugin is opened there is none.
fn at_hand(guest: &Guest) -> Option<u32> {
    let call = &guest.call;
    let index = match call.begun {
        Some(begun) => begun,
        None if call.messages.len() == 1 => 0,
        None => return None,
    };
    Some(call.state_indexes.get(index as usize).copied().unwrap_or(index))
}

async fn get(guest: &mut Guest, key: &str) -> Result<Option<Bytes>, Error> {
    let space = space(guest)?;
    let written = at_hand(guest).and_then(|index| guest.call.state.get(key, index, guest.call.sight));
    if let Some(value) = written {
        return Ok(value.cloned());
    }
    if !StateWrite::is_key(key) {
        return Ok(None);
    }
    guest.serve(space.grant.store.get(key)).await.map_err(Error::Unavailable)
}

async fn write(guest: &mut Guest, key: String, value: Option<Bytes>) -> Result<(), Error> {
    let space = space(guest)?;
    let Some(index) = at_hand(guest) else {
        return Err(Error::Other("no message was begun that it could belong to".into()));
    };
    if !StateWrite::is_key(&key) {
        return match key.len() > StateWrite::KEY_BYTES_MAX {
            true => Err(Error::QuotaExceeded),
            false => Err(Error::Other("a key has 1 to 256 bytes and no zero byte".into())),
        };
    }
    if value.as_ref().is_some_and(|value| value.len() > StateWrite::VALUE_BYTES_MAX) {
        return Err(Error::QuotaExceeded);
    }
    let sight = guest.call.sight;
    let is_new = value.is_some() && !matches!(guest.call.state.get(&key, index, sight), Some(Some(_)));
    if is_new && !space.take_room() {
        let log = guest.call.state.overlay(index, sight);
        let written: Vec<String> =
            log.filter(|(_, is_there)| *is_there).map(|(key, _)| key.clone()).collect();
        let has_room = guest.serve(space.count_room(&key, &written)).await.map_err(Error::Unavailable)?;
        if !has_room {
            return Err(Error::QuotaExceeded);
        }
    }
    guest.call.state.write(key, index, value).map_err(|TooMuch| Error::QuotaExceeded)
}

async fn scan(
    guest: &mut Guest,
    prefix: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<String>, Error> {
    let space = space(guest)?;
    let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
    if let Some(index) = at_hand(guest) {
        for (key, is_there) in guest.call.state.overlay(index, guest.call.sight) {
            if key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after) {
                let _ = if is_there { added.insert(key.clone()) } else { removed.insert(key.clone()) };
            }
        }
    }
    // Enough for the limit, however many of them are removed.
    let wanted = limit.saturating_add(u32::try_from(removed.len()).unwrap_or(u32::MAX));
    let stored =
        guest.serve(space.grant.store.keys(prefix, after, wanted)).await.map_err(Error::Unavailable)?;
    added.extend(stored.into_iter().filter(|key| !removed.contains(key)));
    Ok(added.into_iter().take(limit as usize).collect())
}
