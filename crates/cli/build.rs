//! Has the linker fold functions that are equal, where it can: a release build is 1.2 MB smaller.
//!
//! The linker that comes with Rust on Linux can, that of binutils cannot. So the linker is asked,
//! with a program of one line.

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const FOLD: &str = "link-arg=-Wl,--icf=all";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_release = variable("PROFILE") == "release" && variable("CARGO_CFG_TARGET_OS") == "linux";
    if is_release && folds(&variable("RUSTC"), &variable("TARGET"), &variable("OUT_DIR")) == Some(true) {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// Whether a program links so; `None` where that cannot be tried.
fn folds(rustc: &str, target: &str, folder: &str) -> Option<bool> {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut command = Command::new(rustc);
    command.args(["-", "--crate-name", "probe", "--target", target, "-C", FOLD, "-o"]);
    command.arg(Path::new(folder).join("probe")).args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.args(["-C", &format!("linker={linker}")]);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    child.stdin.take()?.write_all(b"fn main() {}").ok()?;
    child.wait().ok().map(|status| status.success())
}
