//! Running `anabranch` in a scratch folder.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A folder that goes away with its test, and the binary run in it.
pub struct Place(PathBuf);

/// What a run gave.
pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Place {
    pub fn new() -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("anabranch-cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), contents).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(arguments).current_dir(&self.0).env("HOME", &self.0);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    /// Runs with text on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Ran {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Ran {
    /// Asserts success in silence on standard error.
    #[track_caller]
    pub fn good(&self) -> &str {
        assert_eq!((self.err.as_str(), self.code), ("", 0), "{}", self.out);
        &self.out
    }
}
