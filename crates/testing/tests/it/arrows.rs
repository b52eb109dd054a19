//! Compares the crate graph with the layout of the design: arrows point down only, and heavy
//! libraries stay where they belong.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Every crate of ours (without the prefix `anabranch-`) and what it may use, lowest floor first. A
/// rim crate may use every floor.
const ARROWS: &[(&str, &[&str])] = &[
    ("batch", &[]),
    ("spec", &["batch"]),
    ("arrangement", &["batch"]),
    ("flow", &["batch", "arrangement"]),
    ("operators", &["batch", "spec", "arrangement", "flow"]),
    ("plan", &["batch", "spec"]),
    ("sql", &["batch", "spec", "plan"]),
    ("store", &["batch"]),
    ("engine", &["batch", "spec", "arrangement", "flow", "operators", "plan", "sql", "store"]),
    ("file", &["batch", "plan", "sql", "engine"]),
    ("bucket", &["store"]),
    ("shards", &["batch", "arrangement", "flow", "operators", "plan", "sql", "engine"]),
    ("linear-road", &["batch", "plan", "engine", "shards"]),
    ("datalog", &["batch", "plan", "engine"]),
    ("server", &["batch", "plan", "sql", "engine", "file", "bucket"]),
    (
        "cli",
        &[
            "batch",
            "arrangement",
            "flow",
            "operators",
            "plan",
            "sql",
            "engine",
            "file",
            "bucket",
            "datalog",
            "server",
            "linear-road",
            "shards",
            "store",
        ],
    ),
    ("python", &["batch", "plan", "sql", "engine", "file", "bucket", "server", "shards", "cli"]),
    (
        "testing",
        &["batch", "spec", "arrangement", "flow", "operators", "plan", "sql", "engine", "file", "store", "shards"],
    ),
    ("peer", &[]),
    (
        "bench",
        &[
            "peer",
            "batch",
            "spec",
            "arrangement",
            "flow",
            "operators",
            "plan",
            "sql",
            "engine",
            "file",
            "testing",
            "server",
            "shards",
            "linear-road",
        ],
    ),
];

/// Outside libraries that only some crates may name.
const RESERVED: &[(&str, &[&str])] = &[
    ("timely", &["flow", "bench", "peer"]),
    ("datafusion-sql", &["sql"]),
    ("datafusion-optimizer", &["sql"]),
    ("parquet", &["file", "testing", "bench"]),
    ("flate2", &["file"]),
    ("arrow-csv", &["file"]),
    ("arrow-json", &["file"]),
    ("rustyline", &["cli"]),
    ("crossterm", &["cli"]),
    ("clap", &["cli", "bench"]),
    ("mimalloc", &["cli", "bench"]),
    ("rustls", &["server", "cli"]),
    ("postgres-protocol", &["cli"]),
    ("ring", &["server"]),
    ("axum", &["server"]),
    ("object_store", &["bucket"]),
    ("tokio", &["server", "bucket"]),
    ("pyo3", &["python"]),
];

/// The crates of the workspace, each with the dependencies of one kind, as they stand in its
/// manifest.
fn dependencies(of_tests: bool) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(".")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let text = |value: &Value| value.as_str().expect("a name").to_string();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let wanted = package["dependencies"].as_array().expect("dependencies").iter();
            let wanted = wanted.filter(|dependency| (dependency["kind"] == "dev") == of_tests);
            (text(&package["name"]), wanted.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("anabranch-").unwrap_or(name)
}

#[test]
fn arrows_point_down_only() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let graph = dependencies(false);
    assert_eq!(
        graph.keys().map(|name| short(name)).collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect::<BTreeSet<_>>(),
        "a new crate takes its place in the layout (DESIGN, section 9) and in this table"
    );
    for (name, used) in &graph {
        for used in used.iter().filter(|used| used.starts_with("anabranch-")) {
            assert!(allowed[short(name)].contains(&short(used)), "{name} must not use {used}: arrows point down only");
        }
    }
}

#[test]
fn the_table_itself_has_no_cycle() {
    for (place, (name, used)) in ARROWS.iter().enumerate() {
        for used in *used {
            let below = ARROWS[..place].iter().any(|(other, _)| other == used);
            assert!(below, "{name} is allowed {used}, which is not below it in the table");
        }
    }
}

#[test]
fn heavy_libraries_stay_where_they_belong() {
    for (name, used) in dependencies(false) {
        for (library, users) in RESERVED {
            assert!(
                !used.contains(*library) || users.contains(&short(&name)),
                "{name} must not use {library}: only {users:?} may"
            );
        }
    }
}

#[test]
fn nothing_that_ships_uses_the_testing_crate() {
    for (name, used) in dependencies(false).into_iter().filter(|(name, _)| name != "anabranch-bench") {
        assert!(!used.contains("anabranch-testing"), "{name} uses anabranch-testing outside of its tests");
    }
}
