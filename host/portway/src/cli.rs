//! The command line: which commands there are. What each takes stands in its own file.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use portway_config::{Draft, Environment};

use crate::commands::{
    backup, bench, destination, dev, drain, explain, r#gen, gen_docs, init, lane, message, resume, retention,
    run, schema, secrets, sink, state, status, test, try_message, upgrade, validate,
};
use crate::output::Format;

/// Moves messages between systems and never loses one.
#[derive(Debug, Parser)]
#[command(name = "portway", version, about, max_term_width = 100)]
pub struct Cli {
    /// Print data as JSON, one document a line.
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::Args),
    Dev(dev::Args),
    Init(init::Args),
    Validate(validate::Args),
    Test(test::Args),
    Try(try_message::Args),
    Schema(schema::Args),
    Secrets(secrets::Args),
    Status(status::Args),
    Message(message::Args),
    Destination(destination::Args),
    Lane(lane::Args),
    State(state::Args),
    Resume(resume::Args),
    Drain(drain::Args),
    Retention(retention::Args),
    Backup(backup::Args),
    Upgrade(upgrade::Args),
    Explain(explain::Args),
    Gen(r#gen::Args),
    Sink(sink::Args),
    Bench(bench::Args),
    /// Makes native code of the component on standard input; started by the engine.
    #[command(hide = true)]
    CompileComponent,
    #[command(hide = true)]
    GenDocs(gen_docs::Args),
}

/// A destination, as it is named on the command line: `INTERFACE/DESTINATION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub interface: String,
    pub destination: String,
}

impl Slot {
    /// Its path in the API.
    pub fn path(&self) -> String {
        let part = |name: &str| url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>();
        format!("/api/v1/destinations/{}/{}", part(&self.interface), part(&self.destination))
    }
}

impl FromStr for Slot {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Slot, Self::Err> {
        let names = text.split_once('/').filter(|(interface, destination)| {
            !interface.is_empty() && !destination.is_empty() && !destination.contains('/')
        });
        let (interface, destination) = names.ok_or("write `INTERFACE/DESTINATION`")?;
        Ok(Slot { interface: interface.to_owned(), destination: destination.to_owned() })
    }
}

/// Which project, and for which place.
#[derive(Clone, Debug, Args)]
pub struct ProjectArgs {
    /// The project folder.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub project: PathBuf,
    /// Take values for `${env:…}` from `environments/NAME.toml`, too; those of the process win
    #[arg(long, value_name = "NAME")]
    pub env: Option<String>,
    /// The file with the age identity that opens the encrypted secrets, instead of the one that
    /// the environment variable `PORTWAY_IDENTITY` names; it stands outside the project
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

impl ProjectArgs {
    /// The project as far as it can be read.
    pub fn read(&self) -> Draft {
        portway_config::read_in(&self.project, &self.environment(), self.env.as_deref())
    }

    /// The environment of the process, with the identity that was named.
    pub fn environment(&self) -> Environment {
        match &self.identity {
            Some(identity) => Environment::of_process().with_identity(identity),
            None => Environment::of_process(),
        }
    }
}
