//! Each kind of fault, what is known of it, and that the next call has a sound instance.

use std::time::Duration;

use portway_model::TransformVerdict;
use portway_runtime::{CallError, CallLimits, FaultKind};

use crate::support::{batch, deed, deed_with, fault, heard, hostile_sender, hostile_transform, limits};

/// Three messages of which the second provokes a deed; then three that do not.
async fn transform(name: &str, limits: CallLimits) -> portway_runtime::Fault {
    let (heard, opening) = heard(deed_with(name, "bad", limits));
    let transformer = hostile_transform().await.transformer(opening).unwrap();
    let fault = fault(transformer.transform(&batch(&["good", "a bad one", "good"])).await);
    assert!(heard.lines().contains(&format!("fault {}", fault.kind.as_str())), "{:?}", heard.lines());
    let after = transformer.transform(&batch(&["good", "good", "good"])).await;
    assert_eq!(after.result.unwrap(), vec![TransformVerdict::Pass; 3]);
    assert_eq!(after.begun, Some(2));
    fault
}

#[tokio::test]
async fn a_panic_is_told_in_the_guests_own_words() {
    let fault = transform("trap", limits()).await;
    assert_eq!(fault.kind, FaultKind::Trap);
    assert!(fault.text.contains("this message is poison to me"), "{}", fault.text);
    assert!(fault.text.contains("lib.rs"), "the place in the source: {}", fault.text);
    assert_eq!(fault.begun, Some(1));
    assert!(!fault.kind.is_runaway());
}

#[tokio::test]
async fn a_loop_ends_with_its_fuel() {
    let fault = transform("endless-loop", limits()).await;
    assert_eq!((fault.kind, fault.begun), (FaultKind::OutOfFuel, Some(1)));
    assert!(fault.kind.is_runaway());
    assert!(fault.fuel >= limits().fuel_per_message);
}

#[tokio::test]
async fn service_calls_use_up_fuel_too() {
    let fault = transform("endless-service-calls", limits()).await;
    assert_eq!((fault.kind, fault.begun), (FaultKind::OutOfFuel, Some(1)));
}

#[tokio::test]
async fn a_memory_bomb_ends_at_its_limit_and_says_so() {
    let small = CallLimits { memory_bytes: 8 << 20, ..limits() };
    let fault = transform("memory-bomb", small).await;
    assert_eq!((fault.kind, fault.begun), (FaultKind::OutOfMemory, Some(1)));
    assert!(fault.text.contains("bytes of memory wanted"), "{}", fault.text);
    assert!(fault.memory_bytes <= 8 << 20);
    assert!(fault.kind.is_runaway());
}

#[tokio::test]
async fn a_deep_recursion_is_a_trap() {
    let fault = transform("stack-overflow", limits()).await;
    assert_eq!((fault.kind, fault.begun), (FaultKind::Trap, Some(1)));
    assert!(fault.text.contains("call stack exhausted in `plugin_hostile::dig`"), "{}", fault.text);
}

#[tokio::test]
async fn a_huge_answer_is_not_copied() {
    let small =
        CallLimits { copy_bytes: 1 << 20, memory_bytes: 512 << 20, fuel_per_message: 1 << 40, ..limits() };
    assert_eq!(transform("huge-verdict", small).await.kind, FaultKind::CopyLimit);
}

#[tokio::test]
async fn computing_past_the_wall_time_is_the_plugins_fault() {
    let slow =
        CallLimits { fuel_per_message: u64::MAX >> 2, call_timeout: Duration::from_millis(300), ..limits() };
    let fault = transform("endless-loop", slow).await;
    assert_eq!(fault.kind, FaultKind::TimedOut { in_service: false });
    assert!(fault.kind.is_runaway());
}

#[tokio::test]
async fn a_plugin_that_does_not_say_begin_is_not_named_a_message() {
    let transformer = hostile_transform().await.transformer(deed("silent-trap", "bad")).unwrap();
    let call = transformer.transform(&batch(&["good", "a bad one"])).await;
    assert_eq!(call.begun, None);
    assert_eq!(fault(call).kind, FaultKind::Trap);
}

#[tokio::test]
async fn settings_that_are_refused_are_not_a_fault() {
    let transformer = hostile_transform().await.transformer(deed("open-fails", "")).unwrap();
    let error = transformer.check().await.unwrap_err();
    assert!(
        matches!(&error, CallError::Open(failure) if failure.text.contains("not to my taste")),
        "{error}"
    );
    let error = hostile_sender().await.sender(deed("no-such-deed", "")).unwrap().check().await.unwrap_err();
    assert!(matches!(&error, CallError::Open(_)), "{error}");
}

#[tokio::test]
async fn a_fault_while_opening_is_a_fault_of_the_plugin() {
    let transformer = hostile_transform().await.transformer(deed("open-traps", "")).unwrap();
    let error = transformer.check().await.unwrap_err();
    assert!(matches!(&error, CallError::Fault(fault) if fault.kind == FaultKind::Trap), "{error}");
    let short = CallLimits { call_timeout: Duration::from_millis(300), ..limits() };
    let transformer = hostile_transform().await.transformer(deed_with("open-loops", "", short)).unwrap();
    let error = transformer.check().await.unwrap_err();
    assert!(matches!(&error, CallError::Fault(fault) if fault.kind.is_runaway()), "{error}");
}

#[tokio::test]
async fn a_log_flood_is_limited_and_does_not_stop_the_message() {
    let rich = CallLimits { fuel_per_message: 1 << 40, ..limits() };
    let (heard, opening) = heard(deed_with("log-flood", "", rich));
    let started = std::time::Instant::now();
    let transformer = hostile_transform().await.transformer(opening).unwrap();
    let call = transformer.transform(&batch(&["any"])).await;
    assert_eq!(call.result.unwrap(), [TransformVerdict::Pass]);
    let lines = heard.lines();
    let shown = lines.iter().filter(|line| !line.starts_with("notice")).count();
    let seconds = started.elapsed().as_secs() as usize + 2;
    assert!((1..=100 * seconds).contains(&shown), "{shown} lines in {seconds} s");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "an escape came through");
    let codes: std::collections::BTreeSet<_> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("notice ")?.split_once(':'))
        .map(|(code, _)| code)
        .collect();
    assert!(codes.len() <= 34, "{codes:?}");
}

#[tokio::test]
async fn a_cancelled_call_costs_its_instance_and_nothing_else() {
    let rich = CallLimits { fuel_per_message: u64::MAX >> 2, ..limits() };
    let transformer = hostile_transform().await.transformer(deed_with("endless-loop", "bad", rich)).unwrap();
    let messages = batch(&["bad"]);
    let cancelled = tokio::time::timeout(Duration::from_millis(100), transformer.transform(&messages)).await;
    assert!(cancelled.is_err());
    let after = transformer.transform(&batch(&["good"])).await;
    assert_eq!(after.result.unwrap(), [TransformVerdict::Pass]);
}

#[tokio::test]
async fn fuel_is_set_anew_for_each_message() {
    let limit = CallLimits { fuel_per_message: 100_000, ..limits() };
    let transformer = hostile_transform().await.transformer(deed_with("none", "", limit)).unwrap();
    let bodies = vec!["good"; 200];
    let call = transformer.transform(&batch(&bodies)).await;
    assert_eq!(call.result.unwrap().len(), 200);
    assert!(call.fuel > limit.fuel_per_message, "{} for all", call.fuel);
}
