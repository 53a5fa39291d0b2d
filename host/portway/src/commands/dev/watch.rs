//! What a project is made of, watched: its files, the components it names, and what those are built
//! from.
//!
//! The system's word that something happened is only a hint: what is different is found by looking
//! at the files. So nothing is missed that changed while nobody looked, and nothing follows from
//! what only seems to change. Where the system cannot tell, the files are looked at all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::event::EventKind;
use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use portway_config::{EncryptedFile, Project};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Programs save a file in several steps: it is looked at when nothing happened for so long.
const REST: Duration = Duration::from_millis(50);
/// However much goes on, it is looked at after this time.
const REST_MAX: Duration = Duration::from_secs(1);
/// Between looks where the system cannot tell.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Files of one plugin's sources; more are not looked at.
const FILES_MAX: usize = 20_000;
/// Folders that hold what was built, not what it is built from.
const BUILT: [&str; 3] = ["target", "node_modules", ".git"];

/// What may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Project,
    /// The component of a plugin.
    Component(String),
    /// What a plugin is built from.
    Sources(String),
}

/// Where the parts are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    dir: PathBuf,
    components: BTreeMap<String, PathBuf>,
    sources: BTreeMap<String, Vec<PathBuf>>,
}

/// See the file.
pub(super) struct Watch {
    watcher: Box<dyn Watcher + Send>,
    hints: mpsc::Receiver<()>,
    /// A hint was heard and not followed.
    is_hinted: bool,
    places: Places,
    seen: BTreeMap<Part, Files>,
    /// Why the files are looked at all the time.
    pub polls: Option<String>,
}

/// Files as they were seen.
type Files = BTreeMap<PathBuf, Stamp>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    bytes: u64,
    number: u64,
}

impl Places {
    /// `project`: as far as it could be read.
    pub fn of(dir: &Path, project: Option<&Project>) -> Places {
        let mut places = Places { dir: dir.to_owned(), ..Places::default() };
        for (name, plugin) in project.iter().flat_map(|project| &project.plugins) {
            let name = name.as_str().to_owned();
            if plugin.build.is_some() {
                let paths = plugin.watch.iter().map(|path| path.as_path().to_owned());
                places.sources.insert(name.clone(), paths.collect());
            }
            places.components.insert(name, plugin.path.value.as_path().to_owned());
        }
        places
    }

    fn look(&self) -> BTreeMap<Part, Files> {
        let mut seen = BTreeMap::from([(Part::Project, self.project_files())]);
        for (name, path) in &self.components {
            let mut files = Files::new();
            add(path, &mut files);
            seen.insert(Part::Component(name.clone()), files);
        }
        for (name, paths) in &self.sources {
            let mut files = Files::new();
            paths.iter().for_each(|path| add_all(path, &mut files));
            seen.insert(Part::Sources(name.clone()), files);
        }
        seen
    }

    fn project_files(&self) -> Files {
        let mut files = Files::new();
        let encrypted = EncryptedFile::of(&self.dir, None);
        for name in [Project::FILE, Project::SECRETS, encrypted.shown()] {
            add(&self.dir.join(name), &mut files);
        }
        for folder in [Project::INTERFACES, Project::ENVIRONMENTS] {
            let entries = fs::read_dir(self.dir.join(folder)).into_iter().flatten().flatten();
            // Of an environment its encrypted secrets as well.
            let is_ours = |path: &PathBuf| {
                path.extension().is_some_and(|extension| extension == "toml" || extension == "age")
            };
            entries.map(|entry| entry.path()).filter(is_ours).for_each(|path| add(&path, &mut files));
        }
        files
    }

    /// Folders to hear of, and whether with all that is below them.
    fn folders(&self) -> BTreeMap<PathBuf, RecursiveMode> {
        let mut folders = BTreeMap::new();
        for folder in [&self.dir, &self.dir.join(Project::INTERFACES), &self.dir.join(Project::ENVIRONMENTS)]
        {
            folders.insert(folder.clone(), RecursiveMode::NonRecursive);
        }
        // Of a file its folder: what writes one often puts a new one in its place.
        let sources = self.sources.values().flatten();
        let files = self.components.values().chain(sources.clone().filter(|path| !path.is_dir()));
        for folder in files.filter_map(|path| path.parent()) {
            folders.insert(folder.to_owned(), RecursiveMode::NonRecursive);
        }
        for folder in sources.filter(|path| path.is_dir()) {
            folders.insert(folder.clone(), RecursiveMode::Recursive);
        }
        folders
    }
}

fn add(path: &Path, files: &mut Files) {
    if let Ok(metadata) = fs::metadata(path) {
        let changed = metadata.modified().ok();
        files.insert(path.to_owned(), Stamp { changed, bytes: metadata.len(), number: metadata.ino() });
    }
}

/// A file, or all below a folder but for what was built there.
fn add_all(path: &Path, files: &mut Files) {
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        if files.len() >= FILES_MAX {
            return;
        }
        // Not through links: a loop would have no end.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if !metadata.is_dir() {
            add(&path, files);
            continue;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let is_source = |entry: &fs::DirEntry| !BUILT.iter().any(|name| entry.file_name() == *name);
        left.extend(entries.filter(is_source).map(|entry| entry.path()));
    }
}

impl Watch {
    pub fn new(places: Places) -> Watch {
        let (hint, hints) = mpsc::channel(1);
        let told = hint.clone();
        let (watcher, polls): (Box<dyn Watcher + Send>, _) =
            match RecommendedWatcher::new(move |event| tell(&told, &event), Config::default()) {
                Ok(watcher) => (Box::new(watcher), None),
                Err(error) => match poller(hint.clone()) {
                    Ok(poller) => (Box::new(poller), Some(error.to_string())),
                    Err(none) => (Box::new(notify::NullWatcher), Some(none.to_string())),
                },
            };
        let seen = places.look();
        let mut watch = Watch { watcher, hints, is_hinted: false, places, seen, polls };
        if let Err(error) = watch.hear()
            && let Ok(poller) = poller(hint)
        {
            watch.watcher = Box::new(poller);
            watch.polls = Some(error.to_string());
            let _ = watch.hear();
        }
        watch
    }

    /// Watches these from now on. What changed there since the last look is found by the next.
    pub fn set(&mut self, places: Places) {
        let news = places.look();
        self.places = places;
        self.seen.retain(|part, _| news.contains_key(part));
        for (part, files) in news {
            self.seen.entry(part).or_insert(files);
        }
        let _ = self.hear();
        // A folder may have been made before it was heard of.
        self.is_hinted = true;
    }

    /// Folders that are not there are heard of when they are: by what is above them.
    fn hear(&mut self) -> notify::Result<()> {
        for (folder, mode) in self.places.folders() {
            if folder.exists() {
                self.watcher.watch(&folder, mode)?;
            }
        }
        Ok(())
    }

    /// Waits until something is different, and says what. May be dropped while it waits.
    pub async fn next(&mut self) -> BTreeSet<Part> {
        loop {
            if !self.is_hinted {
                if self.hints.recv().await.is_none() {
                    return std::future::pending().await;
                }
                self.is_hinted = true;
            }
            let until = Instant::now() + REST_MAX;
            while let Ok(Some(())) = timeout_at(until.min(Instant::now() + REST), self.hints.recv()).await {
                if Instant::now() >= until {
                    break;
                }
            }
            self.is_hinted = false;
            let different = self.look();
            if !different.is_empty() {
                return different;
            }
        }
    }

    fn look(&mut self) -> BTreeSet<Part> {
        let now = self.places.look();
        let is_different = |(part, files): &(&Part, &Files)| self.seen.get(*part) != Some(*files);
        let different = now.iter().filter(is_different).map(|(part, _)| part.clone()).collect();
        self.seen = now;
        different
    }
}

fn poller(hint: mpsc::Sender<()>) -> notify::Result<PollWatcher> {
    let config = Config::default().with_poll_interval(POLL_EVERY);
    PollWatcher::new(move |event| tell(&hint, &event), config)
}

/// That something was read is no news; that something could not be heard is.
fn tell(hint: &mpsc::Sender<()>, event: &notify::Result<notify::Event>) {
    let is_read = event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_)));
    if !is_read {
        // One hint that waits is enough.
        let _ = hint.try_send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path) -> Places {
        Places {
            dir: dir.to_owned(),
            components: BTreeMap::from([("own".to_owned(), dir.join("built/own.wasm"))]),
            sources: BTreeMap::from([("own".to_owned(), vec![dir.join("src")])]),
        }
    }

    fn write(dir: &Path, file: &str, text: &str) {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn next(watch: &mut Watch) -> Vec<Part> {
        let end = Instant::now() + Duration::from_secs(60);
        timeout_at(end, watch.next()).await.expect("a change").into_iter().collect()
    }

    #[tokio::test]
    async fn each_part_is_told_when_it_changes_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, "portway.toml", "");
        write(dir, "interfaces/lab.toml", "");
        write(dir, "src/deep/lib.rs", "");
        let mut watch = Watch::new(places(dir));
        write(dir, "log.txt", "nobody looks at this");
        write(dir, "src/target/x", "nor at this");
        write(dir, "interfaces/lab.toml", "a = 1");
        assert_eq!(next(&mut watch).await, [Part::Project]);
        write(dir, "src/deep/lib.rs", "fn main() {}");
        assert_eq!(next(&mut watch).await, [Part::Sources("own".into())]);
        // Its folder comes into being together with it.
        write(dir, "built/own.wasm", "x");
        watch.set(places(dir));
        assert_eq!(next(&mut watch).await, [Part::Component("own".into())]);
        fs::rename(dir.join("interfaces/lab.toml"), dir.join("interfaces/other.toml")).unwrap();
        assert_eq!(next(&mut watch).await, [Part::Project]);
        fs::remove_file(dir.join("interfaces/other.toml")).unwrap();
        assert_eq!(next(&mut watch).await, [Part::Project]);
        for secrets in ["secrets.age", "environments/test.secrets.age"] {
            fs::create_dir_all(dir.join("environments")).unwrap();
            watch.set(places(dir));
            write(dir, secrets, "x");
            assert_eq!(next(&mut watch).await, [Part::Project], "{secrets}");
        }
    }

    #[test]
    fn what_changed_while_nobody_looked_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, "portway.toml", "");
        let mut watch = Watch::new(places(dir));
        write(dir, "portway.toml", "[store]\n");
        watch.set(places(dir));
        assert_eq!(watch.look().into_iter().collect::<Vec<_>>(), [Part::Project]);
        assert_eq!(watch.look(), BTreeSet::new());
    }
}
