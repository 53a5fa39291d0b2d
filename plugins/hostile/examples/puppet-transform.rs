//! A transform that does with the host's services what messages tell it to, and puts what came of it
//! in their place. It shows secrets, which nothing else should do.
//!
//! A message has a command a line: `reveal SLOT`, `sign SLOT TEXT`, `put KEY VALUE`, `delete KEY`,
//! `get KEY`, `count KEY` (adds one and says how many), `scan PREFIX`, `filter`, `retry`,
//! `quarantine`, `trap`.

use plugin_hostile::trap;
use portway_sdk::{
    Context, Failure, Later, Message, NoSettings, Problem, Transform, TransformVerdict, secrets, state,
};

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
        let failure = || Failure::new("told-to", lines.join("; "));
        match text.lines().last() {
            Some("filter") => return Ok(TransformVerdict::filter(lines.join("; "))),
            Some("retry") => {
                return Ok(TransformVerdict::Retry(Later { failure: failure(), after_ms: None }));
            }
            Some("quarantine") => return Ok(TransformVerdict::Quarantine(failure())),
            _ => {}
        }
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
        ["put", key, value] => shown(state::put(key, value.as_bytes()).map(|()| "put".to_owned())),
        ["delete", key] => shown(state::delete(key).map(|()| "deleted".to_owned())),
        ["get", key] => shown(state::get(key).map(text_of)),
        ["count", key] => shown(count(key)),
        ["scan", prefix] => shown(state::scan(prefix, None, 100).map(|keys| keys.join(","))),
        ["filter" | "retry" | "quarantine"] => "told to".to_owned(),
        ["trap"] => trap(),
        _ => format!("what is `{line}`?"),
    }
}

fn text_of(value: Option<Vec<u8>>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| String::from_utf8_lossy(&value).into_owned())
}

fn count(key: &str) -> Result<String, state::Error> {
    let before = state::get(key)?.map_or(0, |value| text_of(Some(value)).parse::<u64>().unwrap_or(0));
    let now = (before + 1).to_string();
    state::put(key, now.as_bytes())?;
    Ok(now)
}

fn shown<E: std::fmt::Debug>(answer: Result<String, E>) -> String {
    answer.unwrap_or_else(|error| format!("{error:?}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

portway_sdk::export_transform!(Puppet);
