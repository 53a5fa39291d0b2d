//! `log`: lines and notices. Always granted; what is over the limits is dropped and counted.

use std::sync::PoisonError;

use portway_bindings::portway::host::log::Level as WitLevel;
use wasmtime::component::Linker;

use super::{Price, define};
use crate::fault_text::{Lines, cut, escape};
use crate::guest::{Guest, PluginFacts};
use crate::opening::Level;
use crate::output::LINE_BYTES_MAX;

const LINE: Price = Price { base: 10_000, per_byte: 10 };
/// Different codes of one plugin; further ones are counted as [`OTHER_CODE`].
const CODES_MAX: usize = 32;
const CODE_BYTES_MAX: usize = 64;
const OTHER_CODE: &str = "other";

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut log = linker.instance("portway:host/log@0.1.0")?;
    define(
        &mut log,
        "write",
        LINE,
        |(_, text): &(WitLevel, String)| text.len(),
        |guest, (level, text)| {
            guest.sink.log(level_of(level), &text);
            Ok(())
        },
    )?;
    define(
        &mut log,
        "notice",
        LINE,
        |(_, text): &(String, String)| text.len(),
        |guest, (code, text)| {
            let code = admit_code(&guest.facts, &code);
            guest.call.observer.notice(&code, &escape(cut(&text, LINE_BYTES_MAX), Lines::One));
            Ok(())
        },
    )
}

/// A code from outside becomes the label of a count, so there are only so many.
fn admit_code(facts: &PluginFacts, code: &str) -> String {
    let code = escape(cut(code, CODE_BYTES_MAX), Lines::One);
    let mut codes = facts.notices.lock().unwrap_or_else(PoisonError::into_inner);
    if codes.contains(&code) {
        return code;
    }
    if codes.len() >= CODES_MAX || code.is_empty() {
        return OTHER_CODE.into();
    }
    codes.insert(code.clone());
    code
}

fn level_of(level: WitLevel) -> Level {
    match level {
        WitLevel::Trace => Level::Trace,
        WitLevel::Debug => Level::Debug,
        WitLevel::Info => Level::Info,
        WitLevel::Warn => Level::Warn,
        WitLevel::Error => Level::Error,
    }
}
