//! Stored before acknowledged, and answered in the order of the items.

use std::sync::Arc;

use portway_net::listen::TlsFiles;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fakes::frame;
use crate::house::{house, until};

#[tokio::test]
async fn nothing_is_answered_before_it_is_stored() {
    let house = house(|_| {});
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["one"]).await;
    until("the submission", || house.intake.submissions() == 1).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(client.heard_nothing());
    assert_eq!(house.handle.status().answered, 0);
    house.intake.release();
    assert_eq!(client.answers(1).await, ["AA one"]);
    assert_eq!(house.intake.stored(), ["one"]);
}

#[tokio::test]
async fn a_bad_item_is_answered_in_its_place() {
    let house = house(|_| {});
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["one", "refuse", "control", "two"]).await;
    until("the submission", || house.intake.submissions() == 1).await;
    assert!(client.heard_nothing());
    house.intake.release();
    assert_eq!(client.answers(4).await, ["AA one", "AR refuse", "AR control", "AA two"]);
    let status = house.handle.status();
    assert_eq!((status.messages, status.refused, status.control), (2, 1, 1));
    assert_eq!((status.stored, status.answered, status.unanswered), (2, 4, 0));
    assert_eq!(status.refused_by["no-msh"], 1);
    assert_eq!(status.bytes_in, 4 * 3 + 3 + 6 + 7 + 3);
    let refusal = house.handle.refusals().remove(0);
    assert_eq!(refusal.failure.code, "no-msh");
    assert!(refusal.shown().contains("refuse"));
}

#[tokio::test]
async fn frames_that_come_while_others_are_stored_are_stored_together_and_in_order() {
    let house = house(|_| {});
    let mut client = house.client().await;
    house.intake.hold();
    client.send(&["0"]).await;
    until("the first submission", || house.intake.submissions() == 1).await;
    let bodies: Vec<String> = (1..100).map(|number| number.to_string()).collect();
    for body in &bodies {
        client.send(&[body]).await;
    }
    until("the other frames", || house.handle.status().messages == 100).await;
    assert_eq!(house.intake.submissions(), 1);
    house.intake.release();
    let expected: Vec<String> = (0..100).map(|number| format!("AA {number}")).collect();
    assert_eq!(client.answers(100).await, expected);
    assert_eq!(house.intake.submissions(), 2);
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(house.intake.stored(), numbers);
}

#[tokio::test]
async fn frames_cut_anywhere_are_the_same_messages() {
    let house = house(|_| {});
    let bytes = [frame("one"), frame("refuse"), frame("two")].concat();
    for cut in 1..bytes.len() {
        let mut client = house.client().await;
        client.send_bytes(&bytes[..cut]).await;
        client.stream.flush().await.unwrap();
        tokio::task::yield_now().await;
        client.send_bytes(&bytes[cut..]).await;
        assert_eq!(client.answers(3).await, ["AA one", "AR refuse", "AA two"], "cut at {cut}");
    }
}

#[tokio::test]
async fn what_is_not_stored_is_answered_so() {
    let house = house(|_| {});
    let mut client = house.client().await;
    for code in ["busy", "full", "too-large", "stopped", "invalid"] {
        house.intake.refuse_with(Some(code));
        client.send(&["one"]).await;
        assert_eq!(client.answers(1).await, [format!("AE one {code}")]);
        assert_eq!(house.handle.status().not_stored_by[code], 1);
    }
    house.intake.refuse_with(None);
    client.send(&["one", "again", "again"]).await;
    assert_eq!(client.answers(3).await, ["AA one", "AA again", "AA again again 1"]);
    let status = house.handle.status();
    assert_eq!((status.stored, status.duplicates, status.answered), (2, 1, 8));
}

#[tokio::test]
async fn a_large_frame_comes_whole() {
    let house = house(|_| {});
    let mut client = house.client().await;
    let body = "x".repeat(5 << 20);
    client.send(&[&body]).await;
    assert!(client.answer().await.unwrap().starts_with("AA xxx"));
    assert_eq!(house.intake.stored(), [body]);
}

#[tokio::test]
async fn many_items_of_one_read_are_all_answered() {
    let house = house(|_| {});
    let mut client = house.client().await;
    let bodies = vec!["x"; 5_000];
    client.send(&bodies).await;
    assert!(client.answers(5_000).await.iter().all(|answer| answer == "AA x"));
}

#[tokio::test]
async fn notices_of_the_plugin_are_counted_with_the_rest() {
    let house = house(|_| {});
    house.counters.notice("bytes-before-frame");
    assert_eq!(house.handle.status().notices_by["bytes-before-frame"], 1);
}

#[tokio::test]
async fn it_all_works_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let files = TlsFiles { certificate, key, clients: None };
    std::fs::write(&files.certificate, pair.cert.pem()).unwrap();
    std::fs::write(&files.key, pair.signing_key.serialize_pem()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.certificate).unwrap()).unwrap();
    let house = house(|options| options.listen.tls = Some(files));
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let stream = TcpStream::connect(house.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    stream.write_all(&frame("one")).await.unwrap();
    let mut answer = vec![0; frame("AA one").len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, frame("AA one"));
}
