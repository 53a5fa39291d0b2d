//! Traces, as a collector gets them: whose spans they are, what they say, and what happens when
//! nobody takes them.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message;

use super::peer::{Server, ask, free_port, post};
use super::process::Engine;
use super::project::{StoreKind, to_file};
use super::{Peer, Project, message, until};

on_both_stores!(a_trace_that_began_elsewhere_goes_on_through_routes_and_out_again);

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A project whose traces go to a collector.
fn traced(store: StoreKind, collector: &Server, more: &str) -> Project {
    let endpoint = format!("endpoint = \"http://{}\"\ninterval = \"50ms\"\n", collector.address);
    Project::on(store, &format!("[traces]\n{endpoint}{more}\n"))
}

async fn collector() -> Server {
    Server::start(|_, _| "200 OK\r\ncontent-type: application/x-protobuf".into()).await
}

/// Every span that has arrived.
fn spans(collector: &Server) -> Vec<Span> {
    let mut spans = Vec::new();
    for asked in collector.asked() {
        assert!(asked.head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{}", asked.head);
        let request = ExportTraceServiceRequest::decode(&*asked.body).unwrap();
        for of_resource in request.resource_spans {
            let resource = texts(&of_resource.resource.unwrap().attributes);
            assert_eq!(resource["service.name"], "portway");
            spans.extend(of_resource.scope_spans.into_iter().flat_map(|of_scope| of_scope.spans));
        }
    }
    spans
}

/// Waits until these spans are there, by name, and gives all.
async fn arrived(collector: &Server, engine: &mut Engine, names: &[&str]) -> BTreeMap<String, Span> {
    let what = format!("{names:?}");
    let found = until(&what, async || {
        let found: BTreeMap<String, Span> =
            spans(collector).into_iter().map(|span| (span.name.clone(), span)).collect();
        names.iter().all(|name| found.contains_key(*name)).then_some(found)
    });
    match futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(found)).await {
        Ok(found) => found,
        Err(_) => {
            let names: Vec<_> = spans(collector).into_iter().map(|span| span.name).collect();
            panic!("there are only {names:?}:\n{}", engine.log());
        }
    }
}

/// Attributes as people read them.
fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::DoubleValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}

fn number(span: &Span, key: &str) -> f64 {
    let all = texts(&span.attributes);
    all.get(key).unwrap_or_else(|| panic!("no `{key}` in {all:?}")).parse().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_message_is_one_trace_with_the_fuel_and_time_of_its_plugins() {
    let collector = collector().await;
    let project = traced(StoreKind::Sqlite, &collector, "");
    let transforms = "[[destination.transform]]\nplugin = \"oru-to-json\"\n";
    project.mllp("lab", "", &to_file("archive", "", transforms));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    assert_eq!(peer.send(&message("PWone", 1)).await, "AA");
    let names = ["receive lab", "deliver archive", "transform oru-to-json", "send file"];
    let found = arrived(&collector, &mut engine, &names).await;
    let [receive, deliver, transform, send] = names.map(|name| &found[name]);
    assert_eq!(found.len(), 4, "{:?}", found.keys());
    assert!(found.values().all(|span| span.trace_id == receive.trace_id), "one message is one trace");
    assert!(receive.parent_span_id.is_empty(), "it begins here");
    assert_eq!(deliver.parent_span_id, receive.span_id);
    assert_eq!((&transform.parent_span_id, &send.parent_span_id), (&deliver.span_id, &deliver.span_id));
    assert_eq!(receive.kind, i32::from(SpanKind::Server));
    assert_eq!(send.kind, i32::from(SpanKind::Client));
    for span in found.values() {
        assert!(number(span, "portway.fuel") > 1_000.0, "{span:?}");
        assert!(number(span, "portway.plugin_time_ms") > 0.0, "{span:?}");
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano && span.status.is_none(), "{span:?}");
    }
    let both = number(transform, "portway.fuel") + number(send, "portway.fuel");
    assert!((number(deliver, "portway.fuel") - both).abs() < 1.0, "a delivery is the sum of its plugins");
    let said = texts(&deliver.attributes);
    for (key, value) in [
        ("portway.interface", "lab"),
        ("portway.destination", "archive"),
        ("portway.message.id", "1"),
        ("portway.attempt", "1"),
        ("portway.outcome", "sent"),
    ] {
        assert_eq!(said[key], value, "{said:?}");
    }
    let said = texts(&receive.attributes);
    assert_eq!((said["portway.outcome"].as_str(), said["portway.plugin"].as_str()), ("stored", "mllp"));
    // What is delivered later, by another process, belongs to the same trace.
    let traces = engine.status().await.traces.unwrap();
    assert!(traces.sent >= 4 && traces.lost.is_empty(), "{traces:?}");
    engine.stop().await;
    let mut engine = project.run().await;
    let resent = project.portway(&["message", "resend", "1", "--reason", "again"]).await;
    assert_eq!(resent.code, Some(0), "{resent:?}");
    engine.sent("lab", "archive", 1).await;
    let trace = receive.trace_id.clone();
    let again = until("the resent delivery", async || {
        let deliveries: Vec<Span> =
            spans(&collector).into_iter().filter(|span| span.name == "deliver archive").collect();
        (deliveries.len() == 2).then_some(deliveries)
    });
    assert!(again.await.iter().all(|span| span.trace_id == trace));
}

async fn a_trace_that_began_elsewhere_goes_on_through_routes_and_out_again(store: StoreKind) {
    let (collector, shop) = (collector().await, Server::start(|_, _| "200 OK".into()).await);
    let project = traced(store, &collector, "sample = \"0%\"\noutgoing = true");
    let address = free_port();
    let source = format!("[source]\nplugin = \"http\"\nlisten = \"{address}\"\n");
    project.interface("orders", &format!("{source}[[destination]]\nname = \"on\"\nroute = \"shop\"\n"));
    let api = format!("grants.api = {{ type = \"http\", url = \"http://{}/\" }}\n", shop.address);
    project.interface(
        "shop",
        &format!("[[destination]]\nname = \"web\"\n[destination.sender]\nplugin = \"http\"\n{api}"),
    );
    let mut engine = project.run().await;
    let header = format!("traceparent: {PARENT}\r\n");
    assert_eq!(post(address, "/", &header, "{\"order\":1}").await.0, 202);
    let names = ["receive orders", "deliver on", "deliver web", "send http"];
    let found = arrived(&collector, &mut engine, &names).await;
    let [receive, on, web, send] = names.map(|name| &found[name]);
    assert_eq!(hex(&receive.trace_id), PARENT[3..35]);
    assert_eq!(hex(&receive.parent_span_id), PARENT[36..52]);
    assert!(found.values().all(|span| span.trace_id == receive.trace_id));
    assert_eq!(on.parent_span_id, receive.span_id);
    assert_eq!(web.parent_span_id, on.span_id, "the route is what it comes from");
    assert_eq!(send.parent_span_id, web.span_id);
    let asked = shop.asked();
    let told = format!("traceparent: 00-{}-{}-01", &PARENT[3..35], hex(&send.span_id));
    assert!(asked[0].head.to_lowercase().contains(&told), "{told}: {}", asked[0].head);
    // One that nobody records is not recorded here either, but told on.
    let quiet = header.replace("-01\r\n", "-00\r\n");
    assert_eq!(post(address, "/", &quiet, "{\"order\":2}").await.0, 202);
    assert_eq!(ask(address, "POST", "/", "", "{\"order\":3}").await.0, 202);
    engine.sent("shop", "web", 3).await;
    let heads: Vec<String> = shop.asked().into_iter().map(|asked| asked.head.to_lowercase()).collect();
    assert!(heads[1].contains(&PARENT[3..35]) && heads[1].contains("-00\r\n"), "{}", heads[1]);
    assert!(heads[2].contains("traceparent: 00-") && !heads[2].contains(&PARENT[3..35]), "{}", heads[2]);
    engine.stop().await;
    assert_eq!(spans(&collector).len(), 4, "nothing else was recorded");
}

#[tokio::test]
async fn nobody_waits_for_a_collector_that_is_away() {
    let away = free_port();
    let settings = format!("[traces]\nendpoint = \"http://{away}\"\nqueue_max = 512\n");
    let project = Project::new(&settings);
    project.mllp("lab", "", &to_file("archive", "", ""));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWaway", 1..=600).await;
    engine.sent("lab", "archive", 600).await;
    // Three spans a message, of which so many wait and so many are in hand.
    let lost = engine
        .until_status("spans are lost", |status| {
            status.traces.as_ref()?.lost.iter().find(|lost| lost.reason == "queue-full").cloned()
        })
        .await;
    assert!(lost.count >= 1_800 - 512 - 512 - 3, "{lost:?}");
    engine.until_log("traces are not taken").await;
    let status = project.portway(&["status"]).await;
    assert!(status.stdout.contains("traces: 0 spans sent, "), "{}", status.stdout);
    engine.stop().await;
}

#[tokio::test]
async fn what_a_collector_refuses_is_lost_and_said_once() {
    let collector = Server::start(|_, _| "400 Bad Request".into()).await;
    let project = traced(StoreKind::Sqlite, &collector, "headers = { x-key = \"k1\" }");
    project.mllp("lab", "", &to_file("archive", "", ""));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    for sequence in 1..=3 {
        peer.send_all("PWno", [sequence]).await;
        engine
            .until_status("they are refused", |status| {
                let lost = &status.traces.as_ref()?.lost;
                lost.iter().find(|lost| lost.reason == "rejected" && lost.count >= sequence * 3).map(drop)
            })
            .await;
    }
    assert!(collector.asked().iter().all(|asked| asked.head.to_lowercase().contains("x-key: k1\r\n")));
    assert_eq!(engine.log().matches("traces are not taken").count(), 1, "{}", engine.log());
}

#[tokio::test]
async fn a_wrong_table_of_traces_is_told() {
    let project = Project::new(
        "[traces]\nendpoint = \"http://127.0.0.1:4318/?key=1\"\nheaders = { host = \"x\" }\nsample = \"110%\"\n",
    );
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    for said in
        ["`endpoint` has a query", "the header `host` of `traces` is the host's", "`sample` is not a share"]
    {
        assert!(validated.stdout.contains(said), "{said}: {validated:?}");
    }
}
