//! Domain numbers and texts as PostgreSQL's, and back.

use std::borrow::Cow;

use portway_model::{AttemptNo, DestinationId, InterfaceId, Lane, MessageId, Round, Tier, Timestamp};
use portway_store::StoreError;

use crate::error::damaged;

/// As stored. What does not fit becomes the largest there is: times for ever away.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// As stored where there is room for less. No count comes near the end of it.
pub(crate) fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(crate) fn stored_lane(lane: Lane) -> i16 {
    i16::try_from(lane.number()).unwrap_or(i16::MAX)
}

/// A text for people. PostgreSQL keeps every character but one.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{FFFD}")),
        false => Cow::Borrowed(text),
    }
}

/// Tiers a message can be stored in, in days.
pub(crate) const TIERS: [i16; 3] = [7, 21, 49];

/// Where that is kept which is needed beyond its window. No message is born there.
pub(crate) const HELD: i16 = Tier::HELD_NUMBER as i16;

pub(crate) fn tier(tier: Tier) -> i16 {
    i16::from(tier.number())
}

/// None: of a newer binary, or [`HELD`].
pub(crate) fn read_tier(number: i16) -> Option<Tier> {
    u8::try_from(number).ok().and_then(Tier::from_number)
}

/// As read; a negative number was never written.
pub(crate) fn read(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| damaged("a number is negative"))
}

pub(crate) fn read_u32(number: i32) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|_| damaged("a number is negative"))
}

pub(crate) fn message(number: i64) -> Result<MessageId, StoreError> {
    read(number).map(MessageId)
}

pub(crate) fn destination(number: i32) -> Result<DestinationId, StoreError> {
    read_u32(number).map(DestinationId)
}

pub(crate) fn interface(number: i32) -> Result<InterfaceId, StoreError> {
    read_u32(number).map(InterfaceId)
}

pub(crate) fn time(number: i64) -> Result<Timestamp, StoreError> {
    read(number).map(Timestamp)
}

pub(crate) fn round(number: i32) -> Result<Round, StoreError> {
    read_u32(number).map(Round)
}

pub(crate) fn attempts(number: i32) -> Result<AttemptNo, StoreError> {
    read_u32(number).map(AttemptNo)
}

pub(crate) fn lane(number: i16) -> Result<Lane, StoreError> {
    let lane = u16::try_from(number).ok().and_then(Lane::from_number);
    lane.ok_or_else(|| damaged("a lane is out of range"))
}

/// A message's number that this process gave or read before, and so is not negative.
pub(crate) fn given(number: i64) -> MessageId {
    MessageId(u64::try_from(number).unwrap_or(0))
}
