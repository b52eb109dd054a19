//! Names: few types share one, and what is public is named from elsewhere.
//!
//! Law: a type name is defined at most twice in the workspace, and a public item of a library is
//! named by another crate, by a test, or by the signature of an item that is.
//!
//! The tables below hold what breaks the law today. They are to shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Definitions of one type name.
const DEFINITIONS_MAX: usize = 2;

/// Crates that are programs or bindings, and the peer, whose items others cannot name.
const NO_LIBRARIES: [&str; 4] = ["bench", "cli", "peer", "python"];

/// Type names with more definitions, by how many they have.
const SHARED: &[(usize, &str)] = &[
    (16, "Options"),
    (14, "Kind"),
    (12, "Case"),
    (11, "Reader"),
    (10, "Entry Part State"),
    (9, "Run"),
    (8, "Changes Place"),
    (7, "Answer Column Emit Frame Input Rows Scope"),
    (6, "Builder Cell End Inner Row Step Verb"),
    (5, "Line Named Open Pairs Parts Relation Side Stream Turn Value Variable Waiting Wanted"),
    (
        4,
        "Aggregate Arguments Asof Bound Call Change Contents Counts Described Ends Form Format Function Group Held Host Keep Known Next Node Pattern Program Report Seen Total Walk Zone",
    ),
    (
        3,
        "Arrival Asked Cells Check Client Clock Columns Condition Direction Edge Feed Found History Installed Interval Item Layout Lifetime Match Moment Names Out Outcome Pair Partition Random Request Running Search Shape Shared Snapshot Spread Steps Takes Target Window Windowed Writer",
    ),
];

/// Public items of libraries that only their own crate names.
const UNNAMED: &[(&str, usize)] = &[
    ("arrangement", 1),
    ("batch", 5),
    ("datalog", 11),
    ("engine", 23),
    ("flow", 13),
    ("linear_road", 14),
    ("operators", 11),
    ("plan", 1),
    ("shards", 12),
    ("sql", 6),
    ("store", 2),
    ("testing", 4),
];

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
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
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

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[test]
fn few_types_share_a_name() {
    const KINDS: [&str; 9] = [
        "struct ",
        "enum ",
        "trait ",
        "pub struct ",
        "pub enum ",
        "pub trait ",
        "pub(crate) struct ",
        "pub(crate) enum ",
        "pub(super) struct ",
    ];
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, folder) in crates() {
        for source in sources(&folder.join("src")) {
            let text = fs::read_to_string(source).expect("a source is text");
            defined(&text, &KINDS).for_each(|name| *counts.entry(name.to_owned()).or_default() += 1);
        }
    }
    let known: BTreeMap<&str, usize> =
        SHARED.iter().flat_map(|(n, names)| names.split_whitespace().map(|name| (name, *n))).collect();
    let shared = counts.iter().filter(|(_, n)| **n > DEFINITIONS_MAX).map(|(name, n)| (name.as_str(), *n));
    let found: BTreeMap<&str, usize> = shared.collect();
    let added: Vec<_> = found.iter().filter(|(name, n)| known.get(*name).is_none_or(|known| *n > known)).collect();
    assert!(added.is_empty(), "say these names in full, {DEFINITIONS_MAX} types have them already: {added:?}");
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
        let public = texts.iter().flat_map(|text| defined(text, &KINDS));
        let unnamed: Vec<&str> = public.filter(|item| !is_named(name, item)).collect();
        let known = UNNAMED.iter().find(|(other, _)| other == name).map_or(0, |(_, n)| *n);
        let more = "public items that no other crate and no test names, more than the table has:";
        assert!(unnamed.len() <= known, "{name}: {more} {unnamed:?}");
    }
}
