//! The binary as a library: its commands, the traffic they make, and the wiring of an engine.
//!
//! The one crate that knows all others. What can live below lives there.

pub mod cases;
pub mod cli;
pub mod client;
pub mod commands;
pub mod error_pages;
pub mod output;
pub mod service;
pub mod traffic;
pub mod wiring;
