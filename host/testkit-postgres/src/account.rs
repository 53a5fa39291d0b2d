//! As whom a server runs: it refuses to be root.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

/// Accounts that exist nearly everywhere and own nothing.
const PREFERRED: [&str; 2] = ["postgres", "nobody"];

/// The account servers run as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// Another one than ours; none: we are not root.
    other: Option<(u32, u32)>,
}

impl Account {
    pub(crate) fn choose() -> Result<Account> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Account { other: None });
        }
        let accounts =
            fs::read_to_string("/etc/passwd").context("cannot read the accounts of this machine")?;
        let ids_of = |name: &str| {
            let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut ids = line.split(':').skip(2).map(str::parse::<u32>);
            Some((ids.next()?.ok()?, ids.next()?.ok()?))
        };
        let other = PREFERRED.iter().find_map(|name| ids_of(name));
        let other = other.context("a server cannot run as root, and there is no other account")?;
        Ok(Account { other: Some(other) })
    }

    /// A command that runs as this account.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/");
        if let Some((user, group)) = self.other {
            command.uid(user).gid(group);
        }
        command
    }

    /// Makes a file or folder, and what is in it, the account's.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        let Some((user, group)) = self.other else { return Ok(()) };
        std::os::unix::fs::lchown(path, Some(user), Some(group))
            .with_context(|| format!("cannot give `{}` away", path.display()))?;
        if path.is_dir() && !path.is_symlink() {
            for entry in fs::read_dir(path)? {
                self.give(&entry?.path())?;
            }
        }
        Ok(())
    }
}
