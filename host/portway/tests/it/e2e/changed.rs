//! A project that changes while messages wait, and what the log says of a night without a peer.

use std::net::{SocketAddr, TcpListener};

use super::peer::Server;
use super::project::{StoreKind, to_file};
use super::{Peer, Project};

on_both_stores!(
    what_waits_goes_to_the_new_address_also_when_destinations_change_their_places,
    a_peer_that_is_away_all_night_is_one_line_in_the_log_and_no_attempt,
);

fn to_web(address: SocketAddr) -> String {
    format!(
        "[[destination]]\nname = \"web\"\nretry = {{ first_wait = \"10ms\", longest_wait = \"20ms\" }}\n\
         [destination.sender]\nplugin = \"http\"\ngrants.api = {{ type = \"http\", url = \"http://{address}\" }}\n"
    )
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

async fn what_waits_goes_to_the_new_address_also_when_destinations_change_their_places(store: StoreKind) {
    let project = Project::on(store, "");
    project.mllp("lab", "", &(to_web(nobody()) + &to_file("out", "", "")));
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWmoved", 1..=10).await;
    engine.sent("lab", "out", 10).await;
    assert_eq!(engine.destination("lab", "web").await.waiting, 10);
    engine.stop().await;
    let server = Server::start(|_, _| "200 OK".to_owned()).await;
    project.mllp("lab", "", &(to_file("out", "", "") + &to_web(server.address)));
    let mut engine = project.run().await;
    engine.sent("lab", "web", 10).await;
    let bodies: Vec<_> = server.asked().iter().map(|one| one.body.clone()).collect();
    for (body, sequence) in bodies.iter().zip(1..) {
        let mark = format!("|PWmoved-{sequence}|");
        assert!(String::from_utf8_lossy(body).contains(&mark), "{mark} is not in its place");
    }
    assert_eq!((bodies.len(), engine.destination("lab", "out").await.counts.sent), (10, 0));
}

async fn a_peer_that_is_away_all_night_is_one_line_in_the_log_and_no_attempt(store: StoreKind) {
    let port = nobody().port();
    let mllp =
        format!("plugin = \"mllp\"\ngrants.peer = {{ type = \"tcp\", host = \"127.0.0.1\", port = {port} }}");
    let http =
        format!("plugin = \"http\"\ngrants.api = {{ type = \"http\", url = \"http://127.0.0.1:{port}/\" }}");
    for sender in [mllp, http] {
        away_all_night(store, &sender).await;
    }
}

async fn away_all_night(store: StoreKind, sender: &str) {
    let project = Project::on(store, "");
    let retry = "retry = { first_wait = \"10ms\", longest_wait = \"20ms\", attempts = 1 }";
    let destination = format!("[[destination]]\nname = \"ehr\"\n{retry}\n[destination.sender]\n{sender}\n");
    project.mllp("lab", "", &destination);
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWnight", 1..=20).await;
    let first = engine.until_destination("lab", "ehr", "it is away", |found| found.until.is_some()).await;
    // Asked again, several times.
    for _ in 0..5 {
        let before = engine.destination("lab", "ehr").await.until;
        engine.until_destination("lab", "ehr", "it was asked again", |found| found.until > before).await;
    }
    let still = engine.destination("lab", "ehr").await;
    assert_eq!((still.since, still.waiting), (first.since, 20), "since when is the first time's");
    assert_eq!((still.quarantined, still.lanes_blocked), (0, 0), "no message is blamed: {still:?}");
    let told = |words: &str| engine.log().lines().filter(|line| line.contains(words)).count();
    assert_eq!(told("waits: "), 1, "{}", engine.log());
    assert_eq!(told("unreachable"), 1, "and no other line tells it: {}", engine.log());
}
