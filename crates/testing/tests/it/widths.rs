//! Prose ends by column 100: comments of sources, and Markdown.
//!
//! Code within prose, tables and diagrams are left out, and so is a line that is one word.
//! `tools/wrap.py` fills paragraphs anew.

use std::fs;
use std::path::{Path, PathBuf};

/// The last column of prose.
const WIDTH_MAX: usize = 100;

/// Folders without prose of ours.
const LEFT_OUT: &[&str] = &["target", ".git", "node_modules", "results"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the tree is readable") {
        let path = entry.expect("an entry is readable").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            if !LEFT_OUT.contains(&name.as_str()) {
                files(&path, found);
            }
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The text of a line that is prose, and where it begins.
fn prose(line: &str, is_source: bool) -> Option<&str> {
    if !is_source {
        return Some(line);
    }
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.strip_prefix(['/', '!']).unwrap_or(comment).trim_start_matches(' '))
}

/// Numbers of the lines whose prose goes beyond the last column.
fn too_wide(text: &str, is_source: bool) -> Vec<usize> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(words) = prose(line, is_source) else {
            is_code = false;
            continue;
        };
        let is_fence = words.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_free = is_code || is_fence || words.starts_with(['|', '#', '<']) || !words.trim().contains(' ');
        if line.chars().count() > WIDTH_MAX && !is_free {
            found.push(at + 1);
        }
    }
    found
}

#[test]
fn prose_ends_by_column_100() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    assert!(paths.len() > 500, "{} files are too few: the tree is elsewhere", paths.len());
    let mut problems = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source is text");
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let lines = too_wide(&text, is_source);
        problems.extend(lines.into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    let n = problems.len();
    assert!(n == 0, "{n} lines of prose go beyond column {WIDTH_MAX}; see tools/wrap.py:\n{}", problems.join("\n"));
}

#[test]
fn wide_prose_is_found_and_wide_code_is_not() {
    let wide = "word ".repeat(30);
    let text = format!("/// {wide}\nlet x = 1;\n//! ```\n//! {wide}\n//! ```\n    // {wide}\n//! | {wide}\n");
    assert_eq!(too_wide(&text, true), [1, 6]);
    assert_eq!(too_wide(&wide, false), [1]);
}
