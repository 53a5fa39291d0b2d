//! What is refused when a store is opened, and with what sentence.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use portway_store::Store as _;
use portway_store_sqlite::{OpenError, SqliteSettings, SqliteStore};

use crate::harness::{Folder, beside, message, register, store};

async fn refused(settings: SqliteSettings) -> OpenError {
    SqliteStore::open(settings).await.err().unwrap()
}

#[tokio::test]
async fn a_second_engine_is_refused_and_told_who_is_first() {
    let folder = Folder::new();
    let first = folder.open().await;
    let error = refused(folder.settings()).await;
    let expected = format!(
        "the store `{}` is in use by another engine (process {})",
        folder.path().display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    assert!(!error.hint().is_empty());
    // The first goes on undisturbed.
    store(&first, vec![message("body")]).await.unwrap();
    first.close().await.unwrap();
    folder.open().await;
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    beside(&folder.path()).execute("CREATE TABLE theirs (id)", []).unwrap();
    let before = fs::read(folder.path()).unwrap();
    assert!(matches!(refused(folder.settings()).await, OpenError::Foreign { .. }));
    assert!(fs::read(folder.path()).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path(), "Dear diary, ".repeat(1000)).unwrap();
    let error = refused(folder.settings()).await;
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    let of_folder = SqliteSettings::new(folder.folder.path());
    assert!(matches!(refused(of_folder).await, OpenError::NotAFile { .. }));
}

/// A closed store with some messages.
async fn with_messages(folder: &Folder) {
    let opened = folder.open().await;
    for _ in 0..20 {
        store(&opened, (0..64).map(|_| message(vec![1; 1000])).collect()).await.unwrap();
    }
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_store_is_refused() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("overwritten header", |path| overwrite(path, 0, 100)),
        ("overwritten page", |path| overwrite(path, 4096 * 20, 4096)),
        ("cut off", |path| {
            let length = fs::metadata(path).unwrap().len();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length / 2).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let folder = Folder::new();
        with_messages(&folder).await;
        damage(&folder.path());
        let error = refused(folder.settings()).await;
        assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error:?}");
    }
}

fn overwrite(path: &Path, at: usize, count: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + count].fill(0xa5);
    fs::write(path, bytes).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn nobody_else_can_read_the_files() {
    let folder = Folder::new();
    let nested = SqliteSettings::new(folder.folder.path().join("data/store.db"));
    let opened = SqliteStore::open(SqliteSettings { free_floor_bytes: 0, ..nested }).await.unwrap();
    register(&opened).await;
    store(&opened, vec![message("body")]).await.unwrap();
    let copy = folder.folder.path().join("copy.db");
    opened.backup(&copy).await.unwrap();
    assert_eq!(mode(&copy), 0o600);
    assert_eq!(mode(&folder.folder.path().join("data")), 0o700);
    for entry in fs::read_dir(folder.folder.path().join("data")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_store_others_could_read_is_closed_to_them() {
    let folder = Folder::new();
    drop(folder.open().await);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let _opened = folder.open().await;
    assert_eq!(mode(&folder.path()), 0o600);
}

#[tokio::test]
async fn a_failed_backup_leaves_no_file() {
    let folder = Folder::new();
    let opened = folder.open().await;
    let target = folder.folder.path().join("no folder/copy.db");
    assert!(opened.backup(&target).await.is_err());
    assert!(!target.exists());
}
