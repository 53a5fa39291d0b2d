//! Hostile transforms and senders: a destination pays for its own plugin, nobody else does, and
//! no message is lost.

use portway_admin::views::{Destination, DestinationState, Status};

use super::process::find;
use super::project::{StoreKind, hostile_plugins, to_file};
use super::{Engine, Peer, Project, message};

on_both_stores!(
    a_hostile_transform_costs_its_destination_and_nothing_else,
    a_hostile_sender_costs_its_destination_and_nothing_else,
    a_stopped_destination_is_resumed_and_a_better_plugin_delivers_what_waited,
);

/// Messages before and behind the one that provokes.
const BEFORE: u64 = 5;
const BEHIND: u64 = 5;
const ALL: u64 = BEFORE + 1 + BEHIND;

/// What has to become of a message that provokes a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The plugin runs away with it, so the destination stops, and the message waits.
    Stops,
    /// It is quarantined with these words in the reason.
    Quarantined(&'static str),
    /// Whatever becomes of it: it is counted.
    Counted,
}

const LIMITS: &str = "[limits]\nfuel_per_message = 20000000\nmemory_bytes_max = \"24MB\"\n";

fn transform(deed: &str) -> String {
    format!(
        "[[destination.transform]]\nplugin = \"hostile-transform\"\nsettings = {{ deed = \"{deed}\", on = \"PWbad\" }}\n"
    )
}

fn strict() -> &'static str {
    "order = \"strict\"\nretry = { first_wait = \"10ms\", longest_wait = \"20ms\" }"
}

fn sender(deed: &str) -> String {
    let more = strict();
    format!(
        "[[destination]]\nname = \"{deed}\"\n{more}\n[destination.sender]\nplugin = \"hostile-sender\"\n\
         settings = {{ deed = \"{deed}\", on = \"PWbad\" }}\n"
    )
}

/// Sends to `bad` what provokes each of its destinations, and to `good` all the while.
async fn provoke(engine: &mut Engine) -> u64 {
    let mut bad = Peer::connect(engine.address("bad").await).await;
    let mut good = Peer::connect(engine.address("good").await).await;
    bad.send_all("PWa", 1..=BEFORE).await;
    assert_eq!(bad.send(&message("PWbad", 1)).await, "AA");
    bad.send_all("PWb", 1..=BEHIND).await;
    good.send_all("PWgood", 1..=200).await;
    200
}

/// Waits until every deed has had its end; nothing is lost on the way.
async fn check(engine: &mut Engine, deeds: &[(&str, End)]) {
    for (deed, end) in deeds {
        let all_counted = |found: &Destination| {
            let Destination { counts, waiting, quarantined, .. } = found;
            counts.quarantined == *quarantined && counts.sent + counts.filtered + waiting + quarantined == ALL
        };
        let found = engine
            .until_status(&format!("{deed}: {end:?}"), |status: &Status| {
                let found = find(status, "bad", deed);
                let stopped = found.state == DestinationState::Stopped;
                let over = match end {
                    End::Stops => stopped,
                    End::Quarantined(_) => found.waiting == 0,
                    End::Counted => stopped || found.waiting == 0,
                };
                (over && all_counted(found)).then(|| found.clone())
            })
            .await;
        match end {
            End::Stops => {
                let why = found.why.clone().unwrap_or_else(|| panic!("no reason: {found:?}"));
                assert_eq!(why.code, "runaway", "{deed}: {found:?}");
                assert!(why.text.contains("3 tries in a row used up"), "{deed}: {}", why.text);
                assert_eq!((found.counts.sent, found.waiting), (BEFORE, BEHIND + 1), "{deed}: {found:?}");
            }
            End::Quarantined(_) => {
                assert_eq!((found.quarantined, found.counts.sent), (1, ALL - 1), "{deed}: {found:?}");
            }
            End::Counted => {}
        }
    }
}

/// The reasons under which the provoking message was quarantined say what happened.
async fn check_reasons(project: &Project, deeds: &[(&str, End)]) {
    let listed = project.portway(&["message", "list", "--interface", "bad", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let page: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let items = page["items"].as_array().unwrap();
    let bad = items.iter().find(|item| item["key"] == "PWbad").unwrap();
    let id = bad["id"].to_string();
    let shown = project.portway(&["message", "show", &id, "--json"]).await;
    let detail: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    for (deed, end) in deeds {
        let deliveries = detail["deliveries"].as_array().unwrap();
        let delivery = deliveries.iter().find(|one| one["destination"] == *deed).unwrap();
        let reason = delivery["reason"].as_str().unwrap_or_default();
        match end {
            End::Quarantined(words) => {
                assert_eq!(delivery["state"], "quarantined", "{deed}");
                assert!(reason.contains(words), "{deed}: `{reason}` does not say `{words}`");
            }
            End::Stops => {
                assert_eq!(delivery["state"], "pending", "{deed}");
                let says_why = reason.contains("fuel") || reason.contains("memory");
                assert!(says_why, "{deed}: `{reason}` does not say what was used up");
            }
            End::Counted => {}
        }
    }
}

async fn a_hostile_transform_costs_its_destination_and_nothing_else(store: StoreKind) {
    let deeds = [
        ("endless-loop", End::Stops),
        ("endless-service-calls", End::Stops),
        ("memory-bomb", End::Stops),
        ("trap", End::Quarantined("this message is poison to me")),
        ("silent-trap", End::Quarantined("this message is poison to me")),
        ("stack-overflow", End::Quarantined("stack")),
        ("too-few-verdicts", End::Quarantined("verdict")),
        ("too-many-verdicts", End::Quarantined("verdict")),
        ("unknown-index", End::Counted),
        ("index-going-back", End::Counted),
        ("log-flood", End::Counted),
        ("huge-verdict", End::Counted),
        ("huge-body", End::Counted),
        ("portway-attribute", End::Counted),
        ("several-outputs", End::Quarantined("2 outputs")),
    ];
    let project = Project::on(store, &format!("{}{LIMITS}", hostile_plugins()));
    let destinations: String =
        deeds.iter().map(|(deed, _)| to_file(deed, strict(), &transform(deed))).collect();
    project.mllp("bad", "", &destinations);
    project.mllp("good", "", &to_file("good", "", ""));
    let mut engine = project.run().await;
    let sent = provoke(&mut engine).await;
    assert_eq!(engine.sent("good", "good", sent).await.quarantined, 0);
    check(&mut engine, &deeds).await;
    check_reasons(&project, &deeds).await;
    // A new message still gets in and through.
    Peer::connect(engine.address("good").await).await.send_all("PWgood", [sent + 1]).await;
    engine.sent("good", "good", sent + 1).await;
    assert_eq!(project.delivered("good").len() as u64, sent + 1);
    // The process took no more than a few instances' memory for all of this.
    assert!(engine.resident_bytes_max() < 700 << 20, "{} bytes", engine.resident_bytes_max());
    assert_eq!(project.delivered("trap").len() as u64, ALL - 1);
}

async fn a_hostile_sender_costs_its_destination_and_nothing_else(store: StoreKind) {
    let deeds = [
        ("endless-loop", End::Stops),
        ("endless-service-calls", End::Stops),
        ("memory-bomb", End::Stops),
        ("trap", End::Quarantined("this message is poison to me")),
        ("stack-overflow", End::Quarantined("stack")),
        ("trap-after-sent", End::Counted),
        ("silent-trap", End::Counted),
        ("too-few-verdicts", End::Counted),
        ("too-many-verdicts", End::Counted),
        ("sent-after-untried", End::Counted),
        ("unknown-index", End::Counted),
        ("index-going-back", End::Counted),
        ("huge-verdict", End::Counted),
    ];
    let project = Project::on(store, &format!("{}{LIMITS}", hostile_plugins()));
    let destinations: String = deeds.iter().map(|(deed, _)| sender(deed)).collect();
    project.mllp("bad", "", &destinations);
    project.mllp("good", "", &to_file("good", "", ""));
    let mut engine = project.run().await;
    let sent = provoke(&mut engine).await;
    assert_eq!(engine.sent("good", "good", sent).await.quarantined, 0);
    check(&mut engine, &deeds).await;
    check_reasons(&project, &deeds).await;
}

async fn a_stopped_destination_is_resumed_and_a_better_plugin_delivers_what_waited(store: StoreKind) {
    let project = Project::on(store, &format!("{}{LIMITS}", hostile_plugins()));
    let destinations = |deed| to_file("out", strict(), &transform(deed));
    project.mllp("bad", "", &destinations("endless-loop"));
    project.mllp("good", "", &to_file("good", "", ""));
    let mut engine = project.run().await;
    provoke(&mut engine).await;
    let before = engine.until_stopped("bad", "out").await;
    let shown = project.portway(&["status"]).await;
    assert!(shown.stdout.contains("STOPPED for "), "{}", shown.stdout);
    assert!(shown.stdout.contains("3 tries in a row used up"), "{}", shown.stdout);
    assert!(shown.stdout.contains("`portway resume bad out` starts it again"), "{}", shown.stdout);

    let resumed = project.portway(&["resume", "bad", "out"]).await;
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "out of bad goes on\n"), "{resumed:?}");
    // It starts again, and as the plugin is what it was, it stops again: later than before.
    engine
        .until_status("it stopped anew", |status| {
            let found = find(status, "bad", "out");
            (found.state == DestinationState::Stopped && found.since > before.since).then_some(())
        })
        .await;
    assert_eq!(engine.destination("bad", "out").await.waiting, BEHIND + 1);
    engine.stop().await;

    project.mllp("bad", "", &destinations("none"));
    let mut engine = project.run().await;
    engine.drained("bad", "out").await;
    let keys: Vec<_> = project.delivered("out").into_iter().map(|one| (one.key, one.sequence)).collect();
    let wanted =
        (1..=BEFORE).map(|n| ("PWa", n)).chain([("PWbad", 1)]).chain((1..=BEHIND).map(|n| ("PWb", n)));
    let wanted: Vec<_> = wanted.map(|(key, n)| (key.to_owned(), n)).collect();
    assert_eq!(keys, wanted);
}
