//! Eight questions about time, asked of the flights that left New York in 2013 and of the weather
//! there.
//!
//! ```text
//!     cargo run --release -p anabranch-testing --example temporal            all of them
//!     cargo run --release -p anabranch-testing --example temporal -- quiet   those whose name contains "quiet"
//! ```

mod questions;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data"));
    for (name, ask) in questions::ALL.iter().filter(|(name, _)| name.contains(&wanted)) {
        println!("{name}");
        match ask(&data) {
            Ok(lines) => lines.iter().for_each(|line| println!("    {line}")),
            Err(error) => {
                eprintln!("{}", error.render(""));
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
