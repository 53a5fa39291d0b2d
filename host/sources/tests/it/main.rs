//! Drivers over real sockets, with a codec and an intake that do what a test says.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod answers;
mod ends;
mod fakes;
mod faults;
mod house;
mod limits;
mod poll;
mod stops;
mod web;
