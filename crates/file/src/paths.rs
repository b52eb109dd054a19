//! From the option `path` to the files to read, in name order.
//!
//! A folder means the files directly in it (hidden ones left out) that have the wanted format's
//! ending, or any known ending if no format was given. `*`, `?` and `[..]` match within one part of
//! a path; `**` is any number of folders.

use std::{
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use anabranch_engine::{Error, nearest::nearest};

use crate::{
    faults::{invalid, unreadable},
    options::FileFormat,
};

/// At least one file, or the reason why there is none.
pub(crate) fn expand(path: &str, format: Option<FileFormat>) -> Result<Vec<PathBuf>, Error> {
    let plain = Path::new(path);
    if plain.is_dir() {
        return folder(plain, format);
    }
    if plain.exists() {
        return Ok(vec![plain.to_path_buf()]);
    }
    if is_pattern(path) {
        return pattern(path);
    }
    Err(missing(plain))
}

/// The files of a source that is followed, in the order of their names: of a folder those whose
/// ending stands for the format; perhaps none.
pub(crate) fn look(path: &str, format: FileFormat) -> Result<Vec<PathBuf>, Error> {
    let plain = Path::new(path);
    let mut files = if plain.is_dir() {
        let mut files = files_in(plain)?;
        files.retain(|file| FileFormat::of_ending(file) == Some(format));
        files
    } else if plain.exists() {
        vec![plain.to_path_buf()]
    } else if is_pattern(path) {
        matching(path)?
    } else {
        Vec::new()
    };
    files.sort();
    Ok(files)
}

/// Whether the path stands for all files of its form.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Names, lengths and times of last change; `None` when one of them can be read only once, as a
/// pipe.
pub(crate) fn edition(files: &[PathBuf]) -> Result<Option<String>, Error> {
    let mut told = String::new();
    for file in files {
        let metadata = file.metadata().map_err(|e| unreadable(file, e))?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed = changed.map_or(0, |since| since.as_nanos());
        told.push_str(&format!("{} {changed} {}\n", metadata.len(), file.display()));
    }
    Ok(Some(told))
}

fn folder(path: &Path, format: Option<FileFormat>) -> Result<Vec<PathBuf>, Error> {
    let mut files = files_in(path)?;
    let wanted = |file: &PathBuf| match (FileFormat::of_ending(file), format) {
        (Some(found), Some(format)) => found == format,
        (found, None) => found.is_some(),
        (None, Some(_)) => false,
    };
    if files.iter().any(wanted) {
        files.retain(wanted);
    } else if format.is_none() || files.is_empty() {
        return Err(invalid(format!("folder {} holds no csv, json, parquet or tbl file", path.display()))
            .with_hint("Give a pattern such as 'folder/*.txt' and the option \"format\"."));
    }
    if format.is_none() {
        let first = FileFormat::of_ending(&files[0]);
        if let Some(other) = files.iter().find(|file| FileFormat::of_ending(file) != first) {
            return Err(invalid(format!(
                "folder {} holds files of several formats: {} and {}",
                path.display(),
                files[0].display(),
                other.display()
            ))
            .with_hint("Name one with the option \"format\", or give a pattern."));
        }
    }
    Ok(files)
}

/// The files directly in a folder, without hidden ones.
fn files_in(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = names_in(path)?.into_iter().filter(|name| !name.starts_with('.'));
    Ok(shown.map(|name| path.join(name)).filter(|file| file.is_file()).collect())
}

fn pattern(path: &str) -> Result<Vec<PathBuf>, Error> {
    let found = matching(path)?;
    if found.is_empty() {
        return Err(
            invalid(format!("no file matches '{path}'")).with_hint(format!("The current folder is {}.", here()))
        );
    }
    Ok(found)
}

/// The files that a pattern matches, in the order of their names.
fn matching(path: &str) -> Result<Vec<PathBuf>, Error> {
    let absolute = path.starts_with('/');
    let mut found = vec![if absolute { PathBuf::from("/") } else { PathBuf::new() }];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for base in found {
            if part == "**" {
                descend(&base, &mut next)?;
            } else if part.contains(['*', '?', '[']) {
                let names = if shown(&base).is_dir() { names_in(shown(&base))? } else { Vec::new() };
                let hidden = part.starts_with('.');
                next.extend(
                    names
                        .into_iter()
                        .filter(|name| (hidden || !name.starts_with('.')) && matches(part.as_bytes(), name.as_bytes()))
                        .map(|name| base.join(name)),
                );
            } else if base.join(part).exists() {
                next.push(base.join(part));
            }
        }
        found = next;
    }
    found.retain(|file| file.is_file());
    found.sort();
    found.dedup();
    Ok(found)
}

/// `base` and every folder below it.
fn descend(base: &Path, out: &mut Vec<PathBuf>) -> Result<(), Error> {
    out.push(base.to_path_buf());
    for name in names_in(shown(base))? {
        let inner = base.join(&name);
        if !name.starts_with('.') && inner.is_dir() && !inner.is_symlink() {
            descend(&inner, out)?;
        }
    }
    Ok(())
}

/// An empty path is the current folder.
fn shown(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn names_in(path: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| unreadable(path, e))? {
        let entry = entry.map_err(|e| unreadable(path, e))?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Shell patterns over one name: `*`, `?`, `[a-z]`, `[!a-z]`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return name.is_empty() };
    match first {
        b'*' => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        b'?' => !name.is_empty() && matches(rest, &name[1..]),
        b'[' => match (rest.iter().position(|&b| b == b']'), name.split_first()) {
            (Some(end), Some((&byte, others))) if end > 0 => {
                in_class(&rest[..end], byte) && matches(&rest[end + 1..], others)
            }
            _ => false,
        },
        _ => name.first() == Some(&first) && matches(rest, &name[1..]),
    }
}

fn in_class(class: &[u8], byte: u8) -> bool {
    let (negated, class) = match class.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, class),
    };
    let mut inside = false;
    let mut i = 0;
    while i < class.len() {
        if i + 2 < class.len() && class[i + 1] == b'-' {
            inside |= (class[i]..=class[i + 2]).contains(&byte);
            i += 3;
        } else {
            inside |= class[i] == byte;
            i += 1;
        }
    }
    inside != negated
}

/// Names the missing thing and the nearest file beside it.
fn missing(path: &Path) -> Error {
    let error = invalid(format!("file {} does not exist", path.display())).with_sqlstate("58P01");
    let folder = path.parent().map(shown).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return error.with_hint(format!("There is no folder {}; the current folder is {}.", folder.display(), here()));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let names = names_in(folder).unwrap_or_default();
    match nearest(&name, names.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("Did you mean {}?", path.with_file_name(near).display())),
        None => error.with_hint(format!("The current folder is {}.", here())),
    }
}

fn here() -> String {
    std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_else(|_| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_a_shell() {
        for (pattern, name, expected) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("part-?.csv", "part-1.csv", true),
            ("part-[0-3].csv", "part-4.csv", false),
            ("part-[!0-3].csv", "part-4.csv", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
