//! The tour of ARCHITECTURE.md names files and functions that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new("../..").to_path_buf()
}

fn tour() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the tour is there")
}

/// The pieces of a text between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn each_hop_of_an_insert_is_a_function_of_its_file() {
    let tour = tour();
    let hops: Vec<Vec<&str>> =
        tour.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |")).map(quoted).collect();
    let is_hop = |hop: &&[&str]| hop.len() == 2 && hop[1].ends_with(".rs");
    let hops: Vec<&[&str]> = hops.iter().map(Vec::as_slice).filter(is_hop).collect();
    assert!(hops.len() >= 12, "{} hops", hops.len());
    let is_there = |hop: &&[&str]| {
        let [function, file] = **hop else { return false };
        let text = fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
        text.contains(&format!("fn {function}(")) || text.contains(&format!("fn {function}<"))
    };
    let missing: Vec<&&[&str]> = hops.iter().filter(|hop| !is_there(hop)).collect();
    assert!(missing.is_empty(), "hops that are nowhere: {missing:?}");
}

#[test]
fn files_that_the_tour_names_exist() {
    let tour = tour();
    // (A name of a room, such as `session/`, is short for a folder of the section's crate.)
    let is_path = |name: &&str| name.ends_with(".rs") && name.contains("/src/");
    let missing: Vec<&str> =
        quoted(&tour).into_iter().filter(is_path).filter(|path| !root().join("crates").join(path).exists()).collect();
    assert!(missing.is_empty(), "files that do not exist: {missing:?}");
}
