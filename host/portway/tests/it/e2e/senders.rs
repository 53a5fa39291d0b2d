//! What other systems answer, and what an operator does about it.

use std::time::Duration;

use portway::traffic::{Behaviour, Protocol};

use super::peer::Server;
use super::project::StoreKind;
use super::stopping::Sink;
use super::{Peer, Project, message};

on_both_stores!(
    a_server_that_is_away_is_asked_again_when_it_says,
    what_a_server_rejects_is_quarantined_until_an_operator_sends_it_again,
    a_held_message_blocks_only_its_lane_and_dismissing_it_lets_the_lane_go_on,
    an_mllp_receiver_that_says_ae_is_asked_again_and_one_that_says_ar_is_not,
);

fn to_web(more: &str, server: &Server) -> String {
    format!(
        "[[destination]]\nname = \"web\"\n{more}\n[destination.sender]\nplugin = \"http\"\n\
         grants.api = {{ type = \"http\", url = \"http://{}/in\" }}\n",
        server.address
    )
}

/// The number of the only message in a status.
async fn only(project: &Project, status: &str) -> String {
    let listed = project.portway(&["message", "list", "--status", status, "--json"]).await;
    let page: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{page}");
    items[0]["id"].to_string()
}

async fn a_server_that_is_away_is_asked_again_when_it_says(store: StoreKind) {
    let server = Server::start(|number, _| {
        if number == 0 { "503 Service Unavailable\r\nretry-after: 2".into() } else { "200 OK".into() }
    })
    .await;
    let project = Project::on(store, "");
    project.mllp("lab", "", &to_web("retry = { first_wait = \"10ms\", longest_wait = \"30s\" }", &server));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    let body = message("PWa", 1);
    assert_eq!(peer.send(&body).await, "AA");
    let waiting = engine
        .until_destination("lab", "web", "it waits for a retry", |found| found.counts.retried == 1)
        .await;
    assert_eq!(waiting.waiting, 1);
    assert!(waiting.blocked.iter().any(|lane| lane.why.contains("503")), "{waiting:?}");
    let done = engine.sent("lab", "web", 1).await;
    assert_eq!(done.counts.retried, 1, "{done:?}");
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(1_900), "{:?}", asked[1].at - asked[0].at);
    assert!(asked.iter().all(|one| one.body == body), "the bytes have changed");
    assert!(asked[0].head.starts_with("POST /in HTTP/1.1\r\n"), "{}", asked[0].head);
    let keys: Vec<_> = asked.iter().map(|one| header(&one.head, "idempotency-key")).collect();
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
}

fn header(head: &str, wanted: &str) -> Option<String> {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
    values.next().map(|(_, value)| value.trim().to_owned())
}

async fn what_a_server_rejects_is_quarantined_until_an_operator_sends_it_again(store: StoreKind) {
    let server =
        Server::start(|number, _| if number == 0 { "400 Bad Request".into() } else { "200 OK".into() }).await;
    let project = Project::on(store, "");
    project.mllp("lab", "", &to_web("", &server));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    assert_eq!(peer.send(&message("PWa", 1)).await, "AA");
    engine.until_destination("lab", "web", "it is quarantined", |found| found.quarantined == 1).await;
    // The next of the same key goes on.
    assert_eq!(peer.send(&message("PWa", 2)).await, "AA");
    engine.until_destination("lab", "web", "the next is sent", |found| found.counts.sent == 1).await;

    let id = only(&project, "quarantined").await;
    let shown = project.portway(&["message", "show", &id]).await;
    assert!(shown.stdout.contains("quarantined") && shown.stdout.contains("400"), "{shown:?}");
    let resent = project.portway(&["message", "resend", &id, "--reason", "their fault"]).await;
    assert_eq!((resent.code, resent.stdout), (Some(0), format!("message {id} is sent again to web\n")));
    let done = engine.until_destination("lab", "web", "it is sent", |found| found.counts.sent == 2).await;
    assert_eq!((done.quarantined, done.waiting), (0, 0), "{done:?}");
    let shown = project.portway(&["message", "show", &id]).await;
    assert!(shown.stdout.contains("resend by tester") && shown.stdout.contains("their fault"), "{shown:?}");
    let body = project.portway(&["message", "show", &id, "--body"]).await;
    assert!(body.stdout.contains("PWa-1"), "{body:?}");
    let again = project.portway(&["message", "resend", "999999"]).await;
    assert_eq!(again.code, Some(5), "{again:?}");
}

async fn a_held_message_blocks_only_its_lane_and_dismissing_it_lets_the_lane_go_on(store: StoreKind) {
    let server = Server::start(|_, asked| {
        let is_bad = String::from_utf8_lossy(&asked.body).contains("PWbad-1|");
        if is_bad { "422 Unprocessable Content".into() } else { "200 OK".into() }
    })
    .await;
    let project = Project::on(store, "");
    project.mllp("lab", "", &to_web("on_quarantine = \"hold\"", &server));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWbad", 1..=3).await;
    peer.send_all("PWgood", 1..=20).await;
    let held = engine.until_destination("lab", "web", "one lane is held", |found| {
        (found.counts.sent, found.quarantined, found.lanes_blocked) == (20, 1, 1)
    });
    let held = held.await;
    assert_eq!(held.waiting, 2, "{held:?}");
    let id = only(&project, "quarantined").await;
    assert_eq!(held.blocked[0].message.to_string(), id);
    let shown = project.portway(&["status"]).await;
    let why = format!("message {id}, 1 attempt: quarantined: 422: the server answered 422");
    assert!(shown.stdout.contains(&why), "{shown:?}");
    assert!(shown.stdout.contains("waits for `portway lane retry lab/web` or `lane skip`"), "{shown:?}");
    // Held over a restart as well.
    engine.stop().await;
    let mut engine = project.run().await;
    let held =
        engine.until_destination("lab", "web", "its lane is shown", |found| found.lanes_blocked == 1).await;
    assert_eq!((held.quarantined, held.waiting), (1, 2), "{held:?}");
    let dismissed = project.portway(&["message", "dismiss", &id, "--reason", "no such patient"]).await;
    assert_eq!(dismissed.code, Some(0), "{dismissed:?}");
    let done = engine.sent("lab", "web", 2).await;
    assert_eq!((done.quarantined, done.lanes_blocked), (0, 0), "{done:?}");
    let bodies: Vec<_> =
        server.asked().iter().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect();
    let bad: Vec<_> = bodies.iter().filter(|body| body.contains("PWbad-")).collect();
    assert!(bad.len() == 3 && bad[1].contains("PWbad-2|") && bad[2].contains("PWbad-3|"), "{bad:?}");
}

async fn an_mllp_receiver_that_says_ae_is_asked_again_and_one_that_says_ar_is_not(store: StoreKind) {
    let sink = Sink::start(Protocol::Mllp).await;
    let project = Project::on(store, "");
    let destination = format!(
        "[[destination]]\nname = \"ehr\"\norder = \"strict\"\nretry = {{ first_wait = \"20ms\", longest_wait = \"100ms\" }}\n\
         [destination.sender]\nplugin = \"mllp\"\n\
         grants.peer = {{ type = \"tcp\", host = \"127.0.0.1\", port = {} }}\n",
        sink.address.port()
    );
    project.mllp("lab", "", &destination);
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    sink.desk.behave(Behaviour { status: Some(503), ..Behaviour::default() });
    peer.send_all("PWa", 1..=5).await;
    let waiting =
        engine.until_destination("lab", "ehr", "it is tried again", |found| found.counts.retried >= 2).await;
    assert_eq!((waiting.counts.sent, waiting.waiting), (0, 5), "{waiting:?}");
    sink.desk.behave(Behaviour::default());
    engine.sent("lab", "ehr", 5).await;
    let tally = sink.desk.tally().report();
    assert!(tally.is_good() && tally.distinct == 5 && tally.duplicates == 0, "{tally:?}");

    sink.desk.behave(Behaviour { status: Some(400), ..Behaviour::default() });
    peer.send_all("PWa", [6]).await;
    let found =
        engine.until_destination("lab", "ehr", "it is quarantined", |found| found.quarantined == 1).await;
    assert_eq!(found.waiting, 0);
    let id = only(&project, "quarantined").await;
    let shown = project.portway(&["message", "show", &id]).await;
    assert!(shown.stdout.contains("rejected on purpose"), "the receiver's words are missing: {shown:?}");
}
