//! The component of the guide `docs/guides/answer-requests.md`, which shows `quotes/component.rs`.

#[cfg(target_family = "wasm")]
#[path = "quotes/component.rs"]
mod component;
