//! Every table and column says what it is, in the database itself.

use crate::harness::{Server, message, store};

#[tokio::test]
async fn every_table_and_column_is_documented() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("one")]).await.unwrap();
    let tables =
        "FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')";
    let count: u32 = server.sql(&format!("SELECT count(*) {tables}")).parse().unwrap();
    assert!(count > 30, "with their parts: {count}");
    // The parts of a table are described where they are put together.
    let missing = server.sql(&format!(
        "SELECT c.relname {tables} AND obj_description(c.oid, 'pg_class') IS NULL AND c.relname !~ '_t\\d+$'"
    ));
    assert_eq!(missing, "", "say with COMMENT ON TABLE what each is");
    let missing = server.sql(
        "SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0
            AND NOT a.attisdropped AND col_description(c.oid, a.attnum) IS NULL AND NOT c.relispartition",
    );
    assert_eq!(missing, "", "say with COMMENT ON COLUMN what each is");
}

#[test]
fn migrations_have_the_numbers_and_names_of_the_other_store() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let names = |store: &str| {
        let files = std::fs::read_dir(root.join(store)).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("postgres"), names("sqlite"));
    let built_in = portway_store_postgres::migrations().iter().map(|one| format!("{}.sql", one.name));
    assert_eq!(names("postgres"), built_in.collect::<Vec<_>>());
}

#[test]
fn migrations_only_add_and_say_truly_what_they_do() {
    let findings = portway_store::conformance::migrations::findings(portway_store_postgres::migrations());
    assert_eq!(findings, [""; 0]);
    for migration in portway_store_postgres::migrations() {
        let head = migration.head().unwrap();
        assert!(head.others.is_some(), "{}: say what becomes of other engines", migration.name);
        // Whoever stores waits for an index that is filled with what is stored.
        let fills = head.works_through.iter().any(|(table, work)| {
            portway_store::Work::Index == *work
                && ["messages", "deliveries", "dedupe"].contains(&table.as_str())
        });
        assert!(!fills || head.others == Some(portway_store::Others::Wait), "{}", migration.name);
    }
}

#[tokio::test]
async fn migrations_can_be_applied_twice() {
    let server = Server::of_system();
    let opened = server.open().await;
    store(&opened, vec![message("kept")]).await.unwrap();
    drop(opened);
    // As after a crash between a migration and its record.
    server.sql("DELETE FROM schema_migrations");
    use portway_store::Store as _;
    let opened = portway_store_postgres::PostgresStore::open(server.settings()).await.unwrap();
    assert_eq!(opened.load_messages(&[portway_model::MessageId(1)]).await.unwrap()[0].body, "kept");
}
