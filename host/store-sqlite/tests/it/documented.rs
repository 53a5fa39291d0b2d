//! Every table and column says what it is, in the database itself.

use crate::harness::{Folder, beside};

#[tokio::test]
async fn every_table_and_column_is_documented() {
    let folder = Folder::new();
    drop(folder.open().await);
    let connection = beside(&folder.path());
    let mut tables = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap();
    let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let tables: Vec<(String, String)> = tables.collect::<Result<_, _>>().unwrap();
    assert!(tables.len() > 10);
    let mut missing = Vec::new();
    for (table, sql) in tables {
        let first = sql.lines().nth(1).unwrap_or_default().trim();
        if !first.starts_with("-- ") {
            missing.push(table.clone());
        }
        let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?)").unwrap();
        let columns = columns.query_map([&table], |row| row.get(0)).unwrap();
        let columns: Vec<String> = columns.collect::<Result<_, _>>().unwrap();
        for column in columns {
            let line = sql.lines().find(|line| line.split_whitespace().next() == Some(&column));
            if !line.is_some_and(|line| line.contains(" -- ")) {
                missing.push(format!("{table}.{column}"));
            }
        }
    }
    assert_eq!(missing, [""; 0], "say behind `--` what each is");
}

#[tokio::test]
async fn migrations_can_be_applied_twice() {
    let folder = Folder::new();
    let store = folder.open().await;
    crate::harness::store(&store, vec![crate::harness::message("kept")]).await.unwrap();
    drop(store);
    // As after a crash between a migration and its number.
    beside(&folder.path()).pragma_update(None, "user_version", 0).unwrap();
    let store = folder.open().await;
    use portway_store::Store as _;
    assert_eq!(store.load_messages(&[portway_model::MessageId(1)]).await.unwrap()[0].body, "kept");
}

#[test]
fn migrations_only_add_and_say_truly_what_they_do() {
    let findings = portway_store::conformance::migrations::findings(portway_store_sqlite::migrations());
    assert_eq!(findings, [""; 0]);
    for migration in portway_store_sqlite::migrations() {
        assert_eq!(migration.head().unwrap().others, None, "{}: a file has one engine", migration.name);
    }
}
