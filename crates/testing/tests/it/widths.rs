//! Prose ends by column 100: comments of sources, docstrings of Python, and Markdown.
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
        } else if [".rs", ".md", ".py"].iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The lines of a text that are prose, without what marks a comment; the others are `None`.
fn prose<'t>(text: &'t str, language: &str) -> Vec<Option<&'t str>> {
    match language {
        "rs" => text.lines().map(comment).collect(),
        "py" => python(text),
        _ => text.lines().map(Some).collect(),
    }
}

fn comment(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.strip_prefix(['/', '!']).unwrap_or(comment).trim_start_matches(' '))
}

/// Comments that stand alone, and docstrings: texts whose quotes begin a line and end one. Examples
/// in them are none.
fn python(text: &str) -> Vec<Option<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![None; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim_start();
        let Some(opened) = line.strip_prefix("\"\"\"") else {
            found[at] = line.strip_prefix("# ");
            at += 1;
            continue;
        };
        let later = || (at + 1..lines.len()).find(|end| lines[*end].contains("\"\"\""));
        let end = if opened.contains("\"\"\"") { at } else { later().unwrap_or(at) };
        if lines[end].ends_with("\"\"\"") {
            let is_prose = |line: &&str| !line.trim_start().starts_with(">>>");
            (at..=end).for_each(|at| found[at] = Some(lines[at].trim_start()).filter(is_prose));
        }
        at = end + 1;
    }
    found
}

/// Numbers of the lines whose prose goes beyond the last column.
fn too_wide(text: &str, language: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (at, (line, words)) in text.lines().zip(prose(text, language)).enumerate() {
        let Some(words) = words else {
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
    let root = Path::new("../..");
    let mut paths = Vec::new();
    files(root, &mut paths);
    assert!(paths.len() > 500, "{} files are too few: the tree is elsewhere", paths.len());
    let mut problems = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source is text");
        let language = path.extension().unwrap_or_default().to_string_lossy();
        let lines = too_wide(&text, &language);
        problems.extend(lines.into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    let n = problems.len();
    assert!(n == 0, "{n} lines of prose go beyond column {WIDTH_MAX}; see tools/wrap.py:\n{}", problems.join("\n"));
}

#[test]
fn wide_prose_is_found_and_wide_code_is_not() {
    let wide = "word ".repeat(30);
    let text = format!("/// {wide}\nlet x = 1;\n//! ```\n//! {wide}\n//! ```\n    // {wide}\n//! | {wide}\n");
    assert_eq!(too_wide(&text, "rs"), [1, 6]);
    assert_eq!(too_wide(&wide, "md"), [1]);
    let quotes = "\"\"\"";
    let text =
        format!("{quotes}{wide}.{quotes}\nx = 1  # {wide}\n{quotes}A.\n\n{wide}\n>>> {wide}\n{quotes}\n# {wide}\n");
    assert_eq!(too_wide(&text, "py"), [1, 5, 8]);
    let query = format!("ask(\n{quotes}SELECT {wide}\nFROM {wide}{quotes}, 1)\n");
    assert_eq!(too_wide(&query, "py"), [0; 0]);
}
