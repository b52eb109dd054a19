//! The server beside PostgreSQL 15: `bench/serve.py`, with the program that was built beside this
//! one.

use std::env;
use std::process::Command;

/// What the script is told.
#[derive(clap::Args)]
pub struct Options {
    /// A Python interpreter.
    #[arg(long, default_value = "python3")]
    python: String,
    /// The script.
    #[arg(long, default_value = "bench/serve.py")]
    script: String,
    /// Options of the script: --seconds, --runs, --rows, --bin; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs the script and hands on what it prints.
pub fn run(options: &Options) -> Result<(), String> {
    let here = env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let program = here.with_file_name("anabranch");
    if !program.exists() {
        return Err(format!("{} is not there: cargo build --release -p anabranch-cli", program.display()));
    }
    let mut script = Command::new(&options.python);
    script.arg(&options.script).arg("--anabranch").arg(program).args(&options.rest);
    let status = script.status().map_err(|error| format!("{}: {error}", options.python))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", options.script)) }
}
