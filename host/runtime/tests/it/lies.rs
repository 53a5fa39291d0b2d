//! Answers that break the contract.

use portway_model::{Failure, SendVerdict, TransformVerdict};
use portway_runtime::FaultKind;

use crate::support::{batch, bytes_batch, deed, fault, hostile_sender, hostile_transform};

async fn transform_lie(name: &str) -> portway_runtime::Fault {
    let transformer = hostile_transform().await.transformer(deed(name, "bad")).unwrap();
    let fault = fault(transformer.transform(&batch(&["good", "bad", "good"])).await);
    assert_eq!(fault.kind, FaultKind::Lie, "{fault}");
    let after = transformer.transform(&batch(&["good"])).await;
    assert_eq!(after.result.unwrap(), [TransformVerdict::Pass]);
    fault
}

async fn send_lie(name: &str, ordered: bool) -> (portway_runtime::Fault, Vec<u32>) {
    let sender = hostile_sender().await.sender(deed(name, "bad")).unwrap();
    let batch = portway_runtime::Batch { ordered, ..batch(&["good", "bad", "good"]) };
    let call = sender.send(&batch).await;
    let sent = call.sent.clone();
    let fault = fault(call);
    assert_eq!(fault.kind, FaultKind::Lie, "{fault}");
    (fault, sent)
}

#[tokio::test]
async fn a_wrong_number_of_verdicts_is_a_lie() {
    let fault = transform_lie("too-few-verdicts").await;
    assert!(fault.text.contains("2 verdicts for 3"));
    assert_eq!(fault.begun, None, "not the fault of the message that was begun last");
    assert!(transform_lie("too-many-verdicts").await.text.contains("4 verdicts for 3"));
    assert!(send_lie("too-few-verdicts", true).await.0.text.contains("2 verdicts for 3"));
    assert!(send_lie("too-many-verdicts", false).await.0.text.contains("4 verdicts for 3"));
}

#[tokio::test]
async fn an_index_that_is_not_there_or_goes_back_is_a_lie() {
    assert!(transform_lie("unknown-index").await.text.contains("begin(1003)"));
    assert!(transform_lie("index-going-back").await.text.contains("`begin(0)` after `begin(2)`"));
    assert!(send_lie("unknown-index", true).await.0.text.contains("sent(1003)"));
    send_lie("index-going-back", true).await;
}

#[tokio::test]
async fn untried_after_it_was_said_to_have_arrived_is_a_lie() {
    let (fault, sent) = send_lie("sent-after-untried", true).await;
    assert!(fault.text.contains("after `sent(1)`"), "{}", fault.text);
    assert_eq!(fault.begun, Some(1));
    assert_eq!(sent, [0, 1, 2], "what is said to have arrived is not sent again");
    let sender = hostile_sender().await.sender(deed("sent-after-untried", "bad")).unwrap();
    let call = sender.send(&batch(&["good", "good"])).await;
    assert!(matches!(call.result.unwrap().as_slice(), [SendVerdict::Sent(_), SendVerdict::Sent(_)]));
}

#[tokio::test]
async fn names_that_are_the_hosts_are_dropped_and_counted() {
    let plugin = hostile_transform().await;
    let before = plugin.counts().dropped_attributes;
    let transformer = plugin.transformer(deed("portway-attribute", "")).unwrap();
    let call = transformer.transform(&batch(&["body"])).await;
    let verdicts = call.result.unwrap();
    let [TransformVerdict::Deliver(outputs)] = verdicts.as_slice() else { panic!("{verdicts:?}") };
    assert_eq!(outputs[0].attributes.pairs(), [("mine".to_owned(), "kept".to_owned())]);
    assert!(plugin.counts().dropped_attributes > before);
}

#[tokio::test]
async fn a_large_body_comes_and_goes_as_a_blob() {
    // 1 MiB is above what is handed over inline; the plugin hands it on.
    let body = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let transformer = hostile_transform().await.transformer(deed("portway-attribute", "")).unwrap();
    let call = transformer.transform(&bytes_batch(vec![body.clone()])).await;
    let verdicts = call.result.unwrap();
    let [TransformVerdict::Deliver(outputs)] = verdicts.as_slice() else { panic!("{verdicts:?}") };
    assert_eq!(outputs[0].body, body);
}

#[tokio::test]
async fn a_fault_has_a_failure_for_the_record() {
    let failure = transform_lie("too-few-verdicts").await.to_failure();
    assert_eq!(failure.code, "plugin-lie");
    assert!(Failure::new(failure.code, failure.text).text.contains("broke the contract"));
}
