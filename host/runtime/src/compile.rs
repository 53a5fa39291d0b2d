//! Compiling a component, in a child process with limits or in this one.
//!
//! The child reads a component from its standard input and writes native code, with its hash
//! before it, to its standard output. It has limits on processor time and memory of its own,
//! and the parent ends it after a wall time.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use portway_model::code;
use rustix::process::{Resource, Rlimit, setrlimit};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use wasmtime::Engine;

use crate::cache::NATIVE_BYTES_MAX;
use crate::engine::new_engine;
use crate::fault_text::{Lines, cut, escape};
use crate::settings::{COMPONENT_BYTES_MAX, CompileMode};

/// Begins the child's answer.
const ANSWER: &[u8; 16] = b"portway-compiled";
const WALL_TIME: Duration = Duration::from_secs(180);
const CPU_SECONDS: u64 = 240;
const ADDRESS_BYTES: u64 = 8 << 30;
/// Of what the child says on its standard error.
const WORDS_BYTES_MAX: u64 = 4096;

/// Why there is no native code.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("{0}")]
    Invalid(String),
    #[error("the compiler process cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("the compiler did not end within {} s", WALL_TIME.as_secs())]
    TimedOut,
    #[error("the compiler process ended without an answer: {0}")]
    Died(String),
}

impl CompileError {
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            CompileError::Invalid(_) => code::PLUGIN_DOES_NOT_COMPILE,
            CompileError::Start(_) => code::COMPILER_NOT_STARTED,
            CompileError::TimedOut | CompileError::Died(_) => code::COMPILER_GAVE_UP,
        }
    }

    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            CompileError::Invalid(_) => {
                "build the plugin again with a current compiler and without experimental features"
            }
            CompileError::Start(_) => "check that the engine's own program file can be read and run",
            CompileError::TimedOut | CompileError::Died(_) => {
                "make the component smaller; its compilation takes too much time or memory"
            }
        }
    }
}

/// The way components are compiled.
pub(crate) enum Compiler {
    InProcess,
    Child { program: PathBuf, args: Vec<String> },
}

impl Compiler {
    pub fn new(mode: CompileMode) -> Compiler {
        match mode {
            CompileMode::InProcess => Compiler::InProcess,
            CompileMode::Child { program, args } => Compiler::Child { program, args },
        }
    }

    /// Native code of a component.
    pub async fn compile(&self, engine: &Engine, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        match self {
            Compiler::InProcess => {
                let (engine, component) = (engine.clone(), component.to_vec());
                let compiled =
                    tokio::task::spawn_blocking(move || engine.precompile_component(&component)).await;
                let compiled = compiled.map_err(|error| CompileError::Died(error.to_string()))?;
                compiled.map_err(|error| CompileError::Invalid(format!("{error:#}")))
            }
            Compiler::Child { program, args } => {
                let answer = tokio::time::timeout(WALL_TIME, in_child(program, args, component)).await;
                // Dropped at the end of its time, the child is killed.
                answer.map_err(|_| CompileError::TimedOut)?
            }
        }
    }
}

async fn in_child(program: &Path, args: &[String], component: &[u8]) -> Result<Vec<u8>, CompileError> {
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(CompileError::Start)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(CompileError::Died("it has no pipes".into()));
    };
    let (mut answer, mut words) = (Vec::new(), Vec::new());
    let feed = async {
        // A child that dies early does not read it all; what it says counts.
        let _ = stdin.write_all(component).await;
        drop(stdin);
    };
    let mut stdout = stdout.take((NATIVE_BYTES_MAX + 4096) as u64);
    let mut stderr = stderr.take(WORDS_BYTES_MAX);
    let hear = async {
        let heard = stderr.read_to_end(&mut words).await;
        // The rest is drained, so that the child does not wait for us to read it.
        let _ = tokio::io::copy(stderr.get_mut(), &mut tokio::io::sink()).await;
        heard
    };
    let (_, read, _) = tokio::join!(feed, stdout.read_to_end(&mut answer), hear);
    read.map_err(|error| CompileError::Died(error.to_string()))?;
    let status = child.wait().await.map_err(|error| CompileError::Died(error.to_string()))?;
    let words = escape(cut(String::from_utf8_lossy(&words).trim(), 1024), Lines::Many);
    match status.code() {
        Some(0) => unwrap_answer(answer),
        Some(REFUSED) => Err(CompileError::Invalid(words)),
        _ => Err(CompileError::Died(format!("{status}; {words}"))),
    }
}

fn unwrap_answer(mut answer: Vec<u8>) -> Result<Vec<u8>, CompileError> {
    let damaged = || CompileError::Died("its answer is damaged".into());
    let (head, native) = answer.split_at_checked(ANSWER.len() + 32).ok_or_else(damaged)?;
    let (magic, hash) = head.split_at_checked(ANSWER.len()).ok_or_else(damaged)?;
    if magic != ANSWER || Sha256::digest(native).as_slice() != hash {
        return Err(damaged());
    }
    let head = head.len();
    answer.drain(..head);
    Ok(answer)
}

/// The child's exit code for a component that is not valid.
const REFUSED: i32 = 3;

/// The whole program of the compiling child: standard input to standard output, bounded.
pub fn compile_child_main() -> ExitCode {
    match compile_child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(ChildError::Refused(error)) => {
            eprintln!("{error}");
            ExitCode::from(REFUSED as u8)
        }
        Err(ChildError::Io(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

enum ChildError {
    Refused(String),
    Io(io::Error),
}

fn compile_child() -> Result<(), ChildError> {
    limit_itself().map_err(ChildError::Io)?;
    let mut component = Vec::new();
    let mut input = io::stdin().lock().take(COMPONENT_BYTES_MAX as u64 + 1);
    input.read_to_end(&mut component).map_err(ChildError::Io)?;
    if component.len() > COMPONENT_BYTES_MAX {
        return Err(ChildError::Refused("the component is too large".into()));
    }
    let engine = new_engine().map_err(|error| ChildError::Io(io::Error::other(format!("{error:#}"))))?;
    let native =
        engine.precompile_component(&component).map_err(|error| ChildError::Refused(format!("{error:#}")))?;
    let mut output = io::stdout().lock();
    let written = output
        .write_all(ANSWER)
        .and_then(|()| output.write_all(&Sha256::digest(&native)))
        .and_then(|()| output.write_all(&native))
        .and_then(|()| output.flush());
    written.map_err(ChildError::Io)
}

/// What a component can make the compiler do ends with this process.
fn limit_itself() -> io::Result<()> {
    let at_most = |value| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Cpu, at_most(CPU_SECONDS))?;
    setrlimit(Resource::As, at_most(ADDRESS_BYTES))?;
    setrlimit(Resource::Core, at_most(0))?;
    setrlimit(Resource::Fsize, at_most(0))?;
    // Less urgent than the engine that waits for it; not being allowed to is no harm.
    let _ = rustix::process::nice(5);
    Ok(())
}
