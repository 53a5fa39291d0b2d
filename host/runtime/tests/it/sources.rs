//! Stream sources: spans, settling, neighbours that survive a fault, lies about the input.

use std::time::Duration;

use bytes::Bytes;
use portway_model::{Attributes, Failure, Later, MessageId};
use portway_runtime::{
    CallLimits, Connection, Fate, FaultKind, Isolation, Opening, Receipt, SourceError, SourceItem,
    StreamSource,
};

use crate::support::{component, deed, deed_with, hostile_source, limits, runtime, with_manifest};

fn peer() -> Attributes {
    Attributes::new(vec![("address".into(), "127.0.0.1".into()), ("port".into(), "4711".into())]).unwrap()
}

async fn source(opening: Opening) -> StreamSource {
    hostile_source().await.stream_source(opening).unwrap()
}

async fn connect(source: &StreamSource) -> Connection {
    source.accept(peer(), 0).await.unwrap()
}

fn chunk(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn bodies(items: &[SourceItem]) -> Vec<String> {
    items
        .iter()
        .map(|item| match item {
            SourceItem::Message { draft, .. } => String::from_utf8_lossy(&draft.body).into_owned(),
            SourceItem::Refused { failure, .. } => format!("refused {failure}"),
            SourceItem::Control { .. } => "control".into(),
        })
        .collect()
}

async fn receive(connection: &mut Connection, text: &str) -> Vec<String> {
    bodies(&connection.receive(chunk(text)).await.unwrap())
}

fn fault(error: SourceError) -> portway_runtime::Fault {
    match error {
        SourceError::Fault(fault) => *fault,
        other => panic!("no fault: {other}"),
    }
}

#[tokio::test]
async fn a_message_in_one_chunk_is_a_slice_of_it() {
    let mut connection = connect(&source(deed("none", "")).await).await;
    let read = chunk("first\nsecond\nthi");
    let items = connection.receive(read.clone()).await.unwrap();
    assert_eq!(bodies(&items), ["first", "second"]);
    let SourceItem::Message { draft, .. } = &items[1] else { panic!() };
    assert_eq!(draft.body.as_ptr(), read[6..].as_ptr(), "it was copied");
    assert_eq!(connection.kept_bytes(), 3);
    assert_eq!(receive(&mut connection, "rd\n").await, ["third"]);
    assert_eq!(connection.kept_bytes(), 0);
}

#[tokio::test]
async fn a_chunk_above_64_kib_is_fed_in_parts() {
    let mut connection = connect(&source(deed("none", "")).await).await;
    let line = "x".repeat(3_000);
    let chunk = format!("{line}\n").repeat(70);
    assert_eq!(receive(&mut connection, &chunk).await, vec![line; 70]);
    assert_eq!(connection.kept_bytes(), 0);
}

#[tokio::test]
async fn answers_come_from_tickets_alone_and_from_any_instance() {
    let source = source(deed("none", "")).await;
    let receipts = vec![
        Receipt { fate: Fate::Stored(MessageId(7)), ticket: chunk("a") },
        Receipt { fate: Fate::Duplicate(MessageId(3)), ticket: chunk("b") },
        Receipt {
            fate: Fate::NotStored(Later { failure: Failure::new("busy", ""), after_ms: None }),
            ticket: chunk("c"),
        },
        Receipt { fate: Fate::Noted, ticket: chunk("d") },
    ];
    // No connection was ever accepted by this one.
    let reply = source.settle(receipts).await.unwrap();
    assert_eq!(&reply.bytes[..], b"stored 7\nduplicate 3\nno busy\nnoted\n");
    assert!(!reply.close);
}

#[tokio::test]
async fn a_fault_closes_its_connection_and_neighbours_go_on() {
    let plugin = hostile_source().await;
    let limits = CallLimits { memory_bytes: 63 << 20, ..limits() };
    let source = plugin.stream_source(deed_with("trap", "bad", limits)).unwrap();
    // More than there are processors, so that some share an instance.
    let mut neighbours = Vec::new();
    for n in 0..64 {
        let mut connection = connect(&source).await;
        assert_eq!(receive(&mut connection, &format!("whole {n}\nhalf")).await, [format!("whole {n}")]);
        neighbours.push(connection);
    }
    let mut victim = connect(&source).await;
    assert!(receive(&mut victim, "good\nhalf ").await == ["good"]);
    let fault = fault(victim.receive(chunk("a bad line\n")).await.unwrap_err());
    assert_eq!(fault.kind, FaultKind::Trap);
    assert!(victim.is_ended());
    assert_eq!(victim.kept().concat(), b"half a bad line\n", "for the operator");
    assert!(matches!(victim.receive(chunk("more\n")).await, Err(SourceError::Closed)));
    for connection in &mut neighbours {
        assert_eq!(receive(connection, " a line\nnext").await, ["half a line"]);
        assert_eq!(connection.kept_bytes(), 4);
    }
}

#[tokio::test]
async fn a_neighbours_unfinished_frame_is_fed_again_from_where_it_is_needed() {
    let limits = CallLimits { memory_bytes: 62 << 20, ..limits() };
    let source = source(deed_with("trap", "bad", limits)).await;
    let part = "y".repeat(1_000);
    let mut connections = Vec::new();
    for _ in 0..16 {
        let mut connection = connect(&source).await;
        assert!(receive(&mut connection, &format!("before\n{part}")).await == ["before"]);
        assert!(receive(&mut connection, &part).await.is_empty());
        assert!(receive(&mut connection, &part).await.is_empty());
        connections.push(connection);
    }
    let mut victims = Vec::new();
    for _ in 0..16 {
        victims.push(connect(&source).await);
    }
    for victim in &mut victims {
        victim.receive(chunk("bad\n")).await.unwrap_err();
    }
    for connection in &mut connections {
        assert_eq!(receive(connection, "!\n").await, [format!("{part}{part}{part}!")]);
    }
}

#[tokio::test]
async fn every_lie_about_the_input_is_found() {
    for (name, sentence) in [
        ("span-before-kept", "is not within"),
        ("span-behind-input", "is not within"),
        ("keep-from-going-back", "`keep-from` 0 is not from"),
        ("keep-from-ahead", "`keep-from`"),
        ("undeclared-control", "control = true"),
        ("huge-ticket", "a ticket of 1048576 bytes"),
    ] {
        let source = source(deed(name, "bad")).await;
        let mut connection = connect(&source).await;
        assert!(receive(&mut connection, "good\n").await == ["good"], "{name}");
        let received = connection.receive(chunk("bad\n")).await;
        let fault = fault(received.err().unwrap_or_else(|| panic!("{name} was not found")));
        assert_eq!(fault.kind, FaultKind::Lie, "{name}");
        assert!(fault.text.contains(sentence), "{name}: {}", fault.text);
    }
}

#[tokio::test]
async fn control_items_need_the_manifests_word() {
    let manifest = r#"
        name = "portway:chatty-source"
        version = "0.1.0"
        kind = "stream-source"
        contract = "0.1"
        control = true
    "#;
    let bytes = with_manifest(component("plugins-test", "hostile-stream-source"), manifest);
    let plugin = runtime().load("chatty", &bytes).await.unwrap();
    let source = plugin.stream_source(deed("undeclared-control", "bad")).unwrap();
    let mut connection = connect(&source).await;
    assert_eq!(receive(&mut connection, "bad\n").await, ["control", "bad"]);
}

#[tokio::test]
async fn a_runaway_source_ends_with_its_fuel_or_its_memory() {
    let small = CallLimits { memory_bytes: 8 << 20, ..limits() };
    for (name, kind) in [("endless-loop", FaultKind::OutOfFuel), ("memory-bomb", FaultKind::OutOfMemory)] {
        let source = source(deed_with(name, "bad", small)).await;
        let mut connection = connect(&source).await;
        let fault = fault(connection.receive(chunk("bad\n")).await.unwrap_err());
        assert_eq!(fault.kind, kind);
        assert!(receive(&mut connect(&source).await, "good\n").await == ["good"]);
    }
}

#[tokio::test]
async fn items_before_a_fault_are_not_lost() {
    let source = source(deed("trap", "bad")).await;
    let mut connection = connect(&source).await;
    let long = format!("good\n{}bad\n", "x".repeat(70_000));
    assert_eq!(receive(&mut connection, &long).await, ["good"]);
    assert!(connection.is_ended());
    assert_eq!(fault(connection.receive(Bytes::new()).await.unwrap_err()).kind, FaultKind::Trap);
}

#[tokio::test]
async fn accept_settle_and_finish_may_fault_too() {
    let error = source(deed("accept-traps", "")).await.accept(peer(), 0).await.err().unwrap();
    assert_eq!(fault(error).kind, FaultKind::Trap);

    let settling = source(deed("settle-traps", "bad")).await;
    let mut connection = connect(&settling).await;
    assert!(receive(&mut connection, "half").await.is_empty());
    let receipt = |ticket| vec![Receipt { fate: Fate::Stored(MessageId(1)), ticket: chunk(ticket) }];
    assert_eq!(fault(settling.settle(receipt("bad")).await.unwrap_err()).kind, FaultKind::Trap);
    assert_eq!(&settling.settle(receipt("good")).await.unwrap().bytes[..], b"stored 1\n");
    assert_eq!(receive(&mut connection, " line\n").await, ["half line"]);

    let mut connection = connect(&source(deed("finish-traps", "")).await).await;
    assert_eq!(fault(connection.finish("idle").await.unwrap_err()).kind, FaultKind::Trap);
    let mut connection = connect(&source(deed("none", "")).await).await;
    assert!(receive(&mut connection, "half").await.is_empty());
    assert!(connection.finish("peer-closed").await.unwrap().is_empty());
    assert!(connection.is_ended());
}

#[tokio::test]
async fn a_huge_reply_is_not_copied() {
    let rich = CallLimits { memory_bytes: 512 << 20, fuel_per_message: 1 << 40, ..limits() };
    let source = source(deed_with("huge-reply", "", rich)).await;
    let receipts = vec![Receipt { fate: Fate::Noted, ticket: chunk("any") }];
    assert_eq!(fault(source.settle(receipts).await.unwrap_err()).kind, FaultKind::CopyLimit);
}

#[tokio::test]
async fn a_cancelled_call_is_a_recycle_for_all_on_its_seat() {
    let rich = CallLimits { fuel_per_message: u64::MAX >> 2, ..limits() };
    let source = source(deed_with("endless-loop", "bad", rich)).await;
    let mut neighbours = Vec::new();
    for _ in 0..8 {
        let mut connection = connect(&source).await;
        assert!(receive(&mut connection, "half").await.is_empty());
        neighbours.push(connection);
    }
    let mut victim = connect(&source).await;
    let cancelled = tokio::time::timeout(Duration::from_millis(100), victim.receive(chunk("bad\n"))).await;
    assert!(cancelled.is_err());
    for connection in &mut neighbours {
        assert_eq!(receive(connection, " line\n").await, ["half line"]);
    }
}

#[tokio::test]
async fn connections_apart_do_not_share_an_instance() {
    let plugin = hostile_source().await;
    let before = plugin.counts().instances;
    let limits = CallLimits { memory_bytes: 61 << 20, ..limits() };
    let opening = Opening { isolation: Isolation::Call, ..deed_with("none", "", limits) };
    let source = plugin.stream_source(opening).unwrap();
    let _connections = [connect(&source).await, connect(&source).await, connect(&source).await];
    assert!(plugin.counts().instances >= before + 3);
}

#[tokio::test]
async fn offsets_begin_where_the_host_says() {
    let source = source(deed("none", "")).await;
    let mut connection = source.accept(peer(), 1_000_000).await.unwrap();
    assert_eq!(receive(&mut connection, "a\nb").await, ["a"]);
    assert_eq!(receive(&mut connection, "c\n").await, ["bc"]);
}
