//! The commands, one a file. Each takes its arguments and an [`Output`], and says how it ended.

pub mod backup;
pub mod bench;
pub mod destination;
pub mod dev;
pub mod drain;
pub mod explain;
pub mod r#gen;
pub mod gen_docs;
pub mod init;
pub mod lane;
pub mod message;
mod open;
pub mod resume;
pub mod retention;
pub mod run;
pub mod schema;
pub mod secrets;
mod show;
pub mod sink;
pub mod state;
pub mod status;
pub mod test;
pub mod try_message;
pub mod upgrade;
pub mod validate;

use std::io;

use portway_config::{Draft, EncryptedError};
use portway_store_postgres::OpenError;

use crate::cli::Command;
use crate::client::ClientError;
use crate::output::{Exit, Output};
use crate::traffic::{GenerateError, ReceiveError};
use crate::wiring::catalog::FindError;
use crate::wiring::{AssembleError, StartError, store};

/// Runs a command that needs no engine of its own. `judge` adds to a project's problems what
/// only its plugins know.
pub async fn dispatch(command: Command, output: &mut Output, judge: impl AsyncFnOnce(&mut Draft)) -> Exit {
    let ended = match command {
        Command::Run(args) => run::run(args, output).await,
        Command::Dev(args) => dev::run(args, output).await,
        Command::Bench(args) => bench::run(args, output).await,
        // Handled before anything is started.
        Command::CompileComponent => Ok(Exit::Usage),
        Command::Init(args) => init::run(args, output),
        Command::Test(args) => test::run(args, output).await,
        Command::Try(args) => try_message::run(args, output).await,
        Command::Validate(args) => validate::run(args, output, judge).await,
        Command::Schema(args) => schema::run(args, output),
        Command::Secrets(args) => secrets::run(args, output),
        Command::Status(args) => status::run(args, output).await,
        Command::Message(args) => message::run(args, output).await,
        Command::Destination(args) => destination::run(args, output).await,
        Command::State(args) => state::run(args, output).await,
        Command::Resume(args) => resume::run(args, output).await,
        Command::Lane(args) => lane::run(args, output).await,
        Command::Drain(args) => drain::run(args, output).await,
        Command::Retention(args) => retention::run(args, output).await,
        Command::Backup(args) => backup::run(args, output).await,
        Command::Upgrade(args) => upgrade::run(args, output).await,
        Command::Gen(args) => r#gen::run(args, output).await,
        Command::Sink(args) => sink::run(args, output).await,
        Command::Explain(args) => explain::run(args, output),
        Command::GenDocs(args) => gen_docs::run(args, output),
    };
    conclude(ended, output)
}

/// Prints what went wrong and chooses the exit code.
pub fn conclude(ended: anyhow::Result<Exit>, output: &mut Output) -> Exit {
    let error = match ended {
        Ok(exit) => return exit,
        Err(error) => error,
    };
    // Whoever read our output has read enough.
    let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(closed) {
        return Exit::Done;
    }
    match error.downcast_ref::<ClientError>() {
        Some(refused) => {
            output.error(&error, refused.hint(), refused.code());
            refused.exit()
        }
        None => {
            let (hint, code) = explain(&error);
            output.error(&error, hint.as_deref(), code);
            let is_owned = matches!(error.downcast_ref(), Some(StartError::Owned(_)));
            if is_owned { Exit::Problems } else { Exit::Failed }
        }
    }
}

/// What to do about an error, and its code, where they are known.
fn explain(error: &anyhow::Error) -> (Option<String>, Option<&'static str>) {
    if let Some(error) = error.downcast_ref::<StartError>() {
        return (error.hint(), Some(error.code()));
    }
    if let Some(error) = error.downcast_ref::<OpenError>() {
        return (Some(error.hint().to_owned()), Some(error.code()));
    }
    if let Some(error) = error.downcast_ref::<AssembleError>() {
        return (error.hint(), Some(error.code()));
    }
    if let Some(error) = error.downcast_ref::<store::OpenError>() {
        return (Some(error.hint().to_owned()), Some(error.code()));
    }
    if let Some(error) = error.downcast_ref::<EncryptedError>() {
        return (error.hint().map(str::to_owned), Some(error.code()));
    }
    if let Some(error) = error.downcast_ref::<ReceiveError>() {
        return (None, Some(error.code()));
    }
    if let Some(error) = error.downcast_ref::<GenerateError>() {
        return (None, Some(error.code()));
    }
    match error.downcast_ref::<FindError>() {
        Some(error) => (error.hint(), Some(error.code())),
        None => (None, None),
    }
}

/// Ready when the process is asked to end: Ctrl-C or SIGTERM.
pub async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Who gives the order, for the record.
fn author() -> String {
    let environment = portway_config::Environment::of_process();
    let name = environment.get("USER").unwrap_or("operator");
    name.chars().filter(|character| !character.is_control()).take(64).collect()
}
