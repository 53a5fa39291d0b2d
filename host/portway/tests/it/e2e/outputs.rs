//! What senders were given, kept where the destination wants that.

use super::project::{StoreKind, to_file};
use super::{Peer, Project, message};

on_both_stores!(what_a_sender_was_given_can_be_seen_where_it_is_kept);

async fn what_a_sender_was_given_can_be_seen_where_it_is_kept(store: StoreKind) {
    let project = Project::on(store, "");
    let transform = "[[destination.transform]]\nplugin = \"hl7-to-json\"\n";
    let kept = to_file("kept", "save_output = true\n", transform);
    let same = to_file("same", "save_output = true\n", "");
    let off = to_file("off", "", transform);
    project.mllp("lab", "", &format!("{kept}{same}{off}"));
    let mut engine = project.run().await;
    let received = message("PWsaved", 1);
    Peer::connect(engine.address("lab").await).await.send(&received).await;
    for name in ["kept", "same", "off"] {
        engine.sent("lab", name, 1).await;
    }
    let shown = project.portway(&["message", "show", "1"]).await;
    assert!(shown.stdout.contains("`portway message show 1 --output kept`"), "{shown:?}");
    assert!(shown.stdout.contains(", as received: `portway message show 1 --output same`"), "{shown:?}");
    assert!(!shown.stdout.contains("--output off"), "{shown:?}");
    let output = project.portway(&["message", "show", "1", "--output", "kept"]).await;
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(json.is_object(), "{output:?}");
    let output = project.portway(&["message", "show", "1", "--output", "same"]).await;
    assert_eq!(output.stdout.as_bytes(), received);
    let output = project.portway(&["message", "show", "1", "--output", "off"]).await;
    assert!(output.code != Some(0) && output.stderr.contains("no-output"), "{output:?}");
    engine.stop().await;
}
