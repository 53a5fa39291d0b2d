//! `cargo xtask smtp`: the SMTP sender of a real engine against a mail server that is not ours.
//!
//! The server is aiosmtpd, installed from PyPI into the target folder; what it stored is read back
//! by Python's own parser of mail (`host/xtask/smtp/server.py`) and compared here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::demo::status;
use crate::process::{Kept, run, wait_until};
use crate::project::{self, Binary, Ports};

/// Packages of PyPI, of the versions that were tried.
const TOOLS: [&str; 1] = ["aiosmtpd==1.4.6"];
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a line that every server takes, without its end.
const LINE_BYTES_MAX: u64 = 998;

/// A file that becomes a mail, by name.
type Sent = (&'static str, Vec<u8>);

pub fn smtp(root: &Path, binary: Binary) -> Result<()> {
    let python = tools(root)?;
    let portway = binary.path(root)?;
    let (folder, server_port) = make_project(root)?;
    let (texts, files) = (texts(), files());
    let mut server = Command::new(python);
    server.arg(root.join("host/xtask/smtp/server.py")).arg(port_of(&server_port)?);
    server.args(["tls/cert.pem", "tls/key.pem", "mails"]).current_dir(&folder).stdin(Stdio::piped());
    let mut server = Kept::spawn("the mail server", server.stdout(Stdio::null()))?;
    let log = fs::File::create(folder.join("smtp.log"))?;
    let mut engine = Command::new(&portway);
    engine.current_dir(&folder).arg("run").stdout(log.try_clone()?).stderr(log);
    let mut engine = Kept::spawn("the engine", &mut engine)?;
    for (inbox, sent) in [("in-text", &texts), ("in-file", &files)] {
        sent.iter().try_for_each(|(name, bytes)| put(&folder.join(inbox), name, bytes))?;
    }
    put(&folder.join("in-wrong"), "wrong", b"nobody may read this")?;
    let wanted = texts.len() + files.len();
    let arrived = wait_until(PATIENCE, || {
        server.still_runs()?;
        engine.still_runs()?;
        Ok(mails(&folder)?.len() >= wanted && is_stopped(&portway, &folder))
    })?;
    ensure!(arrived, "not all mails arrived: {:#?}", status(&portway, &folder));
    engine.stop(Duration::from_secs(30))?;
    let mails = mails(&folder)?;
    ensure!(mails.len() == wanted, "{} mails arrived, {wanted} were sent", mails.len());
    mails.iter().try_for_each(envelope)?;
    texts.iter().try_for_each(|sent| text(find(&mails, sent.0)?, sent))?;
    files.iter().try_for_each(|sent| file(find(&mails, sent.0)?, sent))?;
    println!("smtp: {wanted} mails over STARTTLS with a login, each read back byte for byte");
    Ok(())
}

/// Texts whose lines a client could break: dots, long ones, none at all, other alphabets.
fn texts() -> Vec<Sent> {
    let long = format!("{}\n.{}\n", "x".repeat(5_000), ".".repeat(3_000));
    let dots = ".\n..\n.hidden\n\n.\r\n.\nQUIT\n";
    let words = "Größe: 5 µm – ✓ = 100 %\n trailing blank \n\ttab=3D\n";
    [("dots.txt", dots), ("long.txt", long.as_str()), ("words.txt", words), ("no-end.txt", "one line")]
        .map(|(name, text)| (name, text.as_bytes().to_vec()))
        .to_vec()
}

/// Files that hold what mail gives a meaning to.
fn files() -> Vec<Sent> {
    let all: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
    let ends = b"\r\n.\r\n..\r\nFrom me\n\rbare\r\r\n\0".repeat(300);
    vec![("all.bin", all), ("ends.bin", ends), ("one.bin", vec![b'.'])]
}

/// Whole when it is there.
fn put(inbox: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let hidden = inbox.join(format!(".{name}"));
    fs::write(&hidden, bytes)?;
    Ok(fs::rename(hidden, inbox.join(name))?)
}

/// What every mail has, whatever is in it.
fn envelope(mail: &Value) -> Result<()> {
    let shown = || format!("{mail:#}").chars().take(3_000).collect::<String>();
    let header = |name: &str| mail["headers"][name].as_str().unwrap_or_default();
    ensure!(mail["tls"] == true && mail["login"] == "lab", "not over TLS, or by nobody: {}", shown());
    ensure!(mail["from"] == "lab@hospital.example", "another sender: {}", shown());
    let to = serde_json::json!(["ward3@hospital.example", "hidden@hospital.example"]);
    ensure!(mail["to"] == to, "other recipients: {}", shown());
    ensure!(header("from") == "Zentrallabor Köln <lab@hospital.example>", "{}", shown());
    ensure!(header("to") == "ward3@hospital.example" && header("bcc").is_empty(), "{}", shown());
    ensure!(header("x-feed") == "lab" && header("auto-submitted") == "auto-generated", "{}", shown());
    ensure!(header("message-id").ends_with('>') && !header("date").is_empty(), "{}", shown());
    ensure!(header("mime-version") == "1.0", "{}", shown());
    ensure!(mail["defects"] == serde_json::json!([]), "the parser finds defects: {}", shown());
    ensure!(mail["longest_line"].as_u64() <= Some(LINE_BYTES_MAX), "a line is too long: {}", shown());
    ensure!(mail["ascii"] == true && mail["bare"] == 0, "not seven bits, or a bare CR or LF: {}", shown());
    Ok(())
}

/// Lines of a text end as the reader's system has it.
fn text(mail: &Value, (name, bytes): &Sent) -> Result<()> {
    let plain = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_owned();
    let found = plain(mail["text"].as_str().context("a mail without a text")?);
    let sent = plain(std::str::from_utf8(bytes)?);
    ensure!(found == sent, "the text of `{name}` is another: {found:?}");
    Ok(())
}

fn file(mail: &Value, (name, bytes): &Sent) -> Result<()> {
    let [attachment] = mail["attachments"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        anyhow::bail!("`{name}` has not one attachment");
    };
    ensure!(attachment["name"] == *name && attachment["type"] == "application/x-lab", "{attachment}");
    let found = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        attachment["base64"].as_str().unwrap_or_default(),
    )?;
    ensure!(found == *bytes, "`{name}` has other bytes: {} of {}", found.len(), bytes.len());
    ensure!(
        mail["text"].as_str().is_some_and(|text| text.trim_end() == "Anbei: Ergebnis"),
        "{}",
        mail["text"]
    );
    Ok(())
}

fn find<'m>(mails: &'m [Value], name: &str) -> Result<&'m Value> {
    let subject =
        format!("Ergebnis {name} für Station 3 – eine Betreffzeile, die länger ist als eine Zeile sein darf");
    let found = mails.iter().find(|mail| mail["headers"]["subject"] == *subject);
    found.with_context(|| {
        let subjects: Vec<_> = mails.iter().map(|mail| &mail["headers"]["subject"]).collect();
        format!("no mail is about `{name}`: {subjects:?}")
    })
}

/// What the server has taken so far.
fn mails(folder: &Path) -> Result<Vec<Value>> {
    let mut mails = Vec::new();
    for entry in fs::read_dir(folder.join("mails"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            mails.push(serde_json::from_slice(&fs::read(path)?)?);
        }
    }
    Ok(mails)
}

/// The destination with the wrong password is.
fn is_stopped(portway: &Path, folder: &Path) -> bool {
    let Some(status) = status(portway, folder) else { return false };
    let interfaces = status["interfaces"].as_array().cloned().unwrap_or_default();
    let wrong = interfaces.iter().find(|interface| interface["name"] == "wrong");
    let destination = wrong.map(|wrong| wrong["destinations"][0].clone()).unwrap_or_default();
    destination["state"] == "stopped" && destination["why"]["code"] == "login-refused"
}

/// A fresh project, and where its mails go.
fn make_project(root: &Path) -> Result<(PathBuf, String)> {
    let ports = Ports::free()?;
    let folder = project::lab_results(root, "smtp", &ports)?;
    fs::remove_file(folder.join("interfaces/lab.toml"))?;
    for name in ["in-text", "in-file", "in-wrong", "mails", "tls"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-days", "60", "-subj", "/CN=mail", "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.args(["-keyout", "tls/key.pem", "-out", "tls/cert.pem"]).current_dir(&folder);
    run(openssl.stderr(Stdio::null()))?;
    let port = port_of(&ports.sink)?;
    let file = "text = \"Anbei: Ergebnis\"\nattachment = { name = \"{attribute:file.name}\", content_type = \"application/x-lab\" }";
    for (name, more, password) in [("text", "", "s3cret"), ("file", file, "s3cret"), ("wrong", "", "wrong")] {
        let text = interface(name, more, password, port);
        fs::write(folder.join(format!("interfaces/{name}.toml")), text)?;
    }
    Ok((folder, ports.sink))
}

fn interface(name: &str, more: &str, password: &str, port: &str) -> String {
    format!(
        r#"[source]
plugin = "file"
settings = {{ settle = "0ms", interval = "100ms", after = "delete" }}
grants.inbox = {{ type = "folder", path = "in-{name}", access = "write" }}

[[destination]]
name = "mail"
[destination.sender]
plugin = "smtp"
[destination.sender.settings]
from = "Zentrallabor Köln <lab@hospital.example>"
to = ["ward3@hospital.example"]
bcc = ["hidden@hospital.example"]
subject = "Ergebnis {{attribute:file.name}} für Station 3 – eine Betreffzeile, die länger ist als eine Zeile sein darf"
headers = {{ "X-Feed" = "lab" }}
{more}
[destination.sender.grants.server]
type = "tcp"
host = "127.0.0.1"
port = {port}
tls = {{ starttls = "required", roots = "tls/cert.pem" }}
credentials = {{ type = "basic", user = "lab", password = "{password}" }}
"#
    )
}

fn port_of(address: &str) -> Result<&str> {
    Ok(address.rsplit_once(':').context("an address without a port")?.1)
}

/// The Python with the server.
fn tools(root: &Path) -> Result<PathBuf> {
    let folder = project::target(root).join("smtp-tools");
    let (stamp, python) = (folder.join("installed"), folder.join("bin/python"));
    let wanted = TOOLS.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && python.is_file() {
        return Ok(python);
    }
    let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    made.context("the test of mail needs Python 3 with `venv`")?;
    let mut install = Command::new(&python);
    run(install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(TOOLS))?;
    fs::write(&stamp, wanted)?;
    Ok(python)
}
