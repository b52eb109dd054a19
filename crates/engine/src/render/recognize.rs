//! Row patterns: from plan data to programs.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::types;
use anabranch_operators::ordered::match_recognize as operator;
use anabranch_plan::recognize::{At, Cell, CellValue, End, Fold, Recognize, RowPattern, Skip};
use arrow::datatypes::DataType;

use super::expression::Compiled;
use super::specs::direction;
use crate::error::Error;

/// The operator of a pattern over rows of these types.
///
/// # Errors
/// `Invalid` for a pattern that is too large, and for conditions that cannot be evaluated.
pub(super) fn compile(recognize: &Recognize, input_types: Vec<DataType>) -> Result<operator::RecognizeSpec, Error> {
    let schema = recognize.schema().map_err(|error| Error::internal(error.strip_backtrace()))?;
    let program =
        operator::RecognizeProgram::new(&pattern(&recognize.pattern)).map_err(|operator::program::TooLarge| {
            let message =
                format!("the pattern of MATCH_RECOGNIZE has more than {} steps", operator::program::STEPS_MAX);
            Error::invalid(message).with_hint("repeat its parts fewer times, or without a limit.")
        })?;
    let variable = |variable: &anabranch_plan::recognize::Variable| {
        let condition = variable.condition.as_ref().map(|condition| {
            let compiled = Compiled::new(condition, &schema)?.typed(&DataType::Boolean);
            let cells = compiled.columns().into_iter().collect();
            Ok::<_, Error>(operator::Condition { expression: compiled.into_ref(), cells })
        });
        Ok(operator::VariableSpec { name: variable.name.clone(), condition: condition.transpose()? })
    };
    Ok(operator::RecognizeSpec {
        partition: recognize.partition.clone(),
        order: recognize.order.iter().map(direction).collect(),
        program,
        variables: recognize.variables.iter().map(variable).collect::<Result<_, Error>>()?,
        cells: recognize.cells.iter().map(cell).collect(),
        output: recognize.output.iter().map(cell).collect(),
        skip: match recognize.skip {
            Skip::PastLastRow => operator::Skip::PastLastRow,
            Skip::ToNextRow => operator::Skip::ToNextRow,
            Skip::ToFirst(variable) => operator::Skip::ToFirst(variable),
            Skip::ToLast(variable) => operator::Skip::ToLast(variable),
        },
        within: recognize.within,
        input_types,
        effort: MergeEffort::default(),
    })
}

fn cell(cell: &Cell) -> operator::CellSpec {
    let value = match &cell.value {
        CellValue::Column { column, at } => operator::CellValue::Column { column: *column, at: place(at) },
        CellValue::Classifier => operator::CellValue::Classifier,
        CellValue::MatchNumber => operator::CellValue::MatchNumber,
        CellValue::Fold { function, column, variable } => operator::CellValue::Fold {
            function: match function {
                Fold::Count => operator::Fold::Count,
                Fold::Sum => operator::Fold::Sum,
                Fold::Min => operator::Fold::Min,
                Fold::Max => operator::Fold::Max,
            },
            column: *column,
            variable: *variable,
        },
    };
    operator::CellSpec { value, data_type: types::narrowed_type(&cell.data_type) }
}

fn place(at: &At) -> operator::At {
    let end = match at.end {
        End::First => operator::EndSpec::First,
        End::Last => operator::EndSpec::Last,
    };
    operator::At { end, variable: at.variable, skipped: at.skipped, offset: at.offset }
}

fn pattern(pattern: &RowPattern) -> operator::RowPattern {
    let all = |parts: &[RowPattern]| parts.iter().map(self::pattern).collect();
    match pattern {
        RowPattern::Variable(variable) => operator::RowPattern::Variable(*variable),
        RowPattern::Sequence(parts) => operator::RowPattern::Sequence(all(parts)),
        RowPattern::Alternatives(parts) => operator::RowPattern::Alternatives(all(parts)),
        RowPattern::Repeat { part, min, max, is_reluctant } => operator::RowPattern::Repeat {
            part: Box::new(self::pattern(part)),
            min: *min,
            max: *max,
            is_reluctant: *is_reluctant,
        },
    }
}
