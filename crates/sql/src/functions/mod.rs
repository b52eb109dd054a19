//! The functions that SQL may call, and the operators that PostgreSQL types otherwise than
//! DataFusion.
//!
//! Reading order: [`rows`] (functions that compute row by row), the families of functions,
//! [`table`] (all by name), [`operators`] and [`planner`] (which calls stand for operators).

pub(crate) mod age;
pub(crate) mod aggregates;
pub(crate) mod all_elements;
pub(crate) mod arrays;
pub mod at_scale;
pub(crate) mod at_time_zone;
pub(crate) mod bounded;
pub(crate) mod branches;
pub(crate) mod bytea;
pub(crate) mod bytes_in;
mod call_names;
pub(crate) mod cast_to_text;
pub(crate) mod checked;
pub(crate) mod choosing;
pub(crate) mod coalesce;
pub(crate) mod conversions;
pub(crate) mod cut_time;
pub(crate) mod decimal_text;
pub(crate) mod deviations;
pub(crate) mod digits;
pub(crate) mod distinct_lists;
pub(crate) mod element_forms;
pub(crate) mod enumerations;
pub(crate) mod expanded;
pub(crate) mod extract;
pub(crate) mod factorial;
pub(crate) mod finite;
pub(crate) mod forms;
pub mod input;
pub(crate) mod interval_lists;
pub(crate) mod interval_percentile;
pub(crate) mod intervals;
pub(crate) mod json;
pub(crate) mod like_lists;
pub(crate) mod moment_series;
pub(crate) mod most_frequent;
pub(crate) mod number_casts;
pub(crate) mod numeric_casts;
pub(crate) mod numerics;
pub(crate) mod of_numbers;
pub(crate) mod operators;
pub(crate) mod ordered_sets;
pub mod output;
pub(crate) mod placed_text;
pub(crate) mod planner;
pub(crate) mod range_key;
pub(crate) mod regex;
pub(crate) mod rows;
pub(crate) mod same_value;
mod series;
pub(crate) mod settle_numbers;
pub(crate) mod similar;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod text_hash;
pub(crate) mod texts;
pub(crate) mod totals;
pub(crate) mod trigonometry;
pub(crate) mod unicode_forms;
pub(crate) mod user;
pub(crate) mod user_types;
pub(crate) mod wholes;
pub(crate) mod window_floor;
