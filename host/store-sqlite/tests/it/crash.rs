//! A process that is really killed while it writes.
//!
//! The test starts itself again as the process that is killed: the child writes and says after
//! each write what was stored; whatever it said must be there afterwards.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use portway_model::MessageId;
use portway_store::{Durability, Store as _, WriteBatch};
use portway_store_sqlite::{SqliteSettings, SqliteStore};

use crate::harness::{Folder, batch, message, register, sent, store};

/// Tells the child from the test.
const PATH: &str = "PORTWAY_TEST_CRASH_PATH";

#[tokio::test]
async fn what_was_stored_before_a_kill_is_there_after_it() {
    if let Ok(path) = std::env::var(PATH) {
        write_for_ever(&path).await;
        return;
    }
    let folder = Folder::new();
    let mut expected = 0;
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::what_was_stored_before_a_kill_is_there_after_it", "--nocapture"])
            .env(PATH, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = 0;
        let mut lines =
            lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("stored ")?.parse().ok());
        while told < expected + 20 + round * 7 {
            told = lines.next().expect("the child ended by itself");
        }
        child.kill().unwrap();
        // What it said before it died counts as well.
        let last: u64 = lines.last().unwrap_or(told);
        child.wait().unwrap();
        let opened = SqliteStore::open(folder.settings()).await.unwrap();
        assert!(register(&opened).await, "an unclean end");
        let loaded = opened.load_messages(&(1..=last).map(MessageId).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(loaded.len() as u64, last, "messages are missing");
        for message in &loaded {
            assert_eq!(message.body, body(message.id.0));
        }
        let view = opened.list_deliveries(MessageId(last)).await.unwrap();
        assert_eq!(view.len(), 3);
        let newest =
            opened.list_messages(&portway_store::ListMessages { limit: 1, ..Default::default() }).await;
        expected = newest.unwrap().items[0].id.0;
        assert!(expected >= last);
    }
}

fn body(number: u64) -> Vec<u8> {
    // Every ninth is written in pieces.
    let length = if number.is_multiple_of(9) { (1 << 20) + 9 } else { 1000 };
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

async fn write_for_ever(path: &str) {
    let settings = SqliteSettings { free_floor_bytes: 0, ..SqliteSettings::new(path) };
    let opened = SqliteStore::open(settings).await.unwrap();
    register(&opened).await;
    let newest =
        opened.list_messages(&portway_store::ListMessages { limit: 1, ..Default::default() }).await.unwrap();
    let mut next = newest.items.first().map_or(1, |message| message.id.0 + 1);
    loop {
        store(&opened, vec![message(body(next)), message(body(next + 1))]).await.unwrap();
        println!("stored {}", next + 1);
        let results =
            WriteBatch { results: vec![sent(next, 1), sent(next, 2)], ..batch(Durability::Relaxed) };
        opened.write(results).await.unwrap();
        next += 2;
    }
}
