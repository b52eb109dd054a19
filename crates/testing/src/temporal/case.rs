//! Case files.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A case as it stands in its file.
#[derive(Clone, Debug)]
pub struct Case {
    /// File and name.
    pub id: String,
    /// All of it.
    pub json: Value,
}

/// The cases of files, and of the files of folders, in order of their names.
///
/// # Errors
/// When a path cannot be read or is no case file.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = std::fs::read_to_string(&file).map_err(|error| cannot_read(&file, &error))?;
            let list: Vec<Value> = serde_json::from_str(&text).map_err(|error| cannot_read(&file, &error))?;
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for json in list {
                let id = format!("{stem}/{}", json["id"].as_str().unwrap_or("?"));
                cases.push(Case { id, json });
            }
        }
    }
    Ok(cases)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|error| cannot_read(path, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|error| cannot_read(path, &error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

fn cannot_read(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot read {}: {error}", path.display())
}
