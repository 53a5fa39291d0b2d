//! The native-code cache and the compiling child.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use portway_model::TransformVerdict;
use portway_runtime::{CompileMode, LoadError, Runtime, RuntimeSettings};

use crate::support::{batch, component, deed};

fn child() -> CompileMode {
    CompileMode::Child {
        program: PathBuf::from(env!("CARGO_BIN_EXE_portway-compile-child")),
        args: Vec::new(),
    }
}

fn runtime(cache: &Path, compile: CompileMode) -> Runtime {
    Runtime::new(RuntimeSettings { cache_dir: Some(cache.into()), compile, ..RuntimeSettings::default() })
        .unwrap()
}

/// Loads and runs the plugin; says how many components were compiled.
async fn load_and_run(cache: &Path) -> u64 {
    let runtime = runtime(cache, CompileMode::InProcess);
    let plugin = runtime.load("hostile", &component("plugins-test", "hostile-transform")).await.unwrap();
    let transformer = plugin.transformer(deed("none", "")).unwrap();
    assert_eq!(transformer.transform(&batch(&["x"])).await.result.unwrap(), [TransformVerdict::Pass]);
    runtime.compiled()
}

fn only_file(cache: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[tokio::test]
async fn a_component_is_compiled_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("native");
    assert_eq!(load_and_run(&cache).await, 1);
    assert_eq!(load_and_run(&cache).await, 0);
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(only_file(&cache)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn what_was_tampered_with_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("native");
    assert_eq!(load_and_run(&cache).await, 1);
    let file = only_file(&cache);
    let whole = fs::read(&file).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = [
        flipped(0),
        flipped(20),
        flipped(whole.len() / 2),
        flipped(whole.len() - 1),
        whole[..whole.len() / 2].to_vec(),
        whole[..10].to_vec(),
        Vec::new(),
    ];
    for bytes in damaged {
        fs::write(&file, bytes).unwrap();
        assert_eq!(load_and_run(&cache).await, 1);
        assert_eq!(fs::read(&file).unwrap().len(), whole.len(), "it was replaced");
    }
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(load_and_run(&cache).await, 1, "others may read it");
    // Only root can give a file away; anybody else has no such file to be tricked with either.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        assert_eq!(load_and_run(&cache).await, 1, "another user's");
    }
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &file).unwrap();
    assert_eq!(load_and_run(&cache).await, 1, "a link");
    assert_eq!(load_and_run(&cache).await, 0);
}

#[tokio::test]
async fn two_processes_at_once_are_safe() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("native");
    let loads = (0..4).map(|_| {
        let cache = cache.clone();
        tokio::spawn(async move { load_and_run(&cache).await })
    });
    for load in loads.collect::<Vec<_>>() {
        assert!(load.await.unwrap() <= 1);
    }
    only_file(&cache);
    assert_eq!(load_and_run(&cache).await, 0);
}

#[tokio::test]
async fn a_child_compiles_and_its_code_is_what_this_process_makes() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("native");
    let bytes = component("plugins-test", "hostile-transform");
    let runtime = runtime(&cache, child());
    let plugin = runtime.load("hostile", &bytes).await.unwrap();
    assert_eq!(runtime.compiled(), 1);
    let transformer = plugin.transformer(deed("none", "")).unwrap();
    assert!(transformer.transform(&batch(&["x"])).await.result.is_ok());
    assert_eq!(load_and_run(&cache).await, 0, "the same settings made it");
}

#[tokio::test]
async fn a_child_that_refuses_or_dies_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let mut damaged = component("plugins-test", "hostile-transform");
    let middle = damaged.len() / 3;
    damaged[middle..middle + 64].fill(0xff);
    for program in [child(), CompileMode::Child { program: "/bin/false".into(), args: Vec::new() }] {
        let intact = matches!(&program, CompileMode::Child { program, .. } if program.ends_with("false"));
        let bytes = if intact { component("plugins-test", "hostile-transform") } else { damaged.clone() };
        match runtime(folder.path(), program).load("hostile", &bytes).await {
            Err(error @ (LoadError::Compile { .. } | LoadError::NoComponent { .. })) => {
                assert!(!error.hint().is_empty())
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was loaded"),
        }
    }
    let missing = CompileMode::Child { program: folder.path().join("missing"), args: Vec::new() };
    let bytes = component("plugins-test", "hostile-transform");
    let error = runtime(folder.path(), missing).load("hostile", &bytes).await.err().unwrap();
    assert!(error.hint().contains("program file"), "{error}");
}
