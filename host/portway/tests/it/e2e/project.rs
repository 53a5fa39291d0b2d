//! A project in a temporary folder.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portway::traffic::Identity;
use portway::traffic::message;
use portway_store::Store;
use portway_store_postgres::{PostgresSettings, PostgresStore};
use portway_store_sqlite::{SqliteSettings, SqliteStore};
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs};
use tempfile::TempDir;

/// Where a project keeps its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A file of its own.
    Sqlite,
    /// A database on a server of its own.
    Postgres,
}

/// A project folder that is removed at the end.
pub struct Project {
    dir: TempDir,
    /// For temporary files of its programs, which may be killed before they remove them.
    temporary: TempDir,
    /// The server of its database.
    cluster: Option<Cluster>,
}

impl Project {
    /// `more` stands in `portway.toml`, behind the admin address. Ports are drawn by the system.
    pub fn new(more: &str) -> Project {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["interfaces", "out", "data"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let project = Project { dir, temporary: tempfile::tempdir().unwrap(), cluster: None };
        project.write("portway.toml", &format!("[admin]\nlisten = \"127.0.0.1:0\"\n{more}"));
        project.share_native_code();
        project
    }

    /// The same on a store of this kind: one line more is the only change.
    pub fn on(store: StoreKind, more: &str) -> Project {
        if store == StoreKind::Sqlite {
            return Project::new(more);
        }
        let cluster = Cluster::start(&Programs::of_system().unwrap(), &ClusterSettings::default()).unwrap();
        let table = format!("[store]\nurl = {:?}\n", cluster.url());
        let more = match more.contains("[store]\n") {
            true => more.replace("[store]\n", &table),
            false => format!("{more}\n{table}"),
        };
        Project { cluster: Some(cluster), ..Project::new(&more) }
    }

    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Its store, beside its engine or without one.
    pub async fn open_store(&self) -> Arc<dyn Store> {
        match &self.cluster {
            Some(cluster) => {
                let settings = PostgresSettings::new(cluster.url(), "test");
                Arc::new(PostgresStore::open(settings).await.unwrap())
            }
            None => {
                let settings = SqliteSettings::new(self.path().join("data/portway.db"));
                Arc::new(SqliteStore::open(settings).await.unwrap())
            }
        }
    }

    /// An interface with an MLLP source that keeps its patients in order, and these destinations.
    pub fn mllp(&self, name: &str, more_of_source: &str, destinations: &str) {
        let source = "[source]\nplugin = \"mllp\"\nsettings = { key = \"PID-3.1\", dedupe = \"MSH-10\" }\n";
        let listen = match more_of_source.contains("listen =") {
            true => "",
            false => "listen = \"127.0.0.1:0\"\n",
        };
        self.interface(name, &format!("{source}{listen}{more_of_source}\n{destinations}"));
    }

    pub fn interface(&self, name: &str, text: &str) {
        self.write(&format!("interfaces/{name}.toml"), text);
    }

    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What the file sender wrote, in its order.
    pub fn delivered(&self, file: &str) -> Vec<Identity> {
        let text = fs::read(self.path().join("out").join(file)).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| message::read(line).expect("a message of ours").identity).collect()
    }

    /// Components are compiled once for all tests and not once for each.
    pub fn share_native_code(&self) {
        share_native_code(self.path());
    }
}

/// The same for a project that something else made, with its folder `data`.
pub fn share_native_code(project: &Path) {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-code");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&shared).unwrap();
    symlink(shared, project.join("data/native-code")).unwrap();
}

/// A destination that appends what it gets to `out/NAME`, behind the given transforms.
pub fn to_file(name: &str, more: &str, transforms: &str) -> String {
    format!(
        "[[destination]]\nname = \"{name}\"\n{more}\n{transforms}\n[destination.sender]\nplugin = \"file\"\n\
         settings = {{ mode = \"append\", file = \"{name}\" }}\ngrants.folder = {{ type = \"folder\", path = \"out\" }}\n"
    )
}

/// A component of `plugins-test/` in the target folder this test was built in.
pub fn test_component(name: &str) -> PathBuf {
    built("plugins-test", name, "cargo xtask plugins --test")
}

/// A first-party component.
pub fn component(name: &str) -> PathBuf {
    built("plugins", name, "cargo xtask plugins")
}

fn built(folder: &str, name: &str, command: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let file = format!("{name}.wasm");
    let mut candidates = test.ancestors().map(|above| above.join(folder).join(&file));
    candidates
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("there is no `{folder}/{file}` in the target folder: run `{command}`"))
}

/// The table of plugins by path in `portway.toml`.
pub fn hostile_plugins() -> String {
    let mut text = String::new();
    for name in ["hostile-transform", "hostile-sender", "hostile-stream-source"] {
        let path = test_component(name);
        text.push_str(&format!("[plugins.{name}]\npath = {:?}\n", path.display().to_string()));
    }
    text
}
