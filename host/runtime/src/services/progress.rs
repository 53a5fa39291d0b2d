//! `progress`: where in a batch the plugin is. Always granted.
//!
//! Costs no more than the call itself: it is asked for once a message.

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use crate::fault::Halt;
use crate::guest::{Guest, begin};

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut progress = linker.instance("portway:host/progress@0.1.0")?;
    progress.func_wrap("begin", |mut store: StoreContextMut<'_, Guest>, (index,): (u32,)| {
        begin(&mut store, index)
    })?;
    progress.func_wrap("sent", |mut store: StoreContextMut<'_, Guest>, (index,): (u32,)| {
        let call = &mut store.data_mut().call;
        if index as usize >= call.messages.len() {
            return Err(Halt::Lie(format!("`sent({index})` in a batch of {}", call.messages.len())).into());
        }
        if !call.sent.contains(&index) {
            call.sent.push(index);
        }
        Ok(())
    })
}
