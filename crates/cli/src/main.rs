//! The program `anabranch`: see the library of this crate.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(anabranch_cli::run_command_line(std::env::args_os()))
}
