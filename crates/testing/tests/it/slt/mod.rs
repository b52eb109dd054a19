//! Runs `tests/slt/*.slt` (sqllogictest records) through a session, without threads and with one
//! and two workers.
//!
//! Expectations come from PostgreSQL (`tools/slt_expect.py`), except where a record says `skipif
//! postgresql`. Each query is run as a view, too (`as_views`). Every record of a file is tried, so
//! one run shows all that fails. No refusal, expected or not, shows a word of a library.
//! `SLT_SHOW=n` prints more failures than the usual twelve a file.

mod as_views;
pub mod format;
mod session;

use std::path::{Path, PathBuf};

use anabranch_engine::Sharing;
use sqllogictest::{DefaultColumnType, Record, Runner, parse_file};

use session::{Refusals, SessionThread};

use crate::library_words::library_word;

/// Failures of a file that are printed in full.
const FAILURES_SHOWN: usize = 12;

fn folder() -> PathBuf {
    Path::new("../../tests/slt").to_path_buf()
}

/// Runs every record of a file in one session; panics with the records that failed.
fn check(name: &str, workers: usize, sharing: Sharing) {
    let path = folder().join(format!("{name}.slt"));
    let records = parse_file::<DefaultColumnType>(&path).expect("the file parses");
    let refusals = Refusals::default();
    let own = refusals.clone();
    let mut runner = Runner::new(move || {
        let refusals = own.clone();
        async move { SessionThread::start(workers, sharing, refusals) }
    });
    let (mut n_records, mut failures) = (0, Vec::new());
    for record in records {
        n_records += usize::from(matches!(record, Record::Query { .. } | Record::Statement { .. }));
        if let Err(error) = runner.run(record) {
            failures.push(error.display(false).to_string());
        }
        for told in refusals.take() {
            failures.extend(library_word(&told).map(|word| format!("a refusal says {word:?}: {told}")));
        }
    }
    if failures.is_empty() {
        return;
    }
    let shown = std::env::var("SLT_SHOW").ok().and_then(|text| text.parse().ok()).unwrap_or(FAILURES_SHOWN);
    let texts: Vec<&str> = failures.iter().take(shown).map(String::as_str).collect();
    panic!(
        "{name}.slt with {workers} workers, sharing {sharing:?}: {} of {n_records} records fail\n\n{}",
        failures.len(),
        texts.join("\n----------\n")
    );
}

/// One test a file and number of workers, named after the file; and one that finds files without
/// tests.
macro_rules! files {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            #[test]
            fn without_threads() {
                super::check(stringify!($name), 0, super::Sharing::Full);
            }

            #[test]
            fn on_one_worker() {
                super::check(stringify!($name), 1, super::Sharing::Full);
            }

            #[test]
            fn on_two_workers() {
                super::check(stringify!($name), 2, super::Sharing::Full);
            }

            #[test]
            fn without_sharing() {
                super::check(stringify!($name), 0, super::Sharing::Off);
            }

            #[test]
            fn as_views() {
                super::as_views::check(stringify!($name));
            }
        })*

        #[test]
        fn every_file_has_its_tests() {
            let mut found: Vec<String> = std::fs::read_dir(folder())
                .expect("the folder is there")
                .map(|entry| entry.expect("readable").path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
                .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
                .collect();
            found.sort();
            assert_eq!(found, [$(stringify!($name)),*], "files in tests/slt, and tests in this module, by name");
        }
    };
}

files!(
    advisory_locks,
    aggregates,
    alike,
    answers,
    arrays,
    asked_once,
    asof,
    bands,
    borrowed,
    bytea,
    closing_windows,
    compared,
    correlated,
    cte,
    cursors,
    dates,
    ddl,
    decimals,
    definitions,
    dml,
    documents,
    documents_in_lists,
    documents_kept,
    domains,
    errors,
    everyday,
    everyday_more,
    everyday_statements,
    expression_indexes,
    first_hour,
    first_of_each,
    forms,
    forms_in_lists,
    found_by_battery,
    frames,
    frames_of_numerics,
    functions_beside,
    guarded,
    infinite_times,
    join_tests,
    joins,
    json,
    kept_types,
    label_lists,
    labels,
    list_tests,
    locked_tables,
    many_columns,
    match_recognize,
    merge,
    named_windows,
    nulls,
    numbers,
    numeric,
    order_and_literals,
    ordered_rows,
    overlaps,
    pairs,
    patterns_and_years,
    planner,
    prefixes,
    prepared,
    queries,
    random,
    read_texts,
    recursive,
    recursive_outer,
    references,
    refused_before,
    regex,
    renamed_labels,
    repeated_keys,
    rows_and_groups,
    rows_beside_queries,
    rows_of_functions,
    sequences,
    sessions,
    setops,
    settings,
    shared_calls,
    shared_columns,
    side_by_side,
    splits,
    star,
    state,
    subqueries,
    system,
    templates,
    text,
    texts_apart,
    tied_places,
    times,
    times_more,
    topk,
    tour,
    transactional_definitions,
    transactions,
    types,
    types_told,
    unique,
    unnested_keys,
    unnesting,
    untyped,
    upsert,
    values,
    values_beside,
    varied_a,
    varied_b,
    windows,
    wrong_before,
);
