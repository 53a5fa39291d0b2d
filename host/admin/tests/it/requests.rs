//! What the API answers.

use portway_admin::views;

use crate::Api;

fn parse<T: serde::de::DeserializeOwned>(body: &str) -> T {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body}"))
}

#[tokio::test]
async fn status_and_metrics_say_the_same() {
    let api = Api::start().await;
    let (code, head, body) = api.send("GET /api/v1/status", "").await;
    assert_eq!(code, 200);
    assert!(head.contains("cache-control: no-store") && head.contains("x-request-id: "), "{head}");
    let status: views::Status = parse(&body);
    let destination = &status.interfaces[0].destinations[0];
    assert_eq!(destination.blocked[0].message, 42);
    assert_eq!(destination.until.unwrap().to_string(), "1970-01-01T00:00:09.000Z");
    let (code, head, body) = api.send("GET /metrics", "").await;
    assert_eq!(code, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    for line in [
        "portway_destination_waiting{interface=\"lab\",destination=\"api\"} 3",
        "portway_destination_oldest_seconds{interface=\"lab\",destination=\"api\"} 10",
        "portway_destination_state{interface=\"lab\",destination=\"api\",state=\"waiting\"} 1",
        "portway_refusals_total{interface=\"lab\",reason=\"not-allowed\"} 2",
        "portway_deliveries_total{interface=\"lab\",destination=\"api\",outcome=\"sent\"} 10",
        "portway_source_messages_total{interface=\"lab\",fate=\"stored\"} 14",
        "portway_plugin_faults_total{interface=\"lab\",destination=\"api\",plugin=\"json-map\",kind=\"trap\"} 3",
        "portway_http_requests_total{interface=\"lab\",status=\"2xx\"} 7",
        "portway_poll_state{interface=\"inbox\",state=\"resting\"} 1",
        "portway_poll_age_seconds{interface=\"inbox\"} 4",
        "# TYPE portway_commits_total counter",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} is missing in\n{body}");
    }
    api.stop().await;
}

#[tokio::test]
async fn what_waits_is_no_figure_while_nobody_knows_it() {
    let api = Api::start().await;
    let why = views::Reason { code: "store".into(), text: "the database is away".into() };
    *api.engine.away.lock().unwrap() = Some(views::StoreAway { why, read_at: None });
    let (_, _, body) = api.send("GET /metrics", "").await;
    for unknown in ["destination_waiting{", "destination_oldest_seconds", "destination_quarantined{"] {
        assert!(!body.contains(unknown), "{unknown} in\n{body}");
    }
    assert!(body.contains("portway_store_readable 0"), "{body}");
    assert!(body.contains("portway_destination_state{"), "{body}");
    api.stop().await;
}

#[tokio::test]
async fn messages_are_listed_shown_and_handed_out() {
    let api = Api::start().await;
    let (code, _, body) = api
        .send("GET /api/v1/messages?interface=lab&destination=api&status=quarantined&cursor=99&limit=2", "")
        .await;
    assert_eq!(code, 200);
    assert_eq!(parse::<views::MessagePage>(&body).next.unwrap().0, 42);
    let asked = api.engine.asked().remove(0);
    assert!(
        asked.contains("Some(Quarantined)") && asked.contains("MessageId(99)") && asked.contains("limit: 2")
    );
    let search = "key=P1&attribute=hl7.control-id%3D17&text=ward&from=1970-01-01T00:00:09.000Z";
    assert_eq!(api.send(&format!("GET /api/v1/messages?{search}"), "").await.0, 200);
    let asked = api.engine.asked().remove(1);
    for part in ["Some(\"P1\")", "hl7.control-id=17", "ward", "Time(Timestamp(9000))"] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
    let (code, _, body) = api.send("GET /api/v1/messages/42", "").await;
    assert_eq!((code, parse::<views::MessageDetail>(&body).deliveries.len()), (200, 1));
    let (code, head, body) = api.send("GET /api/v1/messages/42/body", "").await;
    assert_eq!((code, body.as_str()), (200, "a\rb\0c"));
    assert!(head.contains("content-type: application/octet-stream") && head.contains("nosniff"), "{head}");
    let (code, _, body) = api.send("GET /api/v1/messages/42/outputs/api", "").await;
    assert_eq!((code, body.as_str()), (200, "made"));
    assert_eq!(api.send("GET /api/v1/messages/42/outputs/none", "").await.0, 404);
    let (code, _, body) = api.send("GET /api/v1/refusals", "").await;
    assert_eq!((code, parse::<Vec<views::Refused>>(&body).len()), (200, 1));
    api.stop().await;
}

#[tokio::test]
async fn what_plugins_keep_is_listed_shown_and_removed() {
    let api = Api::start().await;
    let path = "/api/v1/destinations/lab/api/state";
    let (code, _, body) = api.send(&format!("GET {path}?prefix=m"), "").await;
    assert_eq!((code, parse::<views::StatePage>(&body).keys[0].key.as_str()), (200, "m1"));
    let (code, _, body) = api.send(&format!("GET {path}/value?key=a%2Fb&space=own"), "").await;
    let value = parse::<views::StateValue>(&body);
    assert_eq!((code, value.space.as_str(), value.key.as_str()), (200, "own", "a/b"));
    for bad in ["?limit=0", "?limit=501", "?after=a", "?x=1", "/value"] {
        assert_eq!(api.send(&format!("GET {path}{bad}"), "").await.0, 422, "{bad}");
    }
    let remove = format!("POST {path}/remove");
    assert_eq!(api.send(&remove, r#"{"key":"n"}"#).await.0, 422, "it needs a reason");
    assert_eq!(api.send(&remove, r#"{"reason":"r"}"#).await.0, 422, "it needs a key");
    let (code, _, body) = api.send(&remove, r#"{"key":"n","reason":"r","author":"ann"}"#).await;
    assert_eq!((code, parse::<views::StateRemoved>(&body).key.as_str()), (200, "n"));
    api.stop().await;
}

#[tokio::test]
async fn actions_reach_the_engine_with_author_and_reason() {
    let api = Api::start().await;
    let act = r#"{"destination":"api","reason":"fixed","author":"ann"}"#;
    let (code, _, body) = api.send("POST /api/v1/messages/42/resend", act).await;
    assert_eq!((code, parse::<views::ActionDone>(&body).destinations), (200, vec!["api".to_owned()]));
    let (code, ..) = api.send("POST /api/v1/messages/42/dismiss", r#"{"reason":"test data"}"#).await;
    assert_eq!(code, 200);
    let (code, ..) = api.send("POST /api/v1/destinations/lab/api/resume", "").await;
    assert_eq!(code, 200);
    let (code, _, body) = api.send("POST /api/v1/backup", r#"{"file":"/b/copy.db"}"#).await;
    assert_eq!((code, parse::<views::Backup>(&body).file.as_str()), (200, "/b/copy.db"));
    let asked = api.engine.asked();
    assert!(asked[0].contains("Resend") && asked[0].contains("\"ann\"") && asked[0].contains("\"fixed\""));
    assert!(asked[1].contains("Dismiss") && asked[1].contains("\"operator\""));
    assert!(asked[2].contains("Resume") && asked[2].contains("\"lab\"") && asked[2].contains("\"operator\""));
    api.stop().await;
}

#[tokio::test]
async fn a_destination_is_paused_with_a_reason_and_resumed_with_or_without_one() {
    let api = Api::start().await;
    let path = "POST /api/v1/destinations/lab/api";
    let word = r#"{"reason":"the peer is rebuilt","author":"ann"}"#;
    let (code, _, body) = api.send(&format!("{path}/pause"), word).await;
    assert_eq!((code, parse::<views::DestinationActionDone>(&body).destination.as_str()), (200, "api"));
    for word in ["", "null", "{}", r#"{"author":"bob"}"#] {
        assert_eq!(api.send(&format!("{path}/resume"), word).await.0, 200, "{word}");
    }
    let asked = api.engine.asked();
    assert!(asked[0].contains("Pause") && asked[0].contains("\"ann\"") && asked[0].contains("rebuilt"));
    assert!(asked[1..].iter().all(|asked| asked.contains("Resume")), "{asked:?}");
    let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(2_000));
    for word in ["", "{}", r#"{"raeson":"x"}"#, "{", &long] {
        assert_eq!(api.send(&format!("{path}/pause"), word).await.0, 422, "{word}");
    }
    let (code, _, body) = api.send("GET /api/v1/destinations/lab/api/actions", "").await;
    let actions: Vec<views::DestinationActionRecord> = parse(&body);
    assert_eq!((code, actions[0].reason.as_str()), (200, "of lab/api"));
    api.stop().await;
}

#[tokio::test]
async fn errors_have_a_code_a_message_and_the_request_id() {
    let api = Api::start().await;
    for (line, body, wanted) in [
        ("GET /api/v1/messages/7", "", (404, "no-message")),
        ("GET /api/v1/messages/7/body", "", (404, "no-message")),
        ("GET /api/v1/messages/x", "", (422, "invalid")),
        ("GET /api/v1/messages?limit=501", "", (422, "invalid")),
        ("GET /api/v1/messages?destination=api", "", (422, "invalid")),
        ("GET /api/v1/messages?colour=red", "", (422, "invalid")),
        ("GET /api/v1/messages?status=lost", "", (422, "invalid")),
        ("GET /api/v1/messages?attribute=x", "", (422, "invalid")),
        ("GET /api/v1/messages?from=yesterday", "", (422, "invalid")),
        ("POST /api/v1/messages/7/resend", "{}", (404, "no-message")),
        ("POST /api/v1/messages/42/resend", "{", (422, "invalid")),
        ("POST /api/v1/messages/42/resend", r#"{"destinatoin":"x"}"#, (422, "invalid")),
        ("POST /api/v1/messages/42/dismiss", "{}", (422, "invalid")),
        ("POST /api/v1/destinations/lab/nope/resume", "", (404, "no-destination")),
        ("POST /api/v1/backup", r#"{"file":"copy.db"}"#, (422, "invalid")),
        ("DELETE /api/v1/messages/42", "", (405, "method-not-allowed")),
        ("GET /nothing", "", (404, "no-route")),
    ] {
        let (code, head, body) = api.send(line, body).await;
        let error: views::Error = parse(&body);
        assert_eq!((code, error.code.as_str()), wanted, "{line}: {body}");
        assert!(!error.message.is_empty() && head.contains(&format!("x-request-id: {}", error.request_id)));
    }
    let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(2_000));
    assert_eq!(api.send("POST /api/v1/messages/42/dismiss", &long).await.0, 422);
    api.stop().await;
}

#[tokio::test]
async fn health_follows_the_engine() {
    let api = Api::start().await;
    let health = format!("GET /health HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", api.address());
    let (code, _, body) = api.send_raw(&health).await;
    assert_eq!((code, body.as_str()), (200, r#"{"state":"running","intake_open":true}"#));
    *api.engine.stopping.lock().unwrap() = true;
    assert_eq!(api.send_raw(&health).await.0, 503);
    api.stop().await;
}

#[tokio::test]
async fn a_drain_is_begun_and_cancelled() {
    let api = Api::start().await;
    for (line, body, code) in [
        ("POST /api/v1/drain", r#"{"author":"ann"}"#, 200),
        ("POST /api/v1/drain", r#"{"stop":true}"#, 200),
        ("DELETE /api/v1/drain", "", 200),
        ("POST /api/v1/drain", r#"{"stopp":true}"#, 422),
    ] {
        assert_eq!(api.send(line, body).await.0, code, "{line} {body}");
    }
    let asked = api.engine.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[0].contains("\"ann\"") && asked[0].contains("stop: false"), "{asked:?}");
    assert!(asked[1].contains("\"operator\"") && asked[1].contains("stop: true"), "{asked:?}");
    assert_eq!(asked[2], "Cancel");
    api.stop().await;
}

#[tokio::test]
async fn the_head_of_a_lane_is_skipped_or_tried_now() {
    let api = Api::start().await;
    let path = "POST /api/v1/destinations/lab/api/lanes";
    for (verb, body, code) in [
        ("skip", r#"{"reason":"test data"}"#, 200),
        ("skip", r#"{"lane":7,"reason":"test data","author":"ann"}"#, 200),
        ("retry", r#"{"message":42}"#, 200),
        ("skip", "{}", 422),
        ("retry", r#"{"lane":7,"message":42}"#, 422),
        ("retry", r#"{"lane":70000}"#, 422),
        ("retry", r#"{"line":7}"#, 422),
    ] {
        assert_eq!(api.send(&format!("{path}/{verb}"), body).await.0, code, "{verb} {body}");
    }
    let asked = api.engine.asked();
    assert!(asked[0].contains("Only") && asked[0].contains("Skip"), "{asked:?}");
    assert!(asked[1].contains("Lane(7)") && asked[1].contains("\"ann\""), "{asked:?}");
    assert!(asked[2].contains("Message(MessageId(42))") && asked[2].contains("Retry"), "{asked:?}");
    api.stop().await;
}

#[tokio::test]
async fn many_messages_are_resent_or_dismissed_by_a_list_or_a_search() {
    let api = Api::start().await;
    let (code, _, body) =
        api.send("POST /api/v1/messages/resend", r#"{"ids":[42,7,42],"request":"r1","author":"ann"}"#).await;
    let done: views::BulkDone = parse(&body);
    assert_eq!((code, done.items.len(), done.request.as_str()), (200, 2, "r1"));
    let search = r#"{"search":{"interface":"lab","status":"quarantined"},"request":"r2","reason":"tests"}"#;
    let (code, _, body) = api.send("POST /api/v1/messages/dismiss", search).await;
    assert_eq!((code, parse::<views::BulkDone>(&body).next), (200, Some(portway_model::MessageId(42))));
    let many = format!(r#"{{"ids":[{}],"request":"r"}}"#, vec!["1"; 501].join(","));
    for (verb, body) in [
        ("resend", r#"{"ids":[1]}"#),
        ("resend", r#"{"ids":[],"request":"r"}"#),
        ("resend", r#"{"request":"r"}"#),
        ("resend", r#"{"ids":[1],"search":{},"request":"r"}"#),
        ("resend", r#"{"search":{"limit":501},"request":"r"}"#),
        ("dismiss", r#"{"ids":[1],"request":"r"}"#),
        ("resend", many.as_str()),
    ] {
        let (code, _, answer) = api.send(&format!("POST /api/v1/messages/{verb}"), body).await;
        assert_eq!(code, 422, "{verb} {body}: {answer}");
    }
    let asked = api.engine.asked();
    assert!(asked[0].contains("Resend") && asked[0].contains("\"ann\""), "{asked:?}");
    assert!(asked[2].contains("Dismiss") && asked[2].contains("MessageId(42)"), "{asked:?}");
    api.stop().await;
}

#[tokio::test]
async fn a_corrected_copy_is_taken_up_to_the_size_of_a_message() {
    let api = Api::start().await;
    let line = "POST /api/v1/messages/42/edit?reason=typo&author=ann&destinations=api,file";
    // Larger than any other request may be.
    let (code, _, body) = api.send(line, &"x".repeat(90_000)).await;
    assert_eq!((code, parse::<views::Edited>(&body).message.0), (200, 43), "{body}");
    for (line, bytes, wanted) in [
        ("POST /api/v1/messages/42/edit", 100_001, (413, "too-large")),
        ("POST /api/v1/messages/42/edit", 0, (422, "invalid")),
        ("POST /api/v1/messages/42/edit?raeson=x", 1, (422, "invalid")),
        ("POST /api/v1/messages/x/edit", 1, (422, "invalid")),
    ] {
        let (code, _, body) = api.send(line, &"x".repeat(bytes)).await;
        assert_eq!((code, parse::<views::Error>(&body).code.as_str()), wanted, "{line} {bytes}");
    }
    let asked = api.engine.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].contains("Some([\"api\", \"file\"])") && asked[0].contains("\"ann\""));
    api.stop().await;
}
