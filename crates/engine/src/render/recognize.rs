//! Row patterns: from plan data to programs.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::types;
use anabranch_operators::ordered::match_recognize as operator;
use anabranch_plan::recognize::Recognize;
use anabranch_spec::recognize::Cell;
use arrow::datatypes::DataType;

use super::expression::Compiled;
use crate::error::Error;

/// The operator of a pattern over rows of these types.
///
/// # Errors
/// `Invalid` for a pattern that is too large, and for conditions that cannot be evaluated.
pub(super) fn compile(recognize: &Recognize, input_types: Vec<DataType>) -> Result<operator::RecognizeSpec, Error> {
    let schema = recognize.schema().map_err(|error| Error::internal(error.strip_backtrace()))?;
    let program = operator::RecognizeProgram::new(&recognize.pattern).map_err(|operator::program::TooLarge| {
        let message = format!("the pattern of MATCH_RECOGNIZE has more than {} steps", operator::program::STEPS_MAX);
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
        order: recognize.order.clone(),
        program,
        variables: recognize.variables.iter().map(variable).collect::<Result<_, Error>>()?,
        cells: recognize.cells.iter().map(cell).collect(),
        output: recognize.output.iter().map(cell).collect(),
        skip: recognize.skip,
        within: recognize.within,
        input_types,
        effort: MergeEffort::default(),
    })
}

/// The cell with the type that its column has in batches.
fn cell(cell: &Cell) -> Cell {
    Cell { data_type: types::narrowed_type(&cell.data_type), ..cell.clone() }
}
