//! The services of `portway:host`, one file each, and what they cost.
//!
//! All are linked for every plugin; what is not granted answers `denied`. A service is paid
//! for in fuel before it does anything: a base, and so much for each byte.

mod blobs;
mod connect;
mod files;
mod http;
mod log;
mod progress;
mod secrets;
mod state;
mod text;
mod type_imports;
mod wasi_http;

use std::pin::Pin;

use wasmtime::component::{ComponentNamedList, Lift, Linker, LinkerInstance, Lower};
use wasmtime::{Engine, StoreContextMut};

use crate::guest::{Guest, pay};
pub(crate) use wasi_http::Outbound;

/// What a service costs: about 15 of fuel are a nanosecond.
#[derive(Clone, Copy, Debug)]
struct Price {
    base: u64,
    per_byte: u64,
}

/// A look into a table of the host.
const LOOK: Price = Price { base: 2_000, per_byte: 1 };
/// Looks at every byte.
const WORK: Price = Price { base: 3_000, per_byte: 15 };
/// Asks the system.
const SYSTEM: Price = Price { base: 30_000, per_byte: 2 };

/// What a service is busy with.
type Serving<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<R>> + Send + 'a>>;

/// Links every service, and WASI 0.2 beside them.
pub(crate) fn new_linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    log::link(&mut linker)?;
    progress::link(&mut linker)?;
    text::link(&mut linker)?;
    blobs::link(&mut linker)?;
    files::link(&mut linker)?;
    connect::link(&mut linker)?;
    http::link(&mut linker)?;
    secrets::link(&mut linker)?;
    state::link(&mut linker)?;
    type_imports::link(&mut linker)?;
    wasi_http::link(&mut linker)?;
    Ok(linker)
}

/// A service that has its answer at once. `bytes` says how much it handles.
fn define<P, R>(
    instance: &mut LinkerInstance<'_, Guest>,
    name: &str,
    price: Price,
    bytes: fn(&P) -> usize,
    serve: fn(&mut Guest, P) -> wasmtime::Result<R>,
) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + Send + Sync + 'static,
    R: ComponentNamedList + Lower + Send + Sync + 'static,
{
    instance.func_wrap_async(name, move |mut store: StoreContextMut<'_, Guest>, params: P| {
        Box::new(async move {
            pay(&mut store, price.of(bytes(&params))).await?;
            serve(store.data_mut(), params)
        })
    })
}

/// A service that may wait for the world.
fn define_waiting<P, R>(
    instance: &mut LinkerInstance<'_, Guest>,
    name: &str,
    price: Price,
    bytes: fn(&P) -> usize,
    serve: for<'a> fn(&'a mut Guest, P) -> Serving<'a, R>,
) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + Send + Sync + 'static,
    R: ComponentNamedList + Lower + Send + Sync + 'static,
{
    instance.func_wrap_async(name, move |mut store: StoreContextMut<'_, Guest>, params: P| {
        Box::new(async move {
            pay(&mut store, price.of(bytes(&params))).await?;
            serve(store.data_mut(), params).await
        })
    })
}

impl Price {
    fn of(self, bytes: usize) -> u64 {
        self.base.saturating_add(self.per_byte.saturating_mul(bytes as u64))
    }
}
