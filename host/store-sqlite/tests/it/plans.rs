//! How SQLite answers the statements that must stay fast: no table is ever read as a whole, and
//! nothing is sorted that an index has in order.

use portway_store::{Durability, Store as _, WriteBatch};

use crate::harness::{Folder, batch, beside, message, sent, store};

/// Tables that grow with what is stored.
const LARGE: [&str; 8] = [
    "messages",
    "bodies",
    "body_chunks",
    "deliveries",
    "attempts",
    "dedupe",
    "message_terms",
    "plugin_state",
];
/// Indexes that hold only what waits, what a person must look at, or what is rare.
const PARTIAL: [&str; 5] =
    ["deliveries_queue", "deliveries_due", "deliveries_held", "messages_quarantined", "messages_large"];
/// Beginnings that are judged otherwise: looked for once, when a store is opened; the columns of a message,
/// to which each use adds its conditions.
const APART: [&str; 2] = ["DELETE FROM body_chunks", "SELECT id, interface_id, status, received_at"];

/// Every statement in the sources, whichever file it stands in.
fn statements() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let sources: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let texts = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let is_statement = |text: &&str| {
        ["SELECT ", "UPDATE ", "DELETE ", "WITH "].iter().any(|verb| text.starts_with(verb))
            && !APART.iter().any(|start| text.starts_with(start))
    };
    texts.filter(is_statement).map(str::to_owned).collect()
}

/// A step that reads a large table, or an index of all of it, from one end to the other.
fn reads_all(step: &str) -> bool {
    let Some(scanned) = step.strip_prefix("SCAN ") else { return false };
    let table = scanned.split(' ').next().unwrap_or_default();
    LARGE.contains(&table) && !PARTIAL.iter().any(|index| scanned.ends_with(index))
}

#[tokio::test]
async fn no_statement_reads_a_large_table_as_a_whole() {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, (0..100).map(|_| message("body")).collect()).await.unwrap();
    opened.write(WriteBatch { results: vec![sent(1, 1)], ..batch(Durability::Relaxed) }).await.unwrap();
    let connection = beside(&folder.path());
    let (mut checked, mut slow) = (0, Vec::new());
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
            slow.extend(reads_all(&step).then(|| format!("{step}\n{statement}")));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n\n"));
    assert!(checked > 50, "{checked}");
}
