//! Builds of plugins: the command of `plugins.NAME` in a shell, what it says line by line, and how
//! it ended. At most one of each plugin runs; what changes meanwhile is built afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// Lines of a build that are shown; what says more has gone wrong more often than it can say.
const LINES_MAX: usize = 2_000;
/// Characters of a line that are shown.
const LINE_MAX: usize = 2_000;
/// Lines that wait to be shown; then the build waits.
const WAITING_MAX: usize = 256;

/// What a build tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Line { plugin: String, text: String },
    Ended { plugin: String, is_good: bool, took: Duration },
}

/// See the file.
pub(super) struct Builds {
    dir: PathBuf,
    tell: mpsc::Sender<Told>,
    told: mpsc::Receiver<Told>,
    /// Process groups, by plugin.
    running: BTreeMap<String, Option<Pid>>,
    /// What changed while it was built.
    again: BTreeSet<String>,
}

impl Builds {
    /// Commands run in this folder.
    pub fn new(dir: &Path) -> Builds {
        let (tell, told) = mpsc::channel(WAITING_MAX);
        Builds { dir: dir.to_owned(), tell, told, running: BTreeMap::new(), again: BTreeSet::new() }
    }

    /// Builds a plugin, or once more when the build that runs has ended. Says whether it began.
    pub fn start(&mut self, plugin: &str, command: &str) -> bool {
        if self.running.contains_key(plugin) {
            self.again.insert(plugin.to_owned());
            return false;
        }
        let began = Instant::now();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(&self.dir).kill_on_drop(true).process_group(0);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (plugin, tell) = (plugin.to_owned(), self.tell.clone());
        match shell.spawn() {
            Ok(child) => {
                let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
                self.running.insert(plugin.clone(), id);
                tokio::spawn(follow(child, plugin, tell, began));
            }
            Err(error) => {
                self.running.insert(plugin.clone(), None);
                tokio::spawn(async move {
                    let text = format!("the shell cannot be started: {error}");
                    let _ = tell.send(Told::Line { plugin: plugin.clone(), text }).await;
                    let _ = tell.send(Told::Ended { plugin, is_good: false, took: Duration::ZERO }).await;
                });
            }
        }
        true
    }

    /// A build of this plugin runs.
    pub fn is_running(&self, plugin: &str) -> bool {
        self.running.contains_key(plugin)
    }

    /// What a build tells next. Of one that ended it is said whether it has to run again.
    pub async fn next(&mut self) -> (Told, bool) {
        let Some(told) = self.told.recv().await else { return std::future::pending().await };
        let again = match &told {
            Told::Ended { plugin, .. } => {
                self.running.remove(plugin);
                self.again.remove(plugin)
            }
            Told::Line { .. } => false,
        };
        (told, again)
    }
}

impl Drop for Builds {
    fn drop(&mut self) {
        for group in self.running.values().flatten() {
            // It may have ended already.
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}

async fn follow(mut child: Child, plugin: String, tell: mpsc::Sender<Told>, began: Instant) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    tokio::join!(pass_on(stdout, &plugin, &tell), pass_on(stderr, &plugin, &tell));
    let is_good = child.wait().await.is_ok_and(|status| status.success());
    // Nobody listens any more when everything ends.
    let _ = tell.send(Told::Ended { plugin, is_good, took: began.elapsed() }).await;
}

/// Line by line, as far as it is shown.
async fn pass_on(from: Option<impl AsyncRead + Unpin>, plugin: &str, tell: &mpsc::Sender<Told>) {
    let Some(from) = from else { return };
    let mut from = BufReader::new(from);
    let (mut bytes, mut count) = (Vec::new(), 0);
    while read_line(&mut from, &mut bytes).await {
        count += 1;
        let text = match count {
            0..=LINES_MAX => String::from_utf8_lossy(&bytes).trim_end().to_owned(),
            count if count == LINES_MAX + 1 => "… more is not shown".to_owned(),
            _ => continue,
        };
        let _ = tell.send(Told::Line { plugin: plugin.to_owned(), text }).await;
    }
}

/// The next line, cut. False: there is none.
async fn read_line(from: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> bool {
    line.clear();
    loop {
        let Ok(part) = from.fill_buf().await else { return !line.is_empty() };
        if part.is_empty() {
            return !line.is_empty();
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(part.len(), |end| end + 1);
        let room = LINE_MAX.saturating_sub(line.len());
        line.extend(part.iter().take(taken.min(room)));
        from.consume(taken);
        if end.is_some() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(builds: &mut Builds) -> (Vec<String>, bool, bool) {
        let mut lines = Vec::new();
        loop {
            match builds.next().await {
                (Told::Line { text, .. }, _) => lines.push(text),
                (Told::Ended { is_good, .. }, again) => return (lines, is_good, again),
            }
        }
    }

    #[tokio::test]
    async fn what_a_build_says_is_told_with_how_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut builds = Builds::new(dir.path());
        assert!(builds.start("own", "echo one; echo two >&2; exit 3"));
        let (mut lines, is_good, again) = all(&mut builds).await;
        lines.sort();
        assert_eq!((lines, is_good, again), (vec!["one".to_owned(), "two".to_owned()], false, false));
        assert!(builds.start("own", "touch made"));
        assert_eq!(all(&mut builds).await, (vec![], true, false));
        assert!(dir.path().join("made").exists());
    }

    #[tokio::test]
    async fn what_changes_during_a_build_is_built_afterwards_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut builds = Builds::new(dir.path());
        assert!(builds.start("own", "true"));
        assert!(!builds.start("own", "true") && !builds.start("own", "true"));
        assert_eq!(all(&mut builds).await, (vec![], true, true));
        assert!(builds.start("own", "true"));
        assert_eq!(all(&mut builds).await, (vec![], true, false));
    }

    #[tokio::test]
    async fn a_build_that_says_too_much_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut builds = Builds::new(dir.path());
        builds.start("own", "yes | head -n 5000; head -c 100000 /dev/zero | tr '\\0' x");
        let (lines, is_good, _) = all(&mut builds).await;
        assert_eq!((lines.len(), is_good), (LINES_MAX + 1, true));
        builds.start("own", "head -c 100000 /dev/zero | tr '\\0' x");
        assert_eq!(all(&mut builds).await.0[0].len(), LINE_MAX);
    }
}
