//! A transform that does with the host's services what messages tell it to, and puts what came of it
//! in their place. It shows secrets, which nothing else should do.
//!
//! A message has a command a line: `reveal SLOT`, `sign SLOT TEXT`, `trap`.

use plugin_hostile::trap;
use portway_sdk::{Context, Failure, Message, NoSettings, Problem, Transform, TransformVerdict, secrets};

/// One destination's.
pub struct Puppet;

impl Transform for Puppet {
    type Settings = NoSettings;

    fn open(_settings: NoSettings, _context: &Context) -> Result<Self, Failure> {
        Ok(Puppet)
    }

    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem> {
        let body = message.body.bytes()?;
        let text = String::from_utf8_lossy(&body);
        let lines: Vec<String> = text.lines().map(obey).collect();
        Ok(TransformVerdict::deliver(lines.join("; ")))
    }
}

fn obey(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["reveal", slot] => {
            shown(secrets::reveal(slot).map(|value| String::from_utf8_lossy(&value).into_owned()))
        }
        ["sign", slot, text] => shown(secrets::hmac_sha256(slot, text.as_bytes()).map(|signed| hex(&signed))),
        ["trap"] => trap(),
        _ => format!("what is `{line}`?"),
    }
}

fn shown<E: std::fmt::Debug>(answer: Result<String, E>) -> String {
    answer.unwrap_or_else(|error| format!("{error:?}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

portway_sdk::export_transform!(Puppet);
