//! `portway secrets`: which secrets a project has and needs, and changes of its encrypted file.
//!
//! Values come from stdin and go into the file; no command prints one.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;
use portway_config::{Change, EncryptedFile, Secret, SecretStanding, make_identity};
use serde::Serialize;

use crate::cli::ProjectArgs;
use crate::output::{Exit, Output};

/// Bytes of a value.
const VALUE_BYTES_MAX: u64 = 64 << 10;

/// Shows which secrets a project has, and changes its encrypted file of secrets.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the secrets that are set or needed, and where each is from; never a value.
    List(ListArgs),
    /// Puts a secret into the encrypted file: `secrets.age`, or with `--env NAME`
    /// `environments/NAME.secrets.age`. The value is read from stdin, up to its end; one line end
    /// at the end is left out.
    Set(NameArgs),
    /// Takes a secret out of the encrypted file.
    Remove(NameArgs),
    /// Makes an identity in a new file and prints the recipient it is. Keep the file outside the
    /// project; whoever has it can read what is encrypted for it.
    MakeIdentity(MakeIdentityArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Debug, clap::Args)]
struct NameArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The secret: letters, digits and `_`.
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Debug, clap::Args)]
struct MakeIdentityArgs {
    /// The file; there must be none.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// One secret, for people and programs.
#[derive(Serialize)]
struct Listed {
    name: String,
    /// Where its value is from; the first counts. Empty: it is not set.
    from: Vec<String>,
    /// Something in the project needs it.
    used: bool,
}

#[derive(Serialize)]
struct Done {
    file: String,
    name: String,
    change: &'static str,
}

#[derive(Serialize)]
struct Made {
    file: String,
    recipient: String,
}

pub fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    match args.command {
        Command::List(args) => list(&args.project, output),
        Command::Set(args) => set(&args, output),
        Command::Remove(args) => remove(&args, output),
        Command::MakeIdentity(args) => {
            let recipient = make_identity(&args.file)?;
            let made = Made { file: args.file.display().to_string(), recipient };
            output.data(&made, |made| format!("made {}; its recipient is {}", made.file, made.recipient))?;
            Ok(Exit::Done)
        }
    }
}

fn list(project: &ProjectArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let draft = project.read();
    let listed = |standing: &SecretStanding| Listed {
        name: standing.name.clone(),
        from: standing.from.clone(),
        used: standing.is_used,
    };
    let all: Vec<Listed> = draft.secrets().iter().map(listed).collect();
    output.data(&all, |all| match all.as_slice() {
        [] => "no secret is set or needed".to_owned(),
        all => all.iter().map(show).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(Exit::Done)
}

fn show(listed: &Listed) -> String {
    let Listed { name, from, used } = listed;
    let from = match from.as_slice() {
        [] => "NOT SET".to_owned(),
        [one] => format!("from {one}"),
        [first, others @ ..] => format!("from {first}, also in {}", others.join(", ")),
    };
    format!("{name}: {from}{}", if *used { "" } else { ", not used" })
}

fn set(args: &NameArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let file = encrypted_file(&args.project)?;
    let value = read_value(output)?;
    let change = file.set(&args.name, value, &args.project.environment())?;
    conclude(&file, &args.name, change, output)
}

fn remove(args: &NameArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let file = encrypted_file(&args.project)?;
    let change = file.remove(&args.name, &args.project.environment())?;
    conclude(&file, &args.name, change, output)
}

fn encrypted_file(project: &ProjectArgs) -> anyhow::Result<EncryptedFile> {
    if let Some(place) = &project.env
        && portway_config::Name::new(place).is_none()
    {
        bail!("`{place}` is not the name of an environment");
    }
    let marker = project.project.join(portway_config::Project::FILE);
    if !marker.is_file() {
        bail!(
            "there is no project in `{}`: it has no `{}`",
            project.project.display(),
            portway_config::Project::FILE
        );
    }
    Ok(EncryptedFile::of(&project.project, project.env.as_deref()))
}

fn conclude(file: &EncryptedFile, name: &str, change: Change, output: &mut Output) -> anyhow::Result<Exit> {
    let (change, exit) = match change {
        Change::Added => ("added", Exit::Done),
        Change::Replaced => ("replaced", Exit::Done),
        Change::Removed => ("removed", Exit::Done),
        Change::None => ("not there", Exit::Failed),
    };
    let done = Done { file: file.shown().to_owned(), name: name.to_owned(), change };
    output.data(&done, |done| format!("{}: {} {}", done.file, done.name, done.change))?;
    Ok(exit)
}

fn read_value(output: &mut Output) -> anyhow::Result<Secret> {
    let mut stdin = std::io::stdin().lock();
    let echo = if stdin.is_terminal() {
        output.note("type the value, then Enter and Ctrl-D; it is not shown");
        Some(EchoOff::new())
    } else {
        None
    };
    // Large enough from the start: a buffer that grows leaves copies behind.
    let mut text = String::with_capacity(VALUE_BYTES_MAX as usize + 1);
    let read = (&mut stdin).take(VALUE_BYTES_MAX + 1).read_to_string(&mut text);
    drop(echo);
    let all = Secret::new(text);
    read.context("the value cannot be read: it has to be text in UTF-8")?;
    let value = all.reveal();
    if value.len() as u64 > VALUE_BYTES_MAX {
        bail!("the value is longer than {VALUE_BYTES_MAX} bytes");
    }
    let value = value.strip_suffix('\n').map_or(value, |line| line.strip_suffix('\r').unwrap_or(line));
    if value.is_empty() {
        bail!("there is no value on stdin");
    }
    Ok(Secret::new(value))
}

/// A terminal that does not show what is typed, until this is dropped.
struct EchoOff(Option<rustix::termios::Termios>);

impl EchoOff {
    fn new() -> EchoOff {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(&stdin, OptionalActions::Now, &quiet);
        }
        EchoOff(before)
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            use rustix::termios::{OptionalActions, tcsetattr};
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
