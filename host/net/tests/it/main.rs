//! The outside world as these tests meet it: real sockets on loopback, real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod folder;
mod http;
mod listen;
mod peers;
mod tcp;
mod tcp_tls;
