//! Requests to the source: cases from files, large bodies, and elements against another parser.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod bodies;
mod cases;
mod settings;

use portway_http_source::HttpMessages;
use portway_sdk::testing::{self, HttpHost};

fn open(settings: &str) -> HttpHost<HttpMessages> {
    testing::reset();
    HttpHost::open(settings).unwrap()
}
