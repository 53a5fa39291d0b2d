//! WIT interfaces that a component may import for their types alone.
//!
//! `sender` is one, since `http-sender` uses its verdicts; its resource comes along, and there is
//! nothing behind it.

use portway_bindings::exports::portway::plugin::sender::Verdict;
use portway_bindings::portway::plugin::types::{Batch, Context, Failure, Trouble};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use crate::guest::Guest;

/// Never made.
enum Nothing {}

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.instance("portway:plugin/types@0.1.0")?;
    let mut sender = linker.instance("portway:plugin/sender@0.1.0")?;
    sender.resource("destination", ResourceType::host::<Nothing>(), |_, _| Ok(()))?;
    sender.func_wrap("[static]destination.open", |_: StoreContextMut<'_, Guest>, (_,): (Context,)| {
        Ok((Err::<Resource<Nothing>, Failure>(nothing()),))
    })?;
    sender.func_wrap(
        "[method]destination.send",
        |_: StoreContextMut<'_, Guest>, (_, _): (Resource<Nothing>, Batch)| {
            Ok((Err::<Vec<Verdict>, Trouble>(Trouble::Misconfigured(nothing())),))
        },
    )
}

fn nothing() -> Failure {
    Failure { code: "unsupported".into(), text: "a plugin cannot call a sender".into() }
}
