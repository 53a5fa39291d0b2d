//! Senders: what arrived although the call broke off, waiting in services, grants.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portway_model::SendVerdict;
use portway_net::AddressPolicy;
use portway_net::folder::{Access, FolderGrant};
use portway_net::tcp::TcpGrant;
use portway_runtime::{
    Batch, CallError, CallLimits, FaultKind, Grant, GrantError, Grants, Opening, OpeningError,
};
use tokio::net::TcpListener;

use crate::support::{batch, deed, deed_with, fault, hostile_sender, limits, plugin};

fn tcp(port: u16) -> Grant {
    Grant::Tcp(TcpGrant {
        host: "127.0.0.1".into(),
        port,
        connections_max: 2,
        connect_timeout: Duration::from_secs(5),
        addresses: AddressPolicy::Any,
        tls: None,
        credentials: None,
    })
}

fn grants(slot: &str, grant: Grant) -> Grants {
    Grants(BTreeMap::from([(slot.to_owned(), grant)]))
}

fn file_opening(folder: &std::path::Path, settings: &str) -> Opening {
    let grant = Grant::Folder(FolderGrant { path: folder.into(), access: Access::Write });
    Opening { grants: grants("folder", grant), ..Opening::new("lab", "archive", settings) }
}

#[tokio::test]
async fn what_had_arrived_before_a_trap_is_known() {
    let sender = hostile_sender().await.sender(deed("trap-after-sent", "bad")).unwrap();
    let call = sender.send(&Batch { ordered: true, ..batch(&["one", "bad", "three"]) }).await;
    assert_eq!(call.sent, [0, 1]);
    assert_eq!(call.begun, Some(1));
    assert_eq!(fault(call).kind, FaultKind::Trap);
}

#[tokio::test]
async fn waiting_for_a_peer_until_the_time_is_up_is_the_networks_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let short = CallLimits { call_timeout: Duration::from_millis(400), ..limits() };
    let opening = Opening {
        grants: grants("peer", tcp(listener.local_addr().unwrap().port())),
        ..deed_with("endless-wait", "", short)
    };
    let sender = hostile_sender().await.sender(opening).unwrap();
    let started = Instant::now();
    let call = sender.send(&batch(&["wait"])).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    match call.result {
        // The service gives up a little before the call does, and this guest goes on waiting.
        Err(CallError::Fault(fault)) => assert!(matches!(fault.kind, FaultKind::TimedOut { .. }), "{fault}"),
        Ok(verdicts) => assert!(matches!(verdicts.as_slice(), [SendVerdict::Retry(_)]), "{verdicts:?}"),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn what_is_not_granted_is_denied_and_no_fault() {
    let sender = hostile_sender().await.sender(deed("endless-wait", "")).unwrap();
    let verdicts = sender.send(&batch(&["wait"])).await.result;
    let text = format!("{verdicts:?}");
    assert!(text.contains("enied") || text.contains("not granted"), "{text}");
}

#[tokio::test]
async fn manifest_and_project_decide_together() {
    let plugin = plugin("plugins", "file-sender").await;
    let refused = |opening| match plugin.sender(opening) {
        Err(OpeningError::Grant { source, .. }) => source,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was opened"),
    };
    let opening = Opening::new("lab", "archive", "{}");
    assert!(matches!(refused(opening.clone()), GrantError::Missing { .. }));
    let wrong = Opening { grants: grants("folder", tcp(1)), ..opening.clone() };
    assert!(matches!(refused(wrong), GrantError::WrongType { .. }));
    let unknown = Opening { grants: grants("peer", tcp(1)), ..opening.clone() };
    let source = refused(unknown);
    assert!(matches!(source, GrantError::Missing { .. } | GrantError::UnknownSlot { .. }), "{source}");
    assert!(matches!(plugin.transformer(opening), Err(OpeningError::Kind { .. })));
}

#[tokio::test]
async fn a_file_sender_appends_and_syncs_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let settings = r#"{"mode": "append", "file": "results.ndjson"}"#;
    let sender =
        plugin("plugins", "file-sender").await.sender(file_opening(folder.path(), settings)).unwrap();
    sender.check().await.unwrap();
    for bodies in [["one", "two"], ["three", "four"]] {
        let call = sender.send(&Batch { ordered: true, ..batch(&bodies) }).await;
        assert!(call.result.unwrap().iter().all(|verdict| matches!(verdict, SendVerdict::Sent(_))));
        assert_eq!(call.sent, [0, 1]);
    }
    let written = std::fs::read_to_string(folder.path().join("results.ndjson")).unwrap();
    assert_eq!(written, "one\ntwo\nthree\nfour\n");
}

#[tokio::test]
async fn a_folder_that_is_away_is_one_fact_and_no_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let settings = r#"{"mode": "append", "file": "results.ndjson"}"#;
    let opening = file_opening(&folder.path().join("missing"), settings);
    let sender = plugin("plugins", "file-sender").await.sender(opening).unwrap();
    let call = sender.send(&batch(&["one"])).await;
    assert!(matches!(call.result, Err(CallError::Trouble(_))), "{:?}", call.result);
}
