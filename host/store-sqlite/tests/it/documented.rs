//! Every table and column says what it is, in the database itself.

use sqlx::Connection as _;

use crate::harness::{Folder, beside};

#[tokio::test]
async fn every_table_and_column_is_documented() {
    let folder = Folder::new();
    drop(folder.open().await);
    let mut connection = beside(&folder.path()).await;
    let tables: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(tables.len() > 10);
    let mut missing = Vec::new();
    for (table, sql) in tables {
        let first = sql.lines().nth(1).unwrap_or_default().trim();
        if !first.starts_with("-- ") {
            missing.push(table.clone());
        }
        let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info(?)")
            .bind(&table)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        for column in columns {
            let line = sql.lines().find(|line| line.split_whitespace().next() == Some(&column));
            if !line.is_some_and(|line| line.contains(" -- ")) {
                missing.push(format!("{table}.{column}"));
            }
        }
    }
    connection.close().await.unwrap();
    assert_eq!(missing, [""; 0], "say behind `--` what each is");
}

#[tokio::test]
async fn migrations_can_be_applied_twice() {
    let folder = Folder::new();
    let store = folder.open().await;
    crate::harness::store(&store, vec![crate::harness::message("kept")]).await.unwrap();
    drop(store);
    let mut connection = beside(&folder.path()).await;
    // As after a crash between a migration and its number.
    sqlx::query("PRAGMA user_version = 0").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let store = folder.open().await;
    use portway_store::Store as _;
    assert_eq!(store.load_messages(&[portway_model::MessageId(1)]).await.unwrap()[0].body, "kept");
}
