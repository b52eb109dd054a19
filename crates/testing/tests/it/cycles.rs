//! No circles among the files of a crate: a file is understood after those that it names.
//!
//! A file points to each file of its crate that it names by a path: in `use`, or within the code. A
//! re-export is an arrow of the file that re-exports. A declaration `mod x;` is none, and tests are
//! left out.
//!
//! Law: at most three files name each other in a circle. Such files are read as one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that may name each other in a circle.
const CIRCLE_FILES_MAX: usize = 3;

/// A module's path within its crate; the root is empty.
type Module = Vec<String>;

/// The text of each file of a crate, by module.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<(PathBuf, Module)> = vec![(src.to_path_buf(), vec![])];
    while let Some((folder, module)) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources is readable") {
            let path = entry.expect("an entry is readable").path();
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let below: Module = module.iter().cloned().chain([name.clone()]).collect();
            if path.is_dir() {
                if !(module.is_empty() && name == "bin") {
                    folders.push((path, below));
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
                let is_folder = matches!(name.as_str(), "mod" | "lib" | "main");
                let text = fs::read_to_string(&path).expect("a source is text");
                found.insert(if is_folder { module.clone() } else { below }, code(&text));
            }
        }
    }
    found
}

/// A text without comments, literals and tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut code = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '/' if rest.peek() == Some(&'/') => {
                rest.by_ref().find(|next| *next == '\n');
                code.push('\n');
            }
            '"' => {
                while let Some(next) = rest.next() {
                    match next {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            // (A quotation mark as a character would open a literal.)
            '\'' => {
                let ahead: Vec<char> = rest.clone().take(3).collect();
                let n_skipped = match ahead.as_slice() {
                    ['\\', _, '\''] => 3,
                    [_, '\'', ..] => 2,
                    _ => 0,
                };
                rest.by_ref().take(n_skipped).for_each(drop);
            }
            other => code.push(other),
        }
    }
    code
}

/// All paths in a text: those of `use` written out, and those within the code.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut prefixes: Vec<Vec<String>> = vec![vec![]];
    let mut path: Vec<String> = vec![];
    let mut in_use = false;
    let mut word = String::new();
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            if !in_use && path.is_empty() && word == "use" {
                in_use = true;
                word.clear();
                continue;
            }
            path.push(std::mem::take(&mut word));
        }
        let continues = character == ':' && characters.peek() == Some(&':');
        match character {
            ':' if continues => drop(characters.next()),
            '*' if in_use => path.push("*".to_string()),
            '{' if in_use => {
                let prefix = prefixes.last().into_iter().flatten().cloned().chain(path.drain(..)).collect();
                prefixes.push(prefix);
            }
            // (`as` renames: what follows is no part of the path.)
            character if in_use && character.is_whitespace() => {}
            _ => {
                let prefix = prefixes.last().cloned().unwrap_or_default();
                // (`pub(super)` names no file.)
                if !path.is_empty() && prefix.len() + path.len() > 1 {
                    found.push(prefix.into_iter().chain(path.drain(..)).collect());
                }
                path.clear();
                if in_use && character == '}' {
                    prefixes.pop();
                }
                if in_use && character == ';' {
                    in_use = false;
                    prefixes.truncate(1);
                }
            }
        }
    }
    found
}

/// The module of the crate that a path of `from` leads to: the last part of it that is a file.
fn target(path: &[String], from: &Module, modules: &BTreeMap<Module, String>) -> Option<Module> {
    let child = |module: &Module, name: &String| -> Option<Module> {
        let below: Module = module.iter().cloned().chain([name.clone()]).collect();
        modules.contains_key(&below).then_some(below)
    };
    let (mut module, mut rest) = match path.first()?.as_str() {
        "crate" => (vec![], &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => {
            let n = path.iter().take_while(|part| *part == "super").count();
            (from[..from.len().checked_sub(n)?].to_vec(), &path[n..])
        }
        _ if path.len() > 1 => (child(from, &path[0])?, &path[1..]),
        _ => return None,
    };
    while let Some(below) = rest.first().and_then(|name| child(&module, name)) {
        (module, rest) = (below, &rest[1..]);
    }
    (module != *from).then_some(module)
}

/// The files that each file names.
fn arrows(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let of = |(module, code): (&Module, &String)| {
        let targets = paths(code).into_iter().filter_map(|path| target(&path, module, modules));
        (module.clone(), targets.filter(|target| modules.contains_key(target)).collect())
    };
    modules.iter().map(of).collect()
}

/// The files reached from one by arrows.
fn reached(from: &Module, arrows: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    reached
}

/// Files that name each other in circles, each group once.
fn circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<Module>> = arrows.keys().map(|from| (from, reached(from, arrows))).collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        reach[module].iter().filter(|other| reach[other].contains(module)).cloned().collect()
    };
    arrows.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn at_most_three_files_name_each_other_in_a_circle() {
    let crates = Path::new("..");
    let mut problems = Vec::new();
    for entry in fs::read_dir(crates).expect("the folder of crates is readable") {
        let folder = entry.expect("an entry is readable").path();
        let src = folder.join("src");
        if !src.is_dir() {
            continue;
        }
        let arrows = arrows(&modules(&src));
        for circle in circles(&arrows).into_iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX) {
            let name = |module: &Module| if module.is_empty() { "lib".to_string() } else { module.join("/") };
            let inner = |module: &Module| {
                let named: Vec<String> = arrows[module].intersection(&circle).map(name).collect();
                format!("    {} names {}", name(module), named.join(", "))
            };
            let lines: Vec<String> = circle.iter().map(inner).collect();
            problems.push(format!("{}: {} files\n{}", folder.display(), circle.len(), lines.join("\n")));
        }
    }
    assert!(problems.is_empty(), "files name each other in circles:\n{}", problems.join("\n"));
}

#[test]
fn paths_are_found_in_use_and_in_code() {
    let found = paths("use crate::{a::{b, C}, d as e};\npub(crate) use f::*;\nfn g() { super::h::i(self::j); }\n");
    let shown: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    for expected in ["crate::a::b", "crate::a::C", "crate::d", "f", "super::h::i", "self::j"] {
        assert!(shown.iter().any(|path| path.starts_with(expected)), "{expected} is not among {shown:?}");
    }
}

#[test]
fn a_circle_of_files_is_found() {
    let file = |text: &str| code(text);
    let module = |name: &str| vec![name.to_string()];
    let modules = BTreeMap::from([
        (vec![], file("mod a; mod b; mod c; pub use a::A;")),
        (module("a"), file("use crate::b::B; // crate::c::C\n")),
        (module("b"), file("fn b() { crate::c::c(\"crate::x\") }")),
        (module("c"), file("use super::a;")),
    ]);
    let expected = BTreeSet::from([BTreeSet::from([module("a"), module("b"), module("c")])]);
    assert_eq!(circles(&arrows(&modules)), expected);
}
