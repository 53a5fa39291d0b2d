//! How PostgreSQL answers the statements of this store: no large table is ever read as a whole, and a queue
//! is read from the index of queues alone.
//!
//! The server writes down the plan of every statement it runs while the store is put through everything.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_model::{DestinationId, InterfaceId, Lane, MessageId, MessageStatus, Term, Timestamp};
use portway_store::conformance::alike;
use portway_store::{Durability, ListMessages, Store as _, WriteBatch};
use portway_testkit_postgres::{ClusterSettings, Programs};

use crate::engines::engine;
use crate::harness::{NOW, Server, batch, message, own, sent, store};

/// Tables that grow with what is stored.
const LARGE: [&str; 10] = [
    "messages",
    "bodies",
    "deliveries",
    "attempts",
    "outputs",
    "dedupe",
    "message_terms",
    "message_actions",
    "action_requests",
    "plugin_state",
];
/// Beginnings of statements that need not be seen: they look at the server and its catalogue, or are for
/// what a test cannot bring about beside everything else.
const APART: [&str; 10] = [
    "SELECT pg_terminate_backend",
    "SELECT pg_advisory",
    "SELECT current_setting",
    "SELECT pg_backend_pid",
    "SELECT tier.relname",
    "SELECT root.relname",
    "SELECT virtualtransaction",
    "SELECT EXISTS (SELECT 1 FROM pg_locks",
    "SELECT to_regclass",
    "SELECT set_config",
];

/// Every statement in the sources, by its first line; but for what only benchmarks ask, beside the store.
fn statements() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.file_name().is_some_and(|name| name != "bench.rs"));
    let sources: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let texts = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let is_statement = |text: &&str| {
        ["SELECT ", "UPDATE ", "DELETE ", "WITH ", "INSERT "].iter().any(|verb| text.starts_with(verb))
            && !APART.iter().any(|start| text.starts_with(start))
            && !text.contains('{')
    };
    texts.filter(is_statement).map(first_line).collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The plans in a server's log, by statement.
fn plans(log: &str) -> BTreeMap<String, String> {
    let mut plans = BTreeMap::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with(" plan:") {
            continue;
        }
        let mut entry = Vec::new();
        while let Some(line) = lines.peek().and_then(|line| line.strip_prefix('\t')) {
            entry.push(line);
            lines.next();
        }
        let begin = entry.iter().position(|line| line.contains("(cost=")).unwrap_or(entry.len());
        let statement = entry[..begin].join("\n");
        let statement = statement.strip_prefix("Query Text: ").unwrap_or_default().to_owned();
        plans.insert(statement, entry[begin..].join("\n"));
    }
    plans
}

/// What is wrong with a plan.
fn findings(statement: &str, plan: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines: Vec<&str> = plan.lines().collect();
    let reads_queue = ["AND destination_id = $1", "AND destination_id = w.id"]
        .iter()
        .any(|condition| statement.contains(condition));
    // A list for people of all that waits, and what ends at the first row.
    let may_read_all = statement.contains("GROUP BY destination_id") || statement.contains("LIMIT 1");
    for (index, line) in lines.iter().enumerate() {
        let Some((node, of)) = line.split_once(" on ") else { continue };
        let is_large = LARGE
            .iter()
            .any(|table| of.starts_with(&format!("{table} ")) || of.starts_with(&format!("{table}_t")));
        if !is_large || !node.contains("Scan") {
            continue;
        }
        if node.contains("Seq Scan") {
            findings.push(format!("reads a table: {}", line.trim()));
        }
        let condition = lines.get(index + 1).and_then(|line| line.trim().strip_prefix("Index Cond: "));
        let begins = condition.is_some_and(|condition| condition.contains(leading_column(node, of)));
        if node.contains("Index") && !begins && !may_read_all {
            findings.push(format!("reads an index from one end to the other: {}", line.trim()));
        }
        if reads_queue && of.starts_with("deliveries") && node.contains("_pkey") {
            findings.push(format!("does not use the index of queues: {}", line.trim()));
        }
    }
    let orders =
        ["ORDER BY message_id LIMIT", "ORDER BY due_at, message_id LIMIT", "ORDER BY lane, message_id LIMIT"];
    let in_order = reads_queue && orders.iter().any(|order| statement.contains(order));
    if in_order
        && lines.iter().any(|line| line.trim_start().starts_with("->  Sort") || line.starts_with("Sort"))
    {
        findings.push("sorts what an index has in order".to_owned());
    }
    findings
}

/// The first column of the index that a node scans: `Index Scan using INDEX` on a table.
fn leading_column(node: &str, of: &str) -> &'static str {
    let table = of.split([' ', '\n']).next().unwrap_or_default();
    let index = node.rsplit(' ').next().unwrap_or_default();
    let columns = index.strip_prefix(table).unwrap_or_default().trim_start_matches('_');
    let known = ["destination_id", "interface_id", "message_id", "origin_id", "expires_at", "id"];
    let of_key = match table.split("_t").next().unwrap_or_default() {
        "messages" | "message_actions" => "id",
        "dedupe" => "interface_id",
        "message" => "bucket",
        "plugin_state" => "destination_id",
        _ => "message_id",
    };
    match known.into_iter().find(|column| columns.starts_with(column)) {
        Some(column) => column,
        None => match index {
            "message_actions_by_message" => "message_id",
            "dedupe_expiry" => "expires_at",
            _ => of_key,
        },
    }
}

async fn use_everything(server: &Server) {
    alike::a_store_answers_like_the_one_in_memory(server).await;
    let opened = server.open().await;
    let mut large = message(vec![0; (1 << 20) + 1]);
    large.terms = vec![Term::of("key", "k")];
    store(&opened, vec![large]).await.unwrap();
    store(
        &opened,
        (0..1_100).map(|_| portway_store::NewMessage { terms: vec![Term(1)], ..message("x") }).collect(),
    )
    .await
    .unwrap();
    let results = (2..=1_050).map(|n| sent(n, 1)).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Relaxed) }).await.unwrap();
    opened.maintain(Duration::ZERO).await.unwrap();
    opened.maintain(Duration::ZERO).await.unwrap();
    // More in one lane than a reader of heads passes by.
    opened.lane_heads(DestinationId(2)).await.unwrap();
    let failure = portway_model::Failure::new("bad", "no good");
    let epoch = own(&opened, &[1]).await.epoch;
    let quarantined = |n| portway_store::DeliveryResult {
        settled: portway_store::Settled::Quarantined(failure.clone()),
        epoch,
        ..sent(n, 2)
    };
    let results = (2..=1_100).map(quarantined).collect();
    opened.write(WriteBatch { results, ..batch(Durability::Relaxed) }).await.unwrap();
    opened.held_heads(DestinationId(2)).await.unwrap();
    opened.load_messages(&[MessageId(1), MessageId(9_999)]).await.unwrap();
    opened.list_deliveries(MessageId(1)).await.unwrap();
    opened.read_lane(DestinationId(1), Lane::FIRST, MessageId::ZERO, 500).await.unwrap();
    let all = ListMessages { limit: 2, ..ListMessages::default() };
    for list in [
        ListMessages { interface: Some(InterfaceId(1)), ..all.clone() },
        ListMessages { status: Some(MessageStatus::Quarantined), ..all.clone() },
        ListMessages {
            status: Some(MessageStatus::Finished),
            destination: Some(DestinationId(1)),
            ..all.clone()
        },
        ListMessages { text: Some("text".into()), ..all.clone() },
        ListMessages { from: Some(NOW), to: Some(Timestamp(NOW.0 + 1)), ..all.clone() },
        ListMessages { key: Some("k".into()), destination: Some(DestinationId(2)), ..all },
    ] {
        opened.list_messages(&list).await.unwrap();
    }
    opened.list_outputs(MessageId(1)).await.unwrap();
    opened.load_output(MessageId(1), DestinationId(1)).await.unwrap();
    let another = engine(server, "two").await;
    store(&another, vec![message("for the other")]).await.unwrap();
    opened.news().await;
    opened.list_engines().await.unwrap();
    opened.close().await.unwrap();
    // A period that goes as a whole.
    let opened = server.open().await;
    crate::retention::filled(&opened).await;
    crate::retention::set_back(server);
    crate::retention::expire(&opened).await;
    opened.close().await.unwrap();
    // What an upgrade would do, and doing it.
    server.sql("DELETE FROM schema_migrations WHERE number >= 4");
    portway_store_postgres::check_upgrade(server.settings()).await.unwrap();
    crate::upgrade::upgraded(server).await;
}

#[tokio::test]
async fn no_statement_reads_a_large_table_as_a_whole() {
    let lines = [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "log_line_prefix = ''",
    ];
    let settings = ClusterSettings { lines: lines.map(str::to_owned).to_vec(), ..ClusterSettings::default() };
    let server = Server::start(&Programs::of_system().unwrap(), &settings);
    use_everything(&server).await;
    let plans = plans(&server.cluster.log().unwrap());
    let mut wrong = Vec::new();
    for (statement, plan) in &plans {
        // Looks at the partitions by name, once a day.
        if statement.starts_with("SELECT min(id), max(id)") {
            continue;
        }
        // Of the test itself.
        if statement.contains("SET day = day - 60") {
            continue;
        }
        // All of what a partial index holds, of one period.
        if statement.starts_with("SELECT DISTINCT id, day") {
            continue;
        }
        wrong.extend(
            findings(statement, plan).into_iter().map(|finding| format!("{finding}\n{statement}\n{plan}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let seen: Vec<String> = plans.keys().map(|statement| first_line(statement)).collect();
    let unseen: Vec<String> =
        statements().into_iter().filter(|statement| !seen.contains(statement)).collect();
    assert_eq!(unseen, [""; 0], "no plan of these was seen: let the test bring them about");
}

#[test]
fn what_is_wrong_with_a_plan_is_found() {
    let queue =
        "SELECT 1 FROM deliveries WHERE state = 0 AND destination_id = $1 ORDER BY message_id LIMIT $4";
    let good = "Limit  (cost=1)\n  ->  Index Scan using deliveries_t49_x_destination_id_idx on deliveries_t49_x\n        Index Cond: (destination_id = 1)";
    assert_eq!(findings(queue, good), [""; 0]);
    for bad in [
        "Seq Scan on messages_t7_20260101 m",
        "Index Scan using deliveries_t49_x_pkey on deliveries_t49_x d\n  Index Cond: (message_id = 1)",
        "Index Only Scan using deliveries_t49_x_destination_id_y_idx on deliveries_t49_x d\n  Filter: (a)",
        "Index Scan using deliveries_t49_x_destination_id_idx on deliveries_t49_x d\n  Index Cond: (message_id = 1)",
        "Limit\n  ->  Sort  (cost=1)",
    ] {
        assert_eq!(findings(queue, bad).len(), 1, "{bad}");
    }
}
