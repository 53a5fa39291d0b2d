//! Destinations at which a message may arrive once at most.

use std::collections::BTreeMap;

use super::peer::Server;
use super::project::{StoreKind, to_file};
use super::{Peer, Project, until};

on_both_stores!(
    kills_under_load_send_nothing_twice_and_lose_nothing_silently,
    a_request_without_an_answer_is_in_doubt_and_one_that_was_refused_goes_again,
);

const ONCE: &str = "guarantee = \"at-most-once\"\nretry = { first_wait = \"20ms\", longest_wait = \"50ms\" }";

fn web(address: std::net::SocketAddr, more: &str) -> String {
    format!(
        "[[destination]]\nname = \"web\"\n{ONCE}\n{more}\n[destination.sender]\nplugin = \"http\"\n\
         grants.api = {{ type = \"http\", url = \"http://{address}\" }}\n"
    )
}

/// How often each body was asked for.
fn times(server: &Server) -> BTreeMap<Vec<u8>, usize> {
    let mut times = BTreeMap::new();
    for asked in server.asked() {
        *times.entry(asked.body).or_default() += 1;
    }
    times
}

async fn kills_under_load_send_nothing_twice_and_lose_nothing_silently(store: StoreKind) {
    let server = Server::start(|_, _| "200 OK".to_owned()).await;
    let project = Project::on(store, "");
    project.mllp("lab", "", &(web(server.address, "") + &to_file("file", ONCE, "")));
    let mut engine = project.run().await;
    let mut sent = 0;
    for _ in 0..4 {
        let mut peer = Peer::connect(engine.address("lab").await).await;
        peer.send_all("PWonce", sent + 1..=sent + 60).await;
        sent += 60;
        // At whatever moment of the sending this is.
        engine.kill();
        engine = project.run().await;
    }
    for name in ["web", "file"] {
        engine.drained("lab", name).await;
    }
    let times = times(&server);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    let in_doubt = engine.destination("lab", "web").await.quarantined;
    assert!(times.len() as u64 + in_doubt >= sent, "{} arrived, {in_doubt} are in doubt", times.len());
    let mut lines: Vec<_> = project.delivered("file").into_iter().map(|one| one.sequence).collect();
    let in_doubt = engine.destination("lab", "file").await.quarantined;
    assert!(lines.len() as u64 + in_doubt >= sent, "{} arrived, {in_doubt} are in doubt", lines.len());
    lines.sort_unstable();
    let count = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), count, "a line was written twice");
}

async fn a_request_without_an_answer_is_in_doubt_and_one_that_was_refused_goes_again(store: StoreKind) {
    // No answer at all to the first, a clear no to the second, once.
    let server = Server::start(|number, _| match number {
        0 => "nonsense".to_owned(),
        1 => "503 Service Unavailable".to_owned(),
        _ => "200 OK".to_owned(),
    })
    .await;
    let project = Project::on(store, "");
    let (to, dead) = (server.address, super::stopping::fixed_address());
    project.mllp("lab", "", &(web(to, "order = \"strict\"") + &web(dead, "").replace("\"web\"", "\"away\"")));
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWdoubt", 1..=3).await;
    let found = engine.until_destination("lab", "web", "two are sent", |found| found.counts.sent == 2).await;
    assert_eq!((found.quarantined, found.waiting), (1, 0));
    let shown = project.portway(&["message", "show", "1"]).await.stdout;
    assert!(shown.contains("web: quarantined") && shown.contains("may-have-arrived: "), "{shown}");
    assert_eq!(times(&server).into_values().collect::<Vec<_>>().iter().sum::<usize>(), 4);
    // Nobody listens there: nothing was sent, so nothing is in doubt.
    let away = engine.destination("lab", "away").await;
    assert_eq!((away.waiting, away.quarantined), (3, 0), "{away:?}");
    let resent = project.portway(&["message", "resend", "1", "--destination", "web"]).await;
    assert_eq!(resent.code, Some(0), "{resent:?}");
    until("it was sent again", async || (server.asked().len() == 5).then_some(())).await;
}
