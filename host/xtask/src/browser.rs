//! `cargo xtask browser`: the web page of a real engine in a real browser, gone through by keyboard.
//!
//! What it needs and what is missing it installs: Chromium as a package of Debian, the tools of
//! `TOOLS` into the target folder. What the page must show stands in `host/xtask/browser/page.mjs`,
//! tests of the page's own logic in `host/admin/web-tests`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::demo;
use crate::process::{Kept, run, wait_until};
use crate::project::{self, Binary, Ports};

/// Packages of npm, of the versions that were tried.
const TOOLS: [&str; 2] = ["playwright-core@1.65.1", "axe-core@4"];
/// Time until the engine is ready.
const PATIENCE: Duration = Duration::from_secs(60);
/// Messages that the page finds.
const MESSAGES: &str = "30";

pub fn browser(root: &Path, binary: Binary) -> Result<()> {
    ensure!(
        in_path("node").is_some() && in_path("npm").is_some(),
        "the browser's test needs Node.js and npm"
    );
    run(Command::new("node").arg("--test").args(page_tests(root)?))?;
    let chromium = chromium()?;
    let tools = tools(root)?;
    let portway = binary.path(root)?;
    let ports = Ports::free()?;
    let folder = project::lab_results(root, "browser", &ports)?;
    arrange(&folder)?;
    let pictures = folder.join("pictures");
    fs::create_dir_all(&pictures)?;

    // Without a receiver: the page has to say what is stuck, and why.
    let mut engine = Kept::spawn("the engine", in_folder(&portway, &folder)?.arg("run"))?;
    let is_ready = wait_until(PATIENCE, || {
        engine.still_runs()?;
        Ok(demo::status(&portway, &folder).is_some())
    })?;
    ensure!(is_ready, "the engine was not ready within {PATIENCE:?}");
    run(in_folder(&portway, &folder)?.args([
        "gen",
        "--to",
        &ports.mllp,
        "--count",
        MESSAGES,
        "--keys",
        "10",
    ]))?;
    let control: Value = serde_json::from_slice(&fs::read(folder.join("data/control.json"))?)?;
    let word = |name: &str| control[name].as_str().map(str::to_owned).context("the control file is damaged");
    let mut walk = Command::new("timeout");
    walk.args(["-s", "KILL", "600", "node"]).arg(root.join("host/xtask/browser/page.mjs")).arg(&tools);
    walk.args([format!("http://{}/", word("address")?), word("token")?, ports.mllp.clone()])
        .arg(&pictures)
        .arg(MESSAGES);
    // Its arguments hold the token, which is not shown.
    let ended = walk.env("CHROMIUM", chromium).status().context("cannot start node")?;
    ensure!(ended.success(), "the page is not as it should be; pictures are in {}", pictures.display());
    // The walk has asked it to end already.
    engine.stop(Duration::from_secs(30))
}

/// A destination that stops, since a folder stands where its file would be: the walk removes it and
/// starts the destination again. And another that saves what its sender is given.
fn arrange(folder: &Path) -> Result<()> {
    const COPY: &str = r#"
[[destination]]
name = "copy"
order = "strict"
[destination.sender]
plugin = "file"
settings = { mode = "append", file = "copy" }
grants.folder = { type = "folder", path = "out" }
"#;
    fs::create_dir_all(folder.join("out/copy"))?;
    let file = folder.join("interfaces/lab.toml");
    let text = fs::read_to_string(&file)? + COPY;
    let saving = text.replacen("name = \"archive\"\n", "name = \"archive\"\nsave_output = true\n", 1);
    ensure!(saving != text, "the example has no destination `archive`");
    Ok(fs::write(file, saving)?)
}

/// Tests of the page's own logic, which need no browser.
fn page_tests(root: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root.join("host/admin/web-tests"))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// A command of the binary in the project, its words in a file beside it.
fn in_folder(portway: &Path, folder: &Path) -> Result<Command> {
    let log = fs::File::options().create(true).append(true).open(folder.join("browser.log"))?;
    let mut command = Command::new(portway);
    command.current_dir(folder).stdout(log.try_clone()?).stderr(log);
    Ok(command)
}

/// The browser; installed where that is possible.
fn chromium() -> Result<PathBuf> {
    let find = || ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(in_path);
    if let Some(found) = find() {
        return Ok(found);
    }
    let can_install = in_path("apt-get").is_some() && is_root()?;
    if !can_install {
        bail!("the browser's test needs Chromium: install it, or run this as root where `apt-get` is");
    }
    for arguments in [&["update", "-q"][..], &["install", "-y", "-q", "--no-install-recommends", "chromium"]]
    {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        run(apt.args(arguments))?;
    }
    find().context("`apt-get` installed no Chromium")
}

/// The folder with the tools of npm.
fn tools(root: &Path) -> Result<PathBuf> {
    let folder = project::target(root).join("browser-tools");
    let stamp = folder.join("installed");
    let wanted = TOOLS.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let mut install = Command::new("npm");
    run(install.current_dir(&folder).args(["install", "--no-audit", "--no-fund", "--no-save"]).args(TOOLS))?;
    fs::write(&stamp, wanted)?;
    Ok(folder)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output().context("cannot ask who runs this")?;
    Ok(output.stdout.trim_ascii() == b"0")
}
