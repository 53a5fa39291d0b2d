//! The one engine: what code may be run at all, and how it is metered.
//!
//! Every value here that changes generated code is part of the compatibility hash, so a
//! change makes the native-code cache compile anew.

use wasmtime::{Config, Engine, OptLevel, WasmFeatures};

/// Guests give way after so much fuel: about 0.7 ms.
pub(crate) const YIELD_FUEL: u64 = 10_000_000;
/// Stack of a guest.
const WASM_STACK_BYTES: usize = 512 << 10;
/// The stack a call runs on: the guest's, and the host functions above it.
const CALL_STACK_BYTES: usize = 2 << 20;

/// Language features that no plugin gets: each widens what must be trusted, and none is
/// needed by the compilers authors use.
const REFUSED: &[WasmFeatures] = &[
    WasmFeatures::THREADS,
    WasmFeatures::SHARED_EVERYTHING_THREADS,
    WasmFeatures::MEMORY64,
    WasmFeatures::GC,
    WasmFeatures::FUNCTION_REFERENCES,
    WasmFeatures::EXCEPTIONS,
    WasmFeatures::LEGACY_EXCEPTIONS,
    WasmFeatures::STACK_SWITCHING,
    WasmFeatures::RELAXED_SIMD,
    WasmFeatures::WIDE_ARITHMETIC,
    WasmFeatures::CUSTOM_PAGE_SIZES,
];

/// Makes the engine; the same in the process that runs and in the child that compiles.
pub(crate) fn new_engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_component_model(true).concurrency_support(false);
    for feature in REFUSED {
        config.wasm_features(*feature, false);
    }
    config.consume_fuel(true);
    config.max_wasm_stack(WASM_STACK_BYTES).async_stack_size(CALL_STACK_BYTES);
    // The same input gives the same bytes on every machine.
    config.cranelift_nan_canonicalization(true);
    config.cranelift_opt_level(OptLevel::Speed);
    // Pages of a memory are made when they are touched: an instance that waits costs kilobytes.
    config.memory_init_cow(true);
    Engine::new(&config)
}
