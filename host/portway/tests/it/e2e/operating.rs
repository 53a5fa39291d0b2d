//! What an operator does to a running engine, over the command line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portway_admin::views::DestinationState;

use super::peer::Server;
use super::project::{StoreKind, to_file};
use super::{Peer, Project};

on_both_stores!(
    a_pause_holds_deliveries_over_a_restart_and_resume_lets_them_go_in_order,
    a_drain_refuses_new_messages_says_what_is_left_and_ends_the_process,
    the_head_of_a_blocked_lane_is_tried_now_or_skipped,
    many_messages_are_sent_again_by_one_request_that_does_nothing_twice,
    a_corrected_copy_goes_where_it_is_meant_for_and_the_original_stays,
    messages_are_found_by_key_by_control_id_and_by_what_an_interface_names,
);

async fn a_pause_holds_deliveries_over_a_restart_and_resume_lets_them_go_in_order(store: StoreKind) {
    let project = Project::on(store, "");
    project.mllp("lab", "", &(to_file("held", "", "") + &to_file("free", "", "")));
    let mut engine = project.run().await;
    let paused =
        project.portway(&["destination", "pause", "lab/held", "--reason", "the peer is rebuilt"]).await;
    assert_eq!(paused.code, Some(0), "{paused:?}");
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWpause", 1..=20).await;
    engine.sent("lab", "free", 20).await;
    engine.stop().await;
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWpause", 21..=30).await;
    engine.sent("lab", "free", 10).await;
    let found = engine.destination("lab", "held").await;
    assert_eq!((found.state, found.waiting, found.counts.sent), (DestinationState::Paused, 30, 0));
    let status = project.portway(&["status"]).await.stdout;
    assert!(status.contains("PAUSED for ") && status.contains(" by tester: the peer is rebuilt"), "{status}");
    let resumed = project.portway(&["destination", "resume", "lab/held", "--reason", "it is back"]).await;
    assert_eq!(resumed.stdout.trim(), "held of lab goes on", "{resumed:?}");
    engine.sent("lab", "held", 30).await;
    let order: Vec<_> = project.delivered("held").into_iter().map(|one| one.sequence).collect();
    assert_eq!(order, (1..=30).collect::<Vec<_>>());
    let actions = project.portway(&["destination", "actions", "lab/held"]).await.stdout;
    let lines: Vec<_> = actions.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(lines, ["ACTION", "resume", "pause"], "{actions}");
    for wrong in [["destination", "resume", "lab"], ["destination", "resume", "lab/held/x"]] {
        assert_eq!(project.portway(&wrong).await.code, Some(2));
    }
    let unknown = project.portway(&["destination", "pause", "lab/nope", "--reason", "x"]).await;
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
}

async fn a_drain_refuses_new_messages_says_what_is_left_and_ends_the_process(store: StoreKind) {
    let project = Project::on(store, "");
    project.mllp("lab", "", &(to_file("held", "", "") + &to_file("free", "", "")));
    let mut engine = project.run().await;
    project.portway(&["destination", "pause", "lab/held", "--reason", "it is full"]).await;
    let address = engine.address("lab").await;
    Peer::connect(address).await.send_all("PWdrain", 1..=20).await;
    let drained = project.portway(&["drain", "--wait"]).await;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    let text = drained.stdout;
    assert!(text.contains("drained\n  lab/held: 20 left: it is paused by tester: it is full"), "{text}");
    assert_eq!(project.delivered("free").len(), 20);
    let mut peer = Peer::connect(address).await;
    assert_eq!(peer.send(&super::message("PWdrain", 21)).await, "AE");
    assert!(project.portway(&["status"]).await.stdout.contains("DRAINED for "));
    let cancelled = project.portway(&["drain", "--cancel"]).await;
    assert_eq!(cancelled.stdout.trim(), "the engine takes messages again");
    Peer::connect(address).await.send_all("PWdrain", 21..=25).await;
    let stopped = project.portway(&["drain", "--wait", "--stop", "--json"]).await;
    let drained: serde_json::Value = serde_json::from_str(&stopped.stdout).unwrap();
    assert_eq!((&drained["drain"]["done"], &drained["left"][0]["waiting"]), (&true.into(), &25.into()));
    assert_eq!(engine.ended().await.code(), Some(0), "{}", engine.log());
    assert_eq!(project.delivered("free").len(), 25);
    // The next engine takes messages, and the pause still holds.
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWdrain", 26..=26).await;
    assert_eq!(engine.destination("lab", "held").await.waiting, 26);
}

async fn the_head_of_a_blocked_lane_is_tried_now_or_skipped(store: StoreKind) {
    let is_back = Arc::new(AtomicBool::new(false));
    let answers = is_back.clone();
    let web = Server::start(move |_, asked| {
        let is_bad = asked.body.windows(7).any(|window| window == b"PWbad-1");
        let is_good = answers.load(Ordering::Relaxed) && !is_bad;
        if is_good { "200 OK".to_owned() } else { "500 Internal Server Error".to_owned() }
    })
    .await;
    let project = Project::on(store, "");
    let destination = format!(
        "[[destination]]\nname = \"web\"\nretry = {{ first_wait = \"1h\", longest_wait = \"2h\" }}\n\
         [destination.sender]\nplugin = \"http\"\n\
         grants.api = {{ type = \"http\", url = \"http://{}\" }}\n",
        web.address
    );
    project.mllp("lab", "", &destination);
    let mut engine = project.run().await;
    let mut peer = Peer::connect(engine.address("lab").await).await;
    peer.send_all("PWbad", 1..=2).await;
    peer.send_all("PWfine", 1..=2).await;
    let found = engine.until_destination("lab", "web", "two lanes", |found| found.lanes_blocked == 2).await;
    let unclear = project.portway(&["lane", "retry", "lab/web"]).await;
    assert!(unclear.code == Some(5) && unclear.stderr.contains("lane-unclear"), "{unclear:?}");
    is_back.store(true, Ordering::Relaxed);
    for lane in &found.blocked {
        let number = lane.lane.to_string();
        let retried = project.portway(&["lane", "retry", "lab/web", "--lane", &number]).await;
        assert_eq!(retried.stdout.trim(), format!("message {} is tried now at web", lane.message));
    }
    // Both of one key arrive, of the other the first still blocks.
    engine.until_destination("lab", "web", "one lane", |found| found.counts.sent == 2).await;
    let found = engine.until_destination("lab", "web", "one lane", |found| found.lanes_blocked == 1).await;
    let skipped = project.portway(&["lane", "skip", "lab/web", "--reason", "test data"]).await;
    let head = found.blocked[0].message;
    assert_eq!(skipped.stdout.trim(), format!("message {head} is dismissed at web"), "{skipped:?}");
    engine.sent("lab", "web", 3).await;
    let shown = project.portway(&["message", "show", &head.to_string()]).await.stdout;
    assert!(
        shown.contains(" retry by tester at web") && shown.contains(" dismiss by tester at web"),
        "{shown}"
    );
    let nothing = project.portway(&["lane", "retry", "lab/web"]).await;
    assert!(nothing.code == Some(5) && nothing.stderr.contains("nothing-fits"), "{nothing:?}");
}

async fn many_messages_are_sent_again_by_one_request_that_does_nothing_twice(store: StoreKind) {
    let project = Project::on(store, "");
    project.mllp("lab", "", &to_file("out", "", ""));
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWmany", 1..=6).await;
    engine.sent("lab", "out", 6).await;
    let line =
        ["message", "resend", "1", "2", "99", "--request", "again", "--reason", "they lost it", "--json"];
    let resent = project.portway(&line).await;
    assert_eq!(resent.code, Some(1), "one of them is not there: {resent:?}");
    let done: serde_json::Value = serde_json::from_str(&resent.stdout).unwrap();
    assert_eq!(done["items"][0]["destinations"][0], "out");
    assert_eq!(done["items"][2]["error"]["code"], "no-message");
    engine.sent("lab", "out", 8).await;
    let again: serde_json::Value = serde_json::from_str(&project.portway(&line).await.stdout).unwrap();
    assert_eq!(
        (&again["items"][0]["repeated"], &again["items"][1]["repeated"]),
        (&true.into(), &true.into())
    );
    let found =
        ["message", "resend", "--found", "--interface", "lab", "--status", "finished", "--request", "all"];
    let all = project.portway(&found).await;
    assert!(all.code == Some(0) && all.stdout.contains("6 messages by request all"), "{all:?}");
    engine.sent("lab", "out", 14).await;
    let shown = project.portway(&["message", "show", "1"]).await.stdout;
    assert!(shown.matches(" resend by tester at ").count() == 2 && shown.contains("they lost it"), "{shown}");
}

async fn a_corrected_copy_goes_where_it_is_meant_for_and_the_original_stays(store: StoreKind) {
    let project = Project::on(store, "");
    project.mllp("lab", "", &(to_file("one", "", "") + &to_file("two", "", "")));
    let mut engine = project.run().await;
    Peer::connect(engine.address("lab").await).await.send_all("PWedit", 1..=1).await;
    engine.sent("lab", "one", 1).await;
    engine.sent("lab", "two", 1).await;
    let original = project.portway(&["message", "show", "1", "--body"]).await.stdout;
    std::fs::write(project.path().join("fixed.hl7"), super::message("PWedit", 77)).unwrap();
    let file = project.path().join("fixed.hl7").display().to_string();
    let line = ["message", "edit", "1", "--body", &file, "--destination", "two", "--reason", "wrong ward"];
    let edited = project.portway(&line).await;
    assert_eq!(edited.stdout.trim(), "message 2 is the corrected copy of 1", "{edited:?}");
    engine.sent("lab", "two", 2).await;
    assert_eq!(project.delivered("two").last().unwrap().sequence, 77);
    assert_eq!(project.delivered("one").len(), 1);
    assert_eq!(project.portway(&["message", "show", "1", "--body"]).await.stdout, original);
    let shown = project.portway(&["message", "show", "1"]).await.stdout;
    assert!(shown.contains("corrected as message 2") && shown.contains(" edit by tester at "), "{shown}");
    let copy = project.portway(&["message", "show", "2"]).await.stdout;
    assert!(copy.contains("from edit of 1"), "{copy}");
    let missing = project.portway(&["message", "edit", "99", "--body", &file]).await;
    assert!(missing.code == Some(5) && missing.stderr.contains("no-message"), "{missing:?}");
}

async fn messages_are_found_by_key_by_control_id_and_by_what_an_interface_names(store: StoreKind) {
    let project = Project::on(store, "");
    project.mllp("lab", "", &to_file("out", "", ""));
    project.mllp("plain", "", &to_file("other", "", ""));
    let plain = std::fs::read_to_string(project.path().join("interfaces/plain.toml")).unwrap();
    project.interface("plain", &format!("search = [\"hl7.type\"]\n{plain}"));
    let mut engine = project.run().await;
    for (interface, key) in [("lab", "PWone"), ("lab", "PWtwo"), ("plain", "PWone")] {
        Peer::connect(engine.address(interface).await).await.send_all(key, 1..=3).await;
    }
    let list = async |more: &[&str]| {
        let line: Vec<&str> = ["message", "list", "--json"].iter().chain(more).copied().collect();
        let listed = project.portway(&line).await;
        assert_eq!(listed.code, Some(0), "{listed:?}");
        let page: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        page["items"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(list(&["--key", "PWone"]).await, [3, 2, 1], "the other interface's keys are not searchable");
    let shown = project.portway(&["message", "show", "5", "--json"]).await.stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let attributes = shown["attributes"].as_array().unwrap();
    let value = |name: &str| {
        let found = attributes.iter().find(|pair| pair[0] == name).unwrap();
        found[1].as_str().unwrap().to_owned()
    };
    let control_id = value("hl7.control-id");
    assert_eq!(list(&["--interface", "lab", "--control-id", &control_id]).await, [5]);
    let of_type = format!("hl7.type={}", value("hl7.type"));
    assert_eq!(list(&["--interface", "plain", "--attribute", &of_type]).await, [9, 8, 7]);
    assert_eq!(list(&["--text", &control_id]).await, [5]);
    let stored_at = shown["message"]["stored_at"].as_str().unwrap();
    assert!(list(&["--from", stored_at, "--key", "PWtwo"]).await.contains(&5));
    assert_eq!(list(&["--to", "2020-01-01T00:00:00.000Z"]).await, Vec::<u64>::new());
    let unsearchable = project.portway(&["message", "list", "--interface", "plain", "--key", "PWone"]).await;
    assert!(
        unsearchable.code == Some(5) && unsearchable.stderr.contains("not-searchable"),
        "{unsearchable:?}"
    );
}
