//! One run of `portway dev`: starts what can be started, waits for what changes, and takes it in.

use std::collections::BTreeSet;
use std::path::PathBuf;

use portway_config::{Draft, Problem, Project};
use portway_model::DestinationId;
use tokio::task::JoinSet;

use super::Setting;
use super::ask::{Answer, Lines, OnRemoved};
use super::build::{Builds, Told};
use super::compose::{Composed, HeldBack, Whole, compose, later};
use super::show;
use super::watch::{Part, Places, Watch};
use crate::output::Output;
use crate::wiring::{
    PluginCatalog, Reload, ReloadError, Reloaded, Running, StartOptions, What, certificate_problems,
    settings_problems,
};

/// Who dismisses, for the record.
const AUTHOR: &str = "portway dev";

/// Why it ends.
pub(super) enum Ended {
    Asked,
    Drained,
}

/// See the file.
pub(super) struct Session<'o> {
    setting: Setting,
    output: &'o mut Output,
    /// The project folder.
    dir: PathBuf,
    watch: Watch,
    builds: Builds,
    held: HeldBack,
    lines: Lines,
    /// What is said when destinations that are gone have nothing in hand.
    leaving: JoinSet<String>,
    /// Destinations that are gone while deliveries wait for them.
    left: BTreeSet<(String, String)>,
    had_problems: bool,
}

/// What happens.
enum Happened {
    Changed(BTreeSet<Part>),
    Build(Told, bool),
    Left(String),
    Drained,
}

/// Destinations that are gone, with their interfaces.
#[derive(Default)]
struct Decided {
    dismissed: Vec<(String, String)>,
    /// And how many deliveries wait.
    kept: Vec<(String, String, u64)>,
}

/// What becomes of deliveries that wait for destinations that are gone.
enum Decision {
    Go(Decided),
    /// Something changed meanwhile, or an interface goes on as it was: look again.
    Again,
}

impl<'o> Session<'o> {
    pub fn new(setting: Setting, output: &'o mut Output) -> Session<'o> {
        let dir =
            std::path::absolute(&setting.project.project).unwrap_or_else(|_| setting.project.project.clone());
        let watch = Watch::new(Places::of(&dir, setting.project.read().project()));
        Session {
            builds: Builds::new(&dir),
            dir,
            setting,
            output,
            watch,
            held: HeldBack::new(),
            lines: Lines::default(),
            leaving: JoinSet::new(),
            left: BTreeSet::new(),
            had_problems: false,
        }
    }

    pub fn note(&mut self, text: &str) {
        self.output.note(text);
    }

    /// Until it ends by itself. `running` is what has to be stopped then; none: the project could
    /// not be started yet. May be dropped while it waits.
    pub async fn run(&mut self, running: &mut Option<Running>) -> anyhow::Result<Ended> {
        if let Some(why) = self.watch.polls.take() {
            self.note(&format!(
                "the system does not tell what changes ({why}): files are looked at twice a second"
            ));
        }
        self.build_what_is_missing();
        self.take_in(running).await?;
        loop {
            match self.happens(running).await? {
                Happened::Changed(parts) => {
                    self.build(&parts);
                    if self.is_worth_a_look(&parts) {
                        self.take_in(running).await?;
                    }
                }
                Happened::Build(told, again) => {
                    if self.build_told(told, again) {
                        self.take_in(running).await?;
                    }
                }
                Happened::Left(text) if text.is_empty() => {}
                Happened::Left(text) => self.note(&text),
                Happened::Drained => return Ok(Ended::Drained),
            }
        }
    }

    async fn happens(&mut self, running: &mut Option<Running>) -> anyhow::Result<Happened> {
        let Session { watch, builds, leaving, .. } = self;
        let engine = running.as_ref().map(|running| running.engine.clone());
        let drained = async {
            match &engine {
                Some(engine) => engine.on_drained().await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            match running {
                Some(running) => running.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            parts = watch.next() => Ok(Happened::Changed(parts)),
            (told, again) = builds.next() => Ok(Happened::Build(told, again)),
            Some(left) = leaving.join_next() => Ok(Happened::Left(left.unwrap_or_default())),
            () = drained => Ok(Happened::Drained),
            error = ended => Err(error.into()),
        }
    }

    fn is_worth_a_look(&self, parts: &BTreeSet<Part>) -> bool {
        parts.iter().any(|part| match part {
            Part::Project => true,
            // One that is being built is taken in when that has ended.
            Part::Component(plugin) => !self.builds.is_running(plugin),
            Part::Sources(_) => false,
        })
    }

    /// Builds plugins whose sources changed.
    fn build(&mut self, parts: &BTreeSet<Part>) {
        let draft = self.setting.project.read();
        let plugins = draft.project().into_iter().flat_map(|project| &project.plugins);
        for (name, plugin) in plugins {
            let is_meant = parts.contains(&Part::Sources(name.as_str().to_owned()));
            if let Some(command) = plugin.build.as_ref().filter(|_| is_meant) {
                self.start_build(name.as_str(), &command.value);
            }
        }
    }

    fn build_what_is_missing(&mut self) {
        let draft = self.setting.project.read();
        let plugins = draft.project().into_iter().flat_map(|project| &project.plugins);
        for (name, plugin) in plugins.filter(|(_, plugin)| !plugin.path.value.as_path().exists()) {
            if let Some(command) = &plugin.build {
                self.start_build(name.as_str(), &command.value);
            }
        }
    }

    fn start_build(&mut self, plugin: &str, command: &str) {
        if self.builds.start(plugin, command) {
            self.note(&format!("plugin {plugin}: {command}"));
        }
    }

    /// Says whether there is something new to take in.
    fn build_told(&mut self, told: Told, again: bool) -> bool {
        match told {
            Told::Line { text, .. } => {
                self.note(&text);
                false
            }
            Told::Ended { plugin, is_good, took } => {
                self.note(&show::built(&plugin, is_good, took));
                if again {
                    self.build(&BTreeSet::from([Part::Sources(plugin)]));
                }
                is_good && !again
            }
        }
    }

    /// Reads the project and makes the engine run it, as far as it can be run.
    async fn take_in(&mut self, running: &mut Option<Running>) -> anyhow::Result<()> {
        loop {
            let draft = self.setting.project.read();
            self.watch.set(Places::of(&self.dir, draft.project()));
            let catalog = draft.project().map(PluginCatalog::of).unwrap_or_default();
            match running {
                None => {
                    *running = self.start(draft, &catalog).await?;
                    return Ok(());
                }
                Some(running) => {
                    if self.change(running, draft, &catalog).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// None: it cannot be run yet.
    async fn start(&mut self, mut draft: Draft, catalog: &PluginCatalog) -> anyhow::Result<Option<Running>> {
        draft.check_plugins(catalog);
        if let Some(project) = draft.project().cloned() {
            // What is compiled to be checked is there when it is run.
            super::make_folder(&project.data_dir().join("native-code"))?;
            report(&mut draft, settings_problems(&project, catalog).await);
        }
        report_certificates(&mut draft);
        let composed = match compose(&draft, None, &self.held) {
            Ok(composed) => composed,
            Err(Whole(problems)) => {
                self.had_problems = true;
                self.note(&show::problems(&problems, "nothing runs until they are mended"));
                return Ok(None);
            }
        };
        self.tell_problems(&draft, "their interfaces are left out until they are mended");
        let home = Some(composed.project.data_dir().to_owned());
        let project = composed.project.with_store_in(&self.setting.store);
        let options = StartOptions { home, ..StartOptions::default() };
        let running = Running::start_with(project, catalog, options).await?;
        let mut store = self.setting.store.display().to_string();
        if self.setting.is_temporary {
            store.push_str(", which is removed at the end");
        }
        self.note(&show::start(&running, &store));
        Ok(Some(running))
    }

    /// False: look again.
    async fn change(&mut self, running: &mut Running, draft: Draft, catalog: &PluginCatalog) -> bool {
        let Some((draft, reload)) = self.judge(running, draft, catalog).await else { return true };
        self.tell_problems(&draft, "what runs goes on as it was");
        if let Some(written) = draft.project() {
            let parts = later(&written.clone().with_store_in(&self.setting.store), running.project());
            if !parts.is_empty() {
                self.note(&show::later(&parts));
            }
        }
        if reload.difference.is_empty() {
            return true;
        }
        match self.decide(running, &draft, &reload).await {
            Decision::Again => false,
            Decision::Go(decided) => self.make(running, &draft, (reload, catalog), decided).await,
        }
    }

    /// What of the project is different and well; none: nothing of it can be taken.
    async fn judge(
        &mut self,
        running: &Running,
        mut draft: Draft,
        catalog: &PluginCatalog,
    ) -> Option<(Draft, Reload)> {
        draft.check_plugins(catalog);
        report_certificates(&mut draft);
        let Composed { project, kept } = self.compose(&draft, running)?;
        let reload = running.compare(project.clone(), kept, catalog).await;
        let is_meant =
            |name: &str| reload.difference.0.get(name).is_some_and(|change| change.what != What::Removed);
        let found = running.settings_problems(&project, catalog, is_meant).await;
        if found.is_empty() {
            return Some((draft, reload));
        }
        report(&mut draft, found);
        let Composed { project, kept } = self.compose(&draft, running)?;
        let reload = running.compare(project, kept, catalog).await;
        Some((draft, reload))
    }

    fn compose(&mut self, draft: &Draft, running: &Running) -> Option<Composed> {
        match compose(draft, Some(running.project()), &self.held) {
            Ok(composed) => Some(composed),
            Err(Whole(problems)) => {
                self.had_problems = true;
                self.note(&show::problems(&problems, "everything goes on as it was"));
                None
            }
        }
    }

    async fn decide(&mut self, running: &Running, draft: &Draft, reload: &Reload) -> Decision {
        let mut decided = Decided::default();
        for (interface, destination) in reload.difference.gone() {
            let waiting = running.waiting(&interface, &destination).await.unwrap_or_default();
            if waiting == 0 {
                continue;
            }
            let answer = match self.setting.on_removed {
                OnRemoved::Keep => Some(Answer::Keep),
                OnRemoved::Dismiss => Some(Answer::Dismiss),
                OnRemoved::Ask => self.ask(&interface, &destination, waiting).await,
            };
            match answer {
                None => return Decision::Again,
                Some(Answer::Keep) => decided.kept.push((interface, destination, waiting)),
                Some(Answer::Dismiss) => decided.dismissed.push((interface, destination)),
                Some(Answer::Undo) => {
                    self.hold_back(draft, &interface);
                    self.note(&format!("{interface} goes on as it was, until its file changes again"));
                    return Decision::Again;
                }
            }
        }
        Decision::Go(decided)
    }

    /// None: something changed before there was an answer.
    async fn ask(&mut self, interface: &str, destination: &str, waiting: u64) -> Option<Answer> {
        self.note(&show::question(interface, destination, waiting));
        loop {
            let Session { lines, watch, .. } = self;
            let line = tokio::select! {
                line = lines.next() => line,
                parts = watch.next() => {
                    self.build(&parts);
                    return None;
                }
            };
            let Some(line) = line else {
                self.note("nobody answers: they are kept");
                return Some(Answer::Keep);
            };
            match Answer::of(&line) {
                Some(answer) => return Some(answer),
                None => self.note("write d, k or u"),
            }
        }
    }

    fn hold_back(&mut self, draft: &Draft, interface: &str) {
        let written = draft.project().and_then(|project: &Project| project.interface(interface).cloned());
        self.held.insert(interface.to_owned(), written);
    }

    /// False: look again.
    async fn make(
        &mut self,
        running: &mut Running,
        draft: &Draft,
        (reload, catalog): (Reload, &PluginCatalog),
        Decided { dismissed, kept }: Decided,
    ) -> bool {
        let difference = reload.difference.clone();
        let id = |(interface, name): &(String, String)| running.destination_id(interface, name);
        let ids: Vec<DestinationId> = dismissed.iter().filter_map(id).collect();
        let Reloaded { failed, leaving } = match running.reload(reload, catalog).await {
            Ok(reloaded) => reloaded,
            Err(error) => return self.failed(draft, error),
        };
        self.note(&show::changes(running, &difference));
        for error in failed {
            self.output.error(&error.into(), None, None);
        }
        for (interface, destination, waiting) in kept {
            let deliveries = show::deliveries(waiting, "is", "are");
            self.note(&format!(
                "{interface} → {destination}: {deliveries} kept in the store until it comes back"
            ));
            self.left.insert((interface, destination));
        }
        self.tell_who_is_back(running, &difference).await;
        self.leaving.spawn(async move {
            let names: Vec<_> = dismissed.iter().map(|(one, other)| format!("{one} → {other}")).collect();
            match leaving.finish(&ids, AUTHOR).await {
                Ok(_) if names.is_empty() => String::new(),
                Ok(count) => {
                    format!("{}: {}", names.join(", "), show::deliveries(count, "dismissed", "dismissed"))
                }
                Err(error) => format!("{}: what waits is not dismissed: {error}", names.join(", ")),
            }
        });
        true
    }

    async fn tell_who_is_back(&mut self, running: &Running, difference: &crate::wiring::Difference) {
        for (interface, change) in &difference.0 {
            for destination in &change.added {
                if !self.left.remove(&(interface.clone(), destination.clone())) {
                    continue;
                }
                let waiting = running.waiting(interface, destination).await.unwrap_or_default();
                let deliveries = show::deliveries(waiting, "that waited goes on", "that waited go on");
                self.note(&format!("{interface} → {destination} is back: {deliveries}"));
            }
        }
    }

    /// An interface that cannot be had goes on as it was, and the others are changed.
    fn failed(&mut self, draft: &Draft, error: ReloadError) -> bool {
        let interface = match &error {
            ReloadError::Start(error) => error.interface().map(str::to_owned),
            ReloadError::Act(_) => None,
        };
        let (hint, code) = match &error {
            ReloadError::Start(error) => (error.hint(), Some(error.code())),
            ReloadError::Act(_) => (None, None),
        };
        self.output.error(&error.into(), hint.as_deref(), code);
        match interface {
            Some(interface) if !self.held.contains_key(&interface) => {
                self.note(&format!("{interface} goes on as it was, until its file changes again"));
                self.hold_back(draft, &interface);
                false
            }
            Some(_) | None => {
                self.note("everything goes on as it was");
                true
            }
        }
    }

    fn tell_problems(&mut self, draft: &Draft, what_follows: &str) {
        let problems = draft.problems();
        if !problems.is_empty() {
            self.note(&show::problems(&problems, what_follows));
        } else if self.had_problems {
            self.note("no problems any more");
        }
        self.had_problems = !problems.is_empty();
    }
}

fn report(draft: &mut Draft, problems: Vec<Problem>) {
    problems.into_iter().for_each(|problem| draft.report(problem));
}

fn report_certificates(draft: &mut Draft) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let found = draft.project().map(|project| certificate_problems(project, now.as_secs().cast_signed()));
    report(draft, found.unwrap_or_default());
}
