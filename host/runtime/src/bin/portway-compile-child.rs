//! The compiling child alone, as the tests start it. The engine's own program does the same
//! under a command of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    portway_runtime::compile_child_main()
}
