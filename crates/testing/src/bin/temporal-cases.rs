//! Runs cases of the temporal algebra: `temporal-cases PATH..`, files or folders.
//!
//! Prints a line for each case that fails, then `N passed, N failed`. Exit code 1 when one has
//! failed. `WORKERS=n` uses worker threads.

use std::path::PathBuf;
use std::process::ExitCode;

use anabranch_testing::temporal::{read, run};

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        eprintln!("usage: temporal-cases PATH..");
        return ExitCode::from(2);
    }
    let workers = std::env::var("WORKERS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let cases = match read(&paths) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut failed = 0;
    for case in &cases {
        if let Err(message) = run(case, workers) {
            failed += 1;
            println!("{}: {message}", case.id);
        }
    }
    println!("{} passed, {failed} failed", cases.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
