//! Copies of the example project with ports of their own, for demo and crash rounds.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::plugins::{self, Which};
use crate::process::{cargo, run};

/// Addresses on loopback that nobody used a moment ago.
pub struct Ports {
    pub mllp: String,
    pub sink: String,
    admin: String,
}

impl Ports {
    /// All are held while they are drawn, so that they differ.
    pub fn free() -> Result<Ports> {
        let bind = || TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (mllp, sink, admin) = (bind()?, bind()?, bind()?);
        let address = |listener: TcpListener| anyhow::Ok(listener.local_addr()?.to_string());
        Ok(Ports { mllp: address(mllp)?, sink: address(sink)?, admin: address(admin)? })
    }
}

/// Which program runs the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Plugins and program are built first.
    ToBeBuilt,
    /// What the tests have just built and run.
    AsTested,
}

impl Binary {
    pub fn path(self, root: &Path) -> Result<PathBuf> {
        if self == Binary::ToBeBuilt {
            plugins::build(root, Which::FirstParty)?;
            run(cargo(root).args(["build", "--quiet", "--package", "portway"]))?;
        }
        let path = target(root).join("debug").join("portway");
        ensure!(path.is_file(), "there is no program {}", path.display());
        Ok(path)
    }
}

/// Where this build's files are.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A fresh copy of `examples/lab-results` under the target folder, with its own ports.
pub fn lab_results(root: &Path, name: &str, ports: &Ports) -> Result<PathBuf> {
    let example = root.join("examples/lab-results");
    let folder = empty(root, name)?;
    fs::create_dir_all(folder.join("interfaces"))?;
    fs::create_dir_all(folder.join("out"))?;
    for file in ["portway.toml", "interfaces/lab.toml"] {
        let text = fs::read_to_string(example.join(file)).with_context(|| file.to_owned())?;
        let text = text
            .replace("127.0.0.1:8620", &ports.admin)
            .replace("127.0.0.1:2575", &ports.mllp)
            .replace("127.0.0.1:8080", &ports.sink);
        fs::write(folder.join(file), text)?;
    }
    Ok(folder)
}

/// A folder below the target folder with nothing in it.
pub fn empty(root: &Path, name: &str) -> Result<PathBuf> {
    let folder = target(root).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
