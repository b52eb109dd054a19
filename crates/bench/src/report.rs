//! Tables for people, JSON lines for programs, and a copy of both kept with the commit and the
//! machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

/// Median, least and greatest of some runs.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// # Panics
    /// Without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1).expect("a spread is of some values");
        Spread { median: values[values.len() / 2], min: values[0], max: values[last] }
    }
}

/// Writes the lines of a benchmark to `bench/results/NAME-COMMIT.jsonl`, the machine and the
/// command first.
///
/// # Errors
/// When the folder cannot be written.
pub fn keep(name: &str, lines: &[Value]) -> Result<PathBuf, String> {
    let folder = PathBuf::from("bench/results");
    let fail = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(fail)?;
    let path = folder.join(format!("{name}-{}.jsonl", commit()));
    let mut text = header(name).to_string() + "\n";
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    fs::write(&path, text).map_err(fail)?;
    Ok(path)
}

/// Writes a picture to `bench/results/NAME-COMMIT.svg`.
///
/// # Errors
/// When the folder cannot be written.
pub fn keep_picture(name: &str, svg: &str) -> Result<PathBuf, String> {
    let folder = PathBuf::from("bench/results");
    let path = folder.join(format!("{name}-{}.svg", commit()));
    let fail = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(&folder).map_err(fail)?;
    fs::write(&path, svg).map_err(fail)?;
    Ok(path)
}

fn header(name: &str) -> Value {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    json!({
        "bench": name,
        "command": format!("cargo run --release -p anabranch-bench -- {}", arguments.join(" ")),
        "commit": commit(),
        "machine": machine(),
        "load_at_start": fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
    })
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=10"]).output();
    let text = output.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores", model.trim_start_matches([' ', '\t', ':']))
}
