//! The rewrites of expressions after DataFusion has coerced types, in the order in which they run.

use super::Settle;
use super::casts;
use super::greatest_arrays::choose_array;
use super::moments;
use crate::functions::cast_to_text::write_cast;
use crate::functions::digits::round_float;
use crate::functions::intervals::{choose_by_length, compare_lengths};
use crate::functions::number_casts::settle_numbers;
use crate::functions::numeric_casts::settle_plain_cast;
use crate::passes::pass::{Loss, Pass};

/// After DataFusion has coerced types.
pub(crate) const CASTS: &[Pass<Settle>] = &[
    Pass {
        name: "intervals by their length",
        run: Settle::Expr(compare_lengths),
        gives: "comparisons of lengths in place of comparisons of intervals",
        reason: "DataFusion compares months, then days, then the rest: 25 hours would be less than a day",
        example: "SELECT INTERVAL '25 hours' > INTERVAL '1 day' AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "casts of text",
        run: Settle::Expr(casts::read_cast),
        gives: "text read as PostgreSQL reads it",
        reason: "Arrow reads fewer spellings, and its messages name Arrow's types",
        example: "SELECT '{1,2}'::integer[] AS q",
        without: Loss::Failure,
    },
    Pass {
        name: "casts of moments",
        run: Settle::Expr(moments::settle_cast),
        gives: "constants with infinity, intervals of times of day and times of day of intervals",
        reason: "Arrow has no infinite dates, and no such casts of intervals",
        example: "SELECT INTERVAL '10:20:30'::time AS q FROM w",
        without: Loss::Failure,
    },
    Pass {
        name: "casts to text",
        run: Settle::Expr(write_cast),
        gives: "text as PostgreSQL writes it",
        reason: "Arrow writes 1.0 for 1, and a T within timestamps",
        example: "SELECT ts::text AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "casts of numerics without a scale",
        run: Settle::Expr(settle_plain_cast),
        gives: "the digits of the number",
        reason: "Arrow takes the type that holds them for bytes",
        example: "SELECT n::numeric::text AS q FROM w",
        without: Loss::Failure,
    },
    Pass {
        name: "casts of long decimals, and of lists of numbers",
        run: Settle::Expr(settle_numbers),
        gives: "the nearest float, and elements rounded",
        reason: "Arrow divides after it has rounded to a float, and cuts the fractions of elements off",
        example: "SELECT (ARRAY[n, n])::integer[] AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "the longest of intervals",
        run: Settle::Expr(choose_by_length),
        gives: "greatest and least of intervals by their length",
        reason: "DataFusion compares months, then days, then the rest",
        example: "SELECT greatest(INTERVAL '25 hours', make_interval(days => k + 2)) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "the greatest of arrays",
        run: Settle::Expr(choose_array),
        gives: "greatest and least of arrays as arrays compare",
        reason: "DataFusion takes NULL in an array for the least",
        example: "SELECT greatest(ARRAY[k, NULL], ARRAY[k, 2]) AS q FROM w",
        without: Loss::WrongAnswer,
    },
    Pass {
        name: "casts of floats to numeric",
        run: Settle::Expr(round_float),
        gives: "the digits that a float is sure of, rounded",
        reason: "Arrow takes the binary fraction to its last bit",
        example: "SELECT g::numeric(10,2) AS q FROM w",
        without: Loss::WrongAnswer,
    },
];
