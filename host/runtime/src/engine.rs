//! The engine: what code may be run at all, and how it is metered.
//!
//! Every value here that changes generated code is part of the compatibility hash, so a
//! change makes the native-code cache compile anew. Where the memory of instances comes from
//! changes none: the second engine, whose instances live for one call, runs the same code.

use wasmtime::{Config, Enabled, Engine, OptLevel, PoolingAllocationConfig, WasmFeatures};

/// Guests give way after so much fuel: about 0.7 ms.
pub(crate) const YIELD_FUEL: u64 = 10_000_000;
/// Stack of a guest.
const WASM_STACK_BYTES: usize = 512 << 10;
/// The stack a call runs on: the guest's, and the host functions above it.
const CALL_STACK_BYTES: usize = 2 << 20;

/// Of a component whose instances are pooled; one with more parts runs in the other engine.
const POOLED_CORE_INSTANCES_MAX: u32 = 8;
const POOLED_TABLES_MAX: u32 = 8;
/// Beyond it a pool would reserve more addresses than there are: 4 GiB for each memory.
const POOLED_INSTANCES_MAX: u32 = 4_096;
/// What a place of the pool keeps in memory for the next instance.
const MEMORY_KEPT_BYTES: usize = 128 << 10;
const TABLE_KEPT_BYTES: usize = 16 << 10;
const STACK_KEPT_BYTES: usize = 16 << 10;

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
    Engine::new(&config())
}

/// Makes an engine with room for so many instances, reserved ahead: making one and dropping it is
/// then cheap enough to be done for every call.
pub(crate) fn new_pooled_engine(instances: usize) -> wasmtime::Result<Engine> {
    let instances = u32::try_from(instances).unwrap_or(u32::MAX);
    if instances > POOLED_INSTANCES_MAX {
        wasmtime::bail!("{instances} instances are more than a pool is made for");
    }
    let mut pool = PoolingAllocationConfig::new();
    // Nothing is ever refused for want of a place: the runtime counts instances itself.
    pool.total_component_instances(instances)
        .total_core_instances(instances * POOLED_CORE_INSTANCES_MAX)
        .total_memories(instances)
        .total_tables(instances * POOLED_TABLES_MAX)
        .total_stacks(instances * 2)
        .max_core_instances_per_component(POOLED_CORE_INSTANCES_MAX)
        .max_memories_per_component(1)
        .max_tables_per_component(POOLED_TABLES_MAX)
        .linear_memory_keep_resident(MEMORY_KEPT_BYTES)
        .table_keep_resident(TABLE_KEPT_BYTES)
        .async_stack_keep_resident(STACK_KEPT_BYTES)
        // Only pages that an instance wrote are put back, in place, where the system can tell which
        // they are (Linux 6.7): giving them back to it and faulting them in again for the next
        // instance costs more than all else that is done for a call.
        .pagemap_scan(Enabled::Auto);
    let mut config = config();
    config.allocation_strategy(pool);
    Engine::new(&config)
}

fn config() -> Config {
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
    config
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash, Hasher};

    use super::*;

    #[test]
    fn both_engines_run_the_same_native_code() {
        let hash = |engine: &Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        let (plain, pooled) = (new_engine().unwrap(), new_pooled_engine(4).unwrap());
        assert_eq!(hash(&plain), hash(&pooled));
        assert!(new_pooled_engine(usize::MAX).is_err());
    }
}
