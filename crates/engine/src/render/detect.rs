//! Patterns: from plan data to automata.

use anabranch_batch::{Time, types};
use anabranch_operators::expression::ExpressionRef;
use anabranch_operators::temporal::detect as operator;
use anabranch_plan::pattern::Detect;
use datafusion_common::DFSchema;
use datafusion_expr::Expr;

use super::expression::Compiled;
use super::specs::types_of;
use crate::error::Error;

/// Most matches that a group may have in progress.
const INSTANCES_MAX: usize = 1 << 20;

/// The operator of a pattern over events of this schema.
pub(super) fn compile(detect: &Detect, input: &DFSchema) -> Result<operator::DetectSpec, Error> {
    let registers = detect.register_columns();
    let n_columns = input.fields().len();
    let schema = Detect::schema(input, &registers).map_err(|error| Error::internal(error.strip_backtrace()))?;
    let element = |element: &anabranch_plan::pattern::Element| {
        let condition = element.condition.as_ref().map(|condition| Compiled::new(condition, &schema)).transpose()?;
        let reads_register =
            condition.as_ref().is_some_and(|condition| condition.columns().iter().any(|&column| column >= n_columns));
        let compiled = |exprs: &Vec<Expr>| -> Result<Vec<ExpressionRef>, Error> {
            let typed = exprs.iter().zip(&registers);
            typed.map(|(expr, (_, data_type))| Ok(Compiled::new(expr, &schema)?.typed(data_type).into_ref())).collect()
        };
        let register = element.registers.as_ref().map(compiled).transpose()?;
        Ok(operator::Element {
            takes: element.takes,
            // (Conditions that do not read the register are evaluated over events alone.)
            condition: condition.map(|condition| match reads_register {
                true => condition.into_ref(),
                false => condition.moved(&types_of(input), &|column| column).into_ref(),
            }),
            reads_register,
            register,
        })
    };
    let initial = detect.registers.iter().map(|register| {
        let value = register.initial.to_array().map_err(|error| Error::internal(error.strip_backtrace()))?;
        types::narrowed(&value).map_err(|error| Error::invalid(error.detail()))
    });
    Ok(operator::DetectSpec {
        automaton: operator::Automaton::new(&detect.pattern),
        elements: detect.elements.iter().map(element).collect::<Result<_, Error>>()?,
        group: detect.group.clone(),
        input_types: types_of(input),
        register: initial.collect::<Result<_, _>>()?,
        duration: detect.duration as Time,
        overlap: detect.overlap,
        simultaneous: detect.simultaneous,
        instances_max: INSTANCES_MAX,
    })
}
