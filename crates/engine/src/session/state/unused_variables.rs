//! PostgreSQL's parameters that change nothing here: how it plans, what it logs, where it waits.
//!
//! Law: each is taken, kept and shown, as scripts and tools expect that set them; SHOW ALL leaves
//! them out.

use super::variables::{Setting, SettingTakes};

const MEANING: &str = "has no effect";

/// A parameter that takes any text.
const fn any(name: &'static str, default: &'static str) -> Setting {
    Setting { name, default, takes: SettingTakes::Text, meaning: MEANING }
}

/// A parameter that is `on` or `off`.
const fn switch(name: &'static str, default: &'static str) -> Setting {
    Setting { name, default, takes: SettingTakes::Switch, meaning: MEANING }
}

/// A parameter that is told, not set.
const fn told(name: &'static str, default: &'static str) -> Setting {
    Setting { name, default, takes: SettingTakes::Nothing, meaning: MEANING }
}

pub(crate) const UNUSED_VARIABLES: &[Setting] = &[
    switch("array_nulls", "on"),
    any("backslash_quote", "safe_encoding"),
    told("block_size", "8192"),
    any("constraint_exclusion", "partition"),
    any("cpu_index_tuple_cost", "0.005"),
    any("cpu_operator_cost", "0.0025"),
    any("cpu_tuple_cost", "0.01"),
    any("cursor_tuple_fraction", "0.1"),
    any("deadlock_timeout", "1s"),
    any("default_statistics_target", "100"),
    any("default_toast_compression", "pglz"),
    any("effective_cache_size", "4GB"),
    any("effective_io_concurrency", "1"),
    switch("enable_async_append", "on"),
    switch("enable_bitmapscan", "on"),
    switch("enable_gathermerge", "on"),
    switch("enable_hashagg", "on"),
    switch("enable_hashjoin", "on"),
    switch("enable_incremental_sort", "on"),
    switch("enable_indexonlyscan", "on"),
    switch("enable_indexscan", "on"),
    switch("enable_material", "on"),
    switch("enable_memoize", "on"),
    switch("enable_mergejoin", "on"),
    switch("enable_nestloop", "on"),
    switch("enable_parallel_append", "on"),
    switch("enable_parallel_hash", "on"),
    switch("enable_partition_pruning", "on"),
    switch("enable_partitionwise_aggregate", "off"),
    switch("enable_partitionwise_join", "off"),
    switch("enable_seqscan", "on"),
    switch("enable_sort", "on"),
    switch("enable_tidscan", "on"),
    switch("escape_string_warning", "on"),
    any("force_parallel_mode", "off"),
    any("from_collapse_limit", "8"),
    switch("geqo", "on"),
    any("geqo_threshold", "12"),
    any("idle_session_timeout", "0"),
    switch("jit_debugging_support", "off"),
    any("join_collapse_limit", "8"),
    told("lc_collate", "C.UTF-8"),
    told("lc_ctype", "C.UTF-8"),
    any("lc_messages", "C.UTF-8"),
    any("lc_monetary", "C.UTF-8"),
    any("lc_numeric", "C.UTF-8"),
    any("lc_time", "C.UTF-8"),
    switch("lo_compat_privileges", "off"),
    any("log_min_duration_statement", "-1"),
    any("log_min_messages", "warning"),
    any("log_statement", "none"),
    any("maintenance_work_mem", "64MB"),
    told("max_connections", "100"),
    told("max_index_keys", "32"),
    any("max_parallel_workers", "8"),
    any("max_parallel_workers_per_gather", "2"),
    any("min_parallel_table_scan_size", "8MB"),
    any("parallel_setup_cost", "1000"),
    any("parallel_tuple_cost", "0.1"),
    any("password_encryption", "scram-sha-256"),
    any("plan_cache_mode", "auto"),
    switch("quote_all_identifiers", "off"),
    any("random_page_cost", "4"),
    any("seq_page_cost", "1"),
    any("session_replication_role", "origin"),
    told("shared_buffers", "128MB"),
    any("temp_buffers", "8MB"),
    switch("track_activities", "on"),
    told("wal_level", "replica"),
    any("xmlbinary", "base64"),
];
