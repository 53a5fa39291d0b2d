//! What is refused before anything of it runs, and with which sentence.

use portway_runtime::LoadError;

use crate::support::{component, custom_section, runtime, with_manifest};

async fn refused(bytes: &[u8]) -> LoadError {
    match runtime().load("acme", bytes).await {
        Err(error) => error,
        Ok(_) => panic!("it was loaded"),
    }
}

fn transform() -> Vec<u8> {
    component("plugins-test", "hostile-transform")
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    let mut found = 0;
    while let Some(hit) = bytes[at..].windows(from.len()).position(|window| window == from.as_bytes()) {
        bytes[at + hit..at + hit + from.len()].copy_from_slice(to.as_bytes());
        at += hit + from.len();
        found += 1;
    }
    assert!(found > 0, "`{from}` is not in the component");
    bytes
}

#[tokio::test]
async fn what_is_no_component_is_refused_with_what_to_do() {
    for bytes in [&b""[..], b"<html>", b"\0asm", b"\0asm\x0d\0\x01\0\xff\xff\xff"] {
        let error = refused(bytes).await;
        assert!(matches!(error, LoadError::NoComponent { .. } | LoadError::NoKind { .. }), "{error}");
        assert!(!error.hint().is_empty());
    }
    let error = refused(b"\0asm\x01\0\0\0").await;
    assert!(matches!(error, LoadError::CoreModule { .. }), "{error}");
    assert!(error.hint().contains("wasm32-wasip2"));
}

#[tokio::test]
async fn a_component_that_is_too_large_is_not_even_read() {
    let error = refused(&vec![0; portway_runtime::COMPONENT_BYTES_MAX + 1]).await;
    assert!(matches!(error, LoadError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_component_is_refused() {
    let whole = transform();
    let error = refused(&whole[..whole.len() / 2]).await;
    assert!(matches!(error, LoadError::NoComponent { .. }), "{error}");
    let mut damaged = whole.clone();
    // Inside the code of a core module: only the compiler sees it.
    let middle = damaged.len() / 3;
    damaged[middle..middle + 64].fill(0xff);
    assert!(matches!(refused(&damaged).await, LoadError::Compile { .. } | LoadError::NoComponent { .. }));
}

#[tokio::test]
async fn another_contract_version_names_both() {
    let other = replaced(&transform(), "portway:plugin/transform@0.1.0", "portway:plugin/transform@0.7.0");
    let error = refused(&other).await;
    assert_eq!(error.to_string(), "plugin `acme` is built for contract 0.7.0, this engine knows 0.1");
    let other = replaced(&transform(), "portway:host/log@0.1.0", "portway:host/log@2.1.0");
    assert!(matches!(refused(&other).await, LoadError::Contract { .. }));
}

#[tokio::test]
async fn an_unknown_import_is_named() {
    let other = replaced(&transform(), "portway:host/log@0.1.0", "portway:host/fog@0.1.0");
    let error = refused(&other).await;
    assert!(error.to_string().contains("imports `portway:host/fog@0.1.0`"), "{error}");
}

#[tokio::test]
async fn an_unknown_kind_is_named() {
    let other = replaced(&transform(), "portway:plugin/transform@0.1.0", "portway:plugin/transfarm@0.1.0");
    let error = refused(&other).await;
    assert!(matches!(&error, LoadError::UnknownKind { kind, .. } if kind == "transfarm"), "{error}");
}

#[tokio::test]
async fn a_manifest_is_needed_and_must_be_true() {
    let error = refused(&with_manifest(transform(), "")).await;
    assert!(matches!(error, LoadError::NoManifest { .. }), "{error}");
    let mut twice = transform();
    twice.extend(custom_section("portway:manifest", b"kind = 'sender'"));
    let error = refused(&twice).await;
    assert_eq!(error.to_string(), "the manifest of plugin `acme` is there twice");
    let error = refused(&with_manifest(transform(), "name = 7")).await;
    assert!(matches!(error, LoadError::Manifest { .. }), "{error}");
    let manifest = |kind, contract| {
        format!("name = \"a:b\"\nversion = \"1\"\nkind = \"{kind}\"\ncontract = \"{contract}\"\n")
    };
    let error = refused(&with_manifest(transform(), &manifest("sender", "0.1"))).await;
    assert_eq!(error.to_string(), "plugin `acme` says that it is a `sender`, but it exports `transform`");
    let error = refused(&with_manifest(transform(), &manifest("transform", "3.0"))).await;
    assert!(matches!(error, LoadError::Contract { .. }), "{error}");
    let plugin =
        runtime().load("acme", &with_manifest(transform(), &manifest("transform", "0.1"))).await.unwrap();
    assert_eq!((plugin.name(), plugin.version(), plugin.manifest().name.as_str()), ("acme", "1", "a:b"));
}
