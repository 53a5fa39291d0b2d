//! A project as a whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portway_model::Retention;

use crate::{
    AdminSettings, InterfaceSettings, LimitSettings, Name, PluginByPath, Problems, ProjectPath,
    StoreSettings, TraceSettings, ports, routes,
};

group! {
    /// The project file.
    ProjectFile at "" in "portway.toml" {
        /// Where messages are kept.
        store: StoreSettings, absent(Defaults);
        /// The local HTTP.
        admin: AdminSettings, absent(Defaults);
        /// Plugins of your own, by name.
        plugins: BTreeMap<Name, PluginByPath> = BTreeMap::new();
        /// Budgets of the whole engine.
        limits: LimitSettings, absent(Defaults);
        /// Traces of messages; without it there are none.
        traces: Option<TraceSettings>;
    }
}

/// What an engine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The project folder.
    pub dir: PathBuf,
    pub store: StoreSettings,
    pub admin: AdminSettings,
    pub plugins: BTreeMap<Name, PluginByPath>,
    pub limits: LimitSettings,
    /// None: there are none.
    pub traces: Option<TraceSettings>,
    /// By name.
    pub interfaces: Vec<InterfaceSettings>,
}

impl Project {
    /// The project file's name.
    pub const FILE: &str = "portway.toml";
    /// The folder of the interfaces.
    pub const INTERFACES: &str = "interfaces";
    /// The folder of the environments.
    pub const ENVIRONMENTS: &str = "environments";
    /// The folder of the test cases.
    pub const TESTS: &str = "tests";
    /// The file of the secrets.
    pub const SECRETS: &str = "secrets.toml";

    pub(crate) fn new(dir: PathBuf, file: ProjectFile, interfaces: Vec<InterfaceSettings>) -> Self {
        let ProjectFile { store, admin, plugins, limits, traces } = file;
        Project { dir, store, admin, plugins, limits, traces, interfaces }
    }

    /// The folder of the store, which is the engine's own.
    pub fn data_dir(&self) -> &Path {
        self.store.path.as_path().parent().unwrap_or(&self.dir)
    }

    /// The same project with its store in another folder.
    #[must_use]
    pub fn with_store_in(mut self, dir: &Path) -> Project {
        let file = self.store.path.as_path().file_name().unwrap_or("portway.db".as_ref()).to_owned();
        self.store.path = ProjectPath::new(dir.join(file));
        self
    }

    /// What is wrong with interfaces that are fine each by itself: their routes, and where they
    /// listen.
    pub fn check_together(&self) -> Problems {
        let names = self.interfaces.iter().map(|interface| interface.name.clone()).collect();
        let known = routes::Known { names, ..routes::Known::default() };
        let mut problems = routes::check(&self.interfaces, &known);
        problems.extend(ports::check(self));
        Problems::new(problems)
    }

    /// How long an interface of this project keeps its messages.
    pub fn retention(&self, interface: &InterfaceSettings) -> Retention {
        Retention {
            tier: interface.retention.unwrap_or(self.store.retention),
            quarantined: interface.quarantined,
        }
    }

    pub fn interface(&self, name: &str) -> Option<&InterfaceSettings> {
        self.interfaces.iter().find(|interface| interface.name.as_str() == name)
    }
}
