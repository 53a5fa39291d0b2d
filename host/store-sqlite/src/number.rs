//! Domain numbers as SQLite's signed ones, and back.

use portway_model::{AttemptNo, DestinationId, InterfaceId, Lane, MessageId, Round, Timestamp};
use portway_store::StoreError;

use crate::error::damaged;

/// As stored. What does not fit becomes the largest there is: times for ever away.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// As read; a negative number was never written.
pub(crate) fn read(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| damaged("a number is negative"))
}

pub(crate) fn read_u32(number: i64) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|_| damaged("a number is out of range"))
}

pub(crate) fn message(number: i64) -> Result<MessageId, StoreError> {
    read(number).map(MessageId)
}

pub(crate) fn destination(number: i64) -> Result<DestinationId, StoreError> {
    read_u32(number).map(DestinationId)
}

pub(crate) fn interface(number: i64) -> Result<InterfaceId, StoreError> {
    read_u32(number).map(InterfaceId)
}

pub(crate) fn time(number: i64) -> Result<Timestamp, StoreError> {
    read(number).map(Timestamp)
}

pub(crate) fn round(number: i64) -> Result<Round, StoreError> {
    read_u32(number).map(Round)
}

pub(crate) fn attempts(number: i64) -> Result<AttemptNo, StoreError> {
    read_u32(number).map(AttemptNo)
}

pub(crate) fn lane(number: i64) -> Result<Lane, StoreError> {
    let lane = u16::try_from(number).ok().and_then(Lane::from_number);
    lane.ok_or_else(|| damaged("a lane is out of range"))
}

/// A message's number that this process gave or read before, and so is not negative.
pub(crate) fn given(number: i64) -> MessageId {
    MessageId(u64::try_from(number).unwrap_or(0))
}
