//! What leaves a tracer, as a collector on a real socket sees it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod collector;
mod export;
