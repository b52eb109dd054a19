//! Names: few types share one, and what is public is named from elsewhere.
//!
//! Law: a type name that other files of a library can see is defined at most twice in the
//! libraries, and a public item of a library is named by another crate, by a test, or by the
//! signature of an item that is. (A name that is private to a file is read beside its definition.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Definitions of one type name.
const DEFINITIONS_MAX: usize = 2;

/// Crates that are programs or bindings, and the peer, whose items others cannot name.
const NO_LIBRARIES: [&str; 5] = ["bench", "cli", "peer", "python", "testing"];

/// The sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("an entry is readable").path()) {
            match path.extension() {
                Some(extension) if extension == "rs" => found.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    found
}

/// The crates of the workspace: their names and folders.
fn crates() -> Vec<(String, PathBuf)> {
    let all = Path::new("..");
    let entries = fs::read_dir(all).expect("the crates are readable");
    let paths = entries.map(|entry| entry.expect("an entry is readable").path());
    let named = paths.filter(|path| path.join("src").is_dir());
    named.map(|path| (path.file_name().expect("a crate has a name").to_string_lossy().into_owned(), path)).collect()
}

/// The names that lines beginning with one of `kinds` define, without tests within sources.
fn defined<'a>(text: &'a str, kinds: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter_map(|line| {
        let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
        rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
    })
}

/// The words of what a reader of public items sees: signatures, public fields, variants, methods of
/// traits; the items' own names apart.
fn shown(text: &str) -> Vec<&str> {
    const ITEMS: [&str; 7] =
        ["pub fn ", "pub const ", "pub struct ", "pub enum ", "pub trait ", "pub type ", "pub use "];
    /// What lines belong to, until it ends.
    #[derive(Clone, Copy, PartialEq)]
    enum Within {
        Nothing,
        Signature,
        Fields,
        Members,
    }
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut within = Within::Nothing;
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let trimmed = line.trim();
        let is_item = ITEMS.iter().any(|item| trimmed.starts_with(item));
        let opens = trimmed.ends_with('{');
        let closes = opens || trimmed.ends_with([';', '}']);
        within = match within {
            Within::Nothing if is_item => {
                let n_own = match trimmed {
                    _ if trimmed.starts_with("pub use ") => 2,
                    _ if trimmed.starts_with("pub const fn ") => 4,
                    _ => 3,
                };
                found.extend(words(trimmed).skip(n_own));
                match trimmed {
                    _ if opens && trimmed.starts_with("pub struct ") => Within::Fields,
                    _ if opens && (trimmed.starts_with("pub enum ") || trimmed.starts_with("pub trait ")) => {
                        Within::Members
                    }
                    _ if closes => Within::Nothing,
                    _ => Within::Signature,
                }
            }
            Within::Nothing => {
                let is_shown = trimmed.starts_with("impl") || trimmed.starts_with("pub ");
                found.extend(words(trimmed).filter(|_| is_shown));
                Within::Nothing
            }
            Within::Signature => {
                found.extend(words(trimmed));
                if closes { Within::Nothing } else { Within::Signature }
            }
            Within::Fields | Within::Members if line.starts_with('}') => Within::Nothing,
            Within::Fields | Within::Members => {
                let is_shown = within == Within::Members || trimmed.starts_with("pub ");
                found.extend(words(trimmed).filter(|_| is_shown));
                within
            }
        };
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[test]
fn few_types_share_a_name() {
    const KINDS: [&str; 9] = [
        "pub struct ",
        "pub enum ",
        "pub trait ",
        "pub(crate) struct ",
        "pub(crate) enum ",
        "pub(crate) trait ",
        "pub(super) struct ",
        "pub(super) enum ",
        "pub(super) trait ",
    ];
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (name, folder) in crates() {
        if NO_LIBRARIES.contains(&name.as_str()) {
            continue;
        }
        for source in sources(&folder.join("src")) {
            let text = fs::read_to_string(&source).expect("a source is text");
            defined(&text, &KINDS).for_each(|name| found.entry(name.to_owned()).or_default().push(source.clone()));
        }
    }
    found.retain(|_, places| places.len() > DEFINITIONS_MAX);
    assert!(found.is_empty(), "say these names in full, {DEFINITIONS_MAX} types have them already: {found:#?}");
}

#[test]
fn public_items_are_named_from_elsewhere() {
    const KINDS: [&str; 7] =
        ["pub fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait ", "pub const ", "pub type "];
    let crates = crates();
    let mut own: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut inside: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut beside: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, folder) in &crates {
        for source in sources(folder) {
            let text = fs::read_to_string(&source).expect("a source is text");
            let is_inside = source.starts_with(folder.join("src"));
            let known = if is_inside { &mut inside } else { &mut beside }.entry(name).or_default();
            for word in words(&text) {
                if !known.contains(word) {
                    known.insert(word.to_owned());
                }
            }
            if is_inside {
                own.entry(name).or_default().push(text);
            }
        }
    }
    let is_named = |name: &str, item: &str| {
        beside.values().any(|words| words.contains(item))
            || inside.iter().any(|(other, words)| *other != name && words.contains(item))
    };
    for (name, texts) in &own {
        if NO_LIBRARIES.contains(name) {
            continue;
        }
        let shown: BTreeSet<&str> = texts.iter().flat_map(|text| shown(text)).collect();
        let public = texts.iter().flat_map(|text| defined(text, &KINDS));
        let unnamed: Vec<&str> = public.filter(|item| !is_named(name, item) && !shown.contains(item)).collect();
        assert!(
            unnamed.is_empty(),
            "{name}: no other crate and no test names these, so they are not public: {unnamed:?}"
        );
    }
}
