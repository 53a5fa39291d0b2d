//! Packages of the system that tests need.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::files::{build_folder, run};

/// Whether packages can be installed here.
pub(crate) fn may_install() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/usr/bin/apt-get").exists()
}

/// Installs a package, if it is still not there: tests run side by side, and one of them installs.
pub(crate) fn install(package: &str, is_there: impl Fn() -> Result<bool>) -> Result<()> {
    let lock = File::create(build_folder()?.join("packages.lock"))?;
    lock.lock()?;
    if is_there()? {
        return Ok(());
    }
    // Nothing that comes as a service is started.
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        run(&mut apt).map(drop)
    };
    apt(&["update"])?;
    apt(&["install", "--yes", "--no-install-recommends", package])
}
