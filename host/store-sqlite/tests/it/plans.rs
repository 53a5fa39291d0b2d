//! How SQLite answers the statements that must stay fast: no table is ever read as a whole, and
//! nothing is sorted that an index has in order.

use portway_store::{Durability, Store as _, WriteBatch};

use crate::harness::{Folder, batch, beside, message, sent, store};

/// Every statement in the sources that names a large table.
fn statements() -> Vec<String> {
    let sources = [
        include_str!("../../src/action.rs"),
        include_str!("../../src/body.rs"),
        include_str!("../../src/dedupe.rs"),
        include_str!("../../src/delivery.rs"),
        include_str!("../../src/result.rs"),
        include_str!("../../src/retention.rs"),
        include_str!("../../src/state.rs"),
        include_str!("../../src/suspect.rs"),
        include_str!("../../src/view.rs"),
    ];
    let texts = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let is_statement = |text: &&str| {
        ["SELECT ", "UPDATE ", "DELETE ", "WITH "].iter().any(|verb| text.starts_with(verb))
            && text.contains(" WHERE ")
    };
    texts.filter(is_statement).map(str::to_owned).collect()
}

#[tokio::test]
async fn no_statement_reads_a_large_table_as_a_whole() {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, (0..100).map(|_| message("body")).collect()).await.unwrap();
    opened.write(WriteBatch { results: vec![sent(1, 1)], ..batch(Durability::Relaxed) }).await.unwrap();
    let connection = beside(&folder.path());
    let mut checked = 0;
    for statement in statements() {
        let explain = format!("EXPLAIN QUERY PLAN {statement}");
        let Ok(mut plan) = connection.prepare(&explain) else {
            // Part of a statement: put together in the source.
            continue;
        };
        checked += 1;
        // Values that are not bound are null, which plans the same.
        let mut steps = plan.raw_query();
        while let Some(step) = steps.next().unwrap() {
            let step: String = step.get("detail").unwrap();
            let tables = ["messages", "deliveries", "bodies", "dedupe", "attempts", "plugin_state"];
            let scans = tables.iter().any(|table| step == format!("SCAN {table}"));
            assert!(!scans, "{step}\n{statement}");
        }
    }
    assert!(checked > 20, "{checked}");
}
