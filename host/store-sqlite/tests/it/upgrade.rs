//! What an upgrade would do to a file, without touching it; and files that are ahead of this program.

use std::collections::BTreeMap;
use std::path::Path;

use portway_model::MessageId;
use portway_store::{Store as _, UpgradePlan, Work};
use portway_store_sqlite::{OpenError, SqliteStore, check_upgrade, migrations, upgrade};

use crate::harness::{Folder, beside, message, store};

fn known() -> u32 {
    migrations().len() as u32
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

/// As a program would have left it that knew only so many migrations. What the others add is there already,
/// which they do not mind.
fn make_older(path: &Path, version: u32) {
    let connection = beside(path);
    connection.pragma_update(None, "user_version", version).unwrap();
    connection.execute("DELETE FROM schema_migrations WHERE number > ?", [version]).unwrap();
}

async fn check(folder: &Folder) -> UpgradePlan {
    check_upgrade(folder.settings()).await.unwrap()
}

/// A closed store with two messages.
async fn filled() -> Folder {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, vec![message("one"), message("two")]).await.unwrap();
    opened.close().await.unwrap();
    folder
}

#[tokio::test]
async fn where_there_is_no_store_there_is_nothing_to_do_and_none_is_made() {
    let folder = Folder::new();
    let plan = check(&folder).await;
    assert_eq!((plan.present, plan.known, plan.is_empty()), (None, known(), true));
    let refused = upgrade(folder.settings()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused:?}");
    assert!(files(folder.folder.path()).is_empty());
}

#[tokio::test]
async fn what_would_be_done_is_told_with_sizes_and_nothing_is_touched() {
    let folder = filled().await;
    assert!(check(&folder).await.is_empty());
    make_older(&folder.path(), 3);
    let before = files(folder.folder.path());
    let plan = check(&folder).await;
    assert!(files(folder.folder.path()) == before, "it was changed");
    assert_eq!((plan.present, plan.known), (Some(3), known()));
    let numbers: Vec<u32> = plan.steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, (4..=known()).collect::<Vec<_>>());
    let first = &plan.steps[0];
    assert!(first.name == "0004_index_edits" && first.does.ends_with('.') && first.others.is_none());
    let [messages] = &first.tables[..] else { panic!("{first:?}") };
    assert_eq!((messages.table.as_str(), messages.work, messages.rows), ("messages", Work::Index, 2));
    assert!(messages.bytes >= 4_096 && !messages.at_least, "{messages:?}");
    assert_eq!(first.room_bytes(), 2 * 2 * 64);
    assert!(plan.room_bytes() >= first.room_bytes() && plan.free_bytes.unwrap() > 0);
}

#[tokio::test]
async fn an_upgrade_does_what_was_shown_and_keeps_what_is_stored() {
    let folder = filled().await;
    make_older(&folder.path(), 3);
    let upgraded = upgrade(folder.settings()).await.unwrap();
    assert_eq!((upgraded.from, upgraded.to), (Some(3), known()));
    assert!(check(&folder).await.is_empty());
    let opened = folder.open().await;
    assert_eq!(opened.load_messages(&[MessageId(2)]).await.unwrap()[0].body, "two");
}

#[tokio::test]
async fn an_engine_that_runs_is_not_disturbed_and_not_upgraded_under() {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, vec![message("one")]).await.unwrap();
    make_older(&folder.path(), 3);
    for count in 2..20_u64 {
        let (plan, stored) = tokio::join!(check(&folder), store(&opened, vec![message("more")]));
        stored.unwrap();
        let rows = plan.steps[0].tables[0].rows;
        assert!(rows == count || rows == count - 1, "{rows} of {count}");
    }
    let refused = upgrade(folder.settings()).await.unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused:?}");
    assert_eq!(check(&folder).await.present, Some(3));
}

#[tokio::test]
async fn what_a_killed_engine_left_in_its_log_is_seen_and_stays_there() {
    let folder = Folder::new();
    let opened = folder.open().await;
    store(&opened, vec![message("one")]).await.unwrap();
    make_older(&folder.path(), 3);
    // As a crash leaves it: the main file and the log, and nobody who has them.
    let crashed = Folder::new();
    for end in ["", "-wal"] {
        let name = |folder: &Folder| format!("{}{end}", folder.path().display());
        std::fs::copy(name(&folder), name(&crashed)).unwrap();
    }
    let log = |folder: &Folder| std::fs::read(format!("{}-wal", folder.path().display())).unwrap();
    let before = (std::fs::read(crashed.path()).unwrap(), log(&crashed));
    assert!(!before.1.is_empty());
    assert_eq!(check(&crashed).await.steps[0].tables[0].rows, 1);
    assert!((std::fs::read(crashed.path()).unwrap(), log(&crashed)) == before, "it was changed");
}

#[tokio::test]
async fn what_is_no_store_of_this_program_is_refused() {
    let folder = Folder::new();
    beside(&folder.path()).execute("CREATE TABLE theirs (id)", []).unwrap();
    let refused = check_upgrade(folder.settings()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused:?}");
}

/// As a newer program leaves it, which says that programs from `oldest` on work on it.
fn make_newer(path: &Path, oldest: Option<u32>) {
    let connection = beside(path);
    let number = known() + 1;
    connection.pragma_update(None, "user_version", number).unwrap();
    if let Some(oldest) = oldest {
        let insert =
            "INSERT INTO schema_migrations (number, name, oldest_binary) VALUES (?, 'from_tomorrow', ?)";
        connection.execute(insert, [number, oldest]).unwrap();
    }
}

#[tokio::test]
async fn a_newer_store_is_used_where_it_says_that_this_program_works_on_it() {
    let folder = filled().await;
    make_newer(&folder.path(), Some(known()));
    let plan = check(&folder).await;
    assert!(plan.is_empty() && plan.newer == ["from_tomorrow"] && plan.present == Some(known() + 1));
    let opened = folder.open().await;
    store(&opened, vec![message("three")]).await.unwrap();
    opened.close().await.unwrap();
    let version: u32 = beside(&folder.path()).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, known() + 1, "it stays what it is");
}

#[tokio::test]
async fn a_newer_store_that_does_not_say_so_is_refused() {
    for oldest in [None, Some(known() + 1)] {
        let folder = filled().await;
        make_newer(&folder.path(), oldest);
        let refused = SqliteStore::open(folder.settings()).await.err().unwrap();
        assert!(matches!(refused, OpenError::Newer { .. }), "{refused:?}");
        assert!(!refused.hint().is_empty());
        let refused = check_upgrade(folder.settings()).await.unwrap_err();
        assert!(matches!(refused, OpenError::Newer { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn a_store_from_before_migrations_were_recorded_gets_their_record() {
    let folder = filled().await;
    beside(&folder.path()).execute("DROP TABLE schema_migrations", []).unwrap();
    folder.open().await.close().await.unwrap();
    let count: u32 = beside(&folder.path())
        .query_row("SELECT count(*) FROM schema_migrations WHERE oldest_binary > 0", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, known());
}
