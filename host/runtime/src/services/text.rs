//! `text`: character sets. Always granted.

use portway_bindings::portway::host::text::Error;
use wasmtime::component::Linker;

use super::{WORK, define};
use crate::charset::{Charset, Malformed};
use crate::guest::Guest;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut text = linker.instance("portway:host/text@0.1.0")?;
    define(
        &mut text,
        "decode",
        WORK,
        |(bytes, _): &(Vec<u8>, String)| bytes.len(),
        |_, (bytes, charset)| {
            let charset = Charset::named(&charset).ok_or(Error::UnknownCharset);
            Ok((charset.and_then(|charset| charset.decode(&bytes).map_err(malformed)),))
        },
    )?;
    define(
        &mut text,
        "encode",
        WORK,
        |(text, _): &(String, String)| text.len(),
        |_, (text, charset)| {
            let charset = Charset::named(&charset).ok_or(Error::UnknownCharset);
            Ok((charset.and_then(|charset| charset.encode(&text).map_err(malformed)),))
        },
    )
}

fn malformed(at: Malformed) -> Error {
    // What a call may copy is far below this.
    Error::Malformed(u32::try_from(at.0).unwrap_or(u32::MAX))
}
