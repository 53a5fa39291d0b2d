//! The SMTP sender's cases: `peer.json` is what the server does on each connection that is
//! dialled, `traffic.txt` what the sender does, `verdicts.txt` what it says. A case whose name
//! begins with `again-` is sent twice, the second time over what was kept.

use portway_sdk::testing::{self, Case};
use portway_smtp_sender::SmtpSender;

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        testing::reset();
        case.send::<SmtpSender, String>("server", show);
    }
}

/// What is written stands a line each, so that mails can be read.
fn show(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split_inclusive("\r\n").map(|line| match line.strip_suffix("\r\n") {
        Some(line) => format!("> {}\n", line.escape_debug()),
        None => format!("> {} (no line end)\n", line.escape_debug()),
    });
    lines.collect()
}
