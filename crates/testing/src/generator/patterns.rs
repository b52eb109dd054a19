//! Random row patterns.

use std::sync::Arc;

use anabranch_plan::recognize::{At, Cell, CellValue, End, Fold, Recognize, RowPattern, Skip, Variable};
use anabranch_plan::{Plan, SortKey};
use arrow::datatypes::DataType;
use datafusion_common::Column;
use datafusion_expr::Expr;

use super::expressions::lit;
use super::plans::{Plans, is_simple};
use super::values::{Pool, present};
use crate::build::{types, width};
use crate::rng::Rng;

/// Variables of a pattern.
const VARIABLES: [&str; 3] = ["a", "b", "c"];

impl Plans<'_> {
    /// Matches of a random pattern, without sums: theirs may be out of range. (Of few parts: the
    /// model tries all ways to read the rows.)
    pub fn recognize(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Arc<Plan> {
        let simple: Vec<usize> = (0..width(input)).filter(|&column| is_simple(&types(input)[column])).collect();
        if simple.is_empty() {
            return input.clone();
        }
        let n_keys = rng.below(2);
        let partition: Vec<usize> = rng.subset(simple.len(), n_keys).into_iter().map(|i| simple[i]).collect();
        let column = *rng.pick(&simple);
        let order = vec![SortKey { column, descending: rng.chance(30), nulls_first: rng.chance(50) }];
        let is_time = matches!(types(input)[column], DataType::Int32 | DataType::Int64);
        let mut cells = Vec::new();
        let variables = VARIABLES.map(|name| Variable {
            name: name.to_string(),
            condition: rng.chance(70).then(|| condition(rng, input, &simple, &mut cells)),
        });
        let output = (0..rng.between(1, 3)).map(|n| cell(rng, input, &simple, n as usize)).collect();
        let recognize = Recognize {
            partition,
            order,
            pattern: pattern(rng, 2),
            variables: variables.into(),
            cells,
            output,
            skip: if rng.chance(60) { Skip::PastLastRow } else { Skip::ToNextRow },
            within: (is_time && rng.chance(30)).then(|| rng.between(1, 5) as u64),
        };
        self.builder.recognize(input, recognize)
    }
}

fn pattern(rng: &mut Rng, depth: usize) -> RowPattern {
    let kind = if depth == 0 { 0 } else { rng.below(6) };
    match kind {
        0 | 1 => RowPattern::Variable(rng.below(VARIABLES.len())),
        2 | 3 => RowPattern::Sequence((0..rng.between(1, 3)).map(|_| pattern(rng, depth - 1)).collect()),
        4 => RowPattern::Alternatives((0..rng.between(1, 3)).map(|_| pattern(rng, depth - 1)).collect()),
        _ => {
            let min = rng.below(3);
            let max = rng.chance(50).then(|| min + rng.below(3)).filter(|max| *max > 0);
            RowPattern::Repeat { part: Box::new(pattern(rng, depth - 1)), min, max, is_reluctant: rng.chance(30) }
        }
    }
}

/// A comparison of two cells, or of one with a literal.
fn condition(rng: &mut Rng, input: &Plan, simple: &[usize], cells: &mut Vec<Cell>) -> Expr {
    let first = cell(rng, input, simple, cells.len());
    let column = |cell: &Cell| Expr::Column(Column::from_name(&cell.name));
    let left = column(&first);
    let data_type = first.data_type.clone();
    cells.push(first);
    let other = cell(rng, input, simple, cells.len());
    let right = match other.data_type == data_type && rng.chance(70) {
        true => {
            let right = column(&other);
            cells.push(other);
            right
        }
        false => lit(present(rng, &data_type, Pool::Small)),
    };
    match rng.below(4) {
        0 => left.lt(right),
        1 => left.gt_eq(right),
        2 => left.not_eq(right),
        _ => left.lt_eq(right),
    }
}

fn cell(rng: &mut Rng, input: &Plan, simple: &[usize], n: usize) -> Cell {
    let column = *rng.pick(simple);
    let variable = rng.chance(40).then(|| rng.below(VARIABLES.len()));
    let of_column = types(input)[column].clone();
    let (value, data_type) = match rng.below(8) {
        0 => (
            CellValue::Fold { function: Fold::Count, column: rng.chance(50).then_some(column), variable },
            DataType::Int64,
        ),
        1 => (
            CellValue::Fold { function: *rng.pick(&[Fold::Min, Fold::Max]), column: Some(column), variable },
            of_column,
        ),
        3 => (CellValue::MatchNumber, DataType::Int64),
        4 => (CellValue::Classifier, DataType::Utf8View),
        _ => {
            let end = if rng.chance(70) { End::Last } else { End::First };
            let offset = if rng.chance(50) { 0 } else { rng.between(-2, 2) };
            let at = At { end, variable, skipped: if rng.chance(80) { 0 } else { rng.below(3) }, offset };
            (CellValue::Column { column, at }, of_column)
        }
    };
    Cell { name: format!("cell {n}"), value, data_type }
}
