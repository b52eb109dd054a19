//! Operators of the user's own, among the built-in verbs.
//!
//! ```
//! use std::sync::Arc;
//! use anabranch_engine::frame::{Arrived, Event, Events, Given, Instance, UserOperator, col};
//! use anabranch_engine::{Options, Session};
//! use arrow::array::{ArrayRef, AsArray, Int64Array};
//! use arrow::datatypes::{DataType, Field, Int64Type, Schema};
//!
//! /// Differences between a value and the value before.
//! struct Steps;
//!
//! impl UserOperator for Steps {
//!     fn name(&self) -> &str {
//!         "steps"
//!     }
//!     fn output(&self, _inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
//!         Ok(vec![("step".to_owned(), DataType::Int64)])
//!     }
//!     fn start(&self) -> Box<dyn Instance> {
//!         Box::new(Last(None))
//!     }
//! }
//!
//! struct Last(Option<i64>);
//!
//! impl Instance for Last {
//!     fn advance(&mut self, _upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
//!         let rows = &inputs[0];
//!         let Some(values) = rows.columns().first() else { return Ok(()) };
//!         let values = values.as_primitive::<Int64Type>().values();
//!         let steps = values.iter().map(|value| value - self.0.replace(*value).unwrap_or(*value)).collect::<Int64Array>();
//!         out.points(vec![Arc::new(steps) as ArrayRef], rows.times().to_vec());
//!         Ok(())
//!     }
//! }
//!
//! let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
//! let steps = Events::input("x", schema).frame().operator(Steps, []);
//! let mut session = Session::new(Options::default())?;
//! let mut run = session.start(&steps)?;
//! run.push("x", vec![Event::point(4, [7i64.into()]), Event::point(1, [5i64.into()])])?;
//! run.finish()?;
//! let steps: Vec<String> = run.lifetimes()?.iter().map(ToString::to_string).collect();
//! assert_eq!(steps, ["[1, 2) 0", "[4, 5) 2"]);
//! # Ok::<(), anabranch_engine::Error>(())
//! ```

use std::sync::Arc;

use anabranch_operators::temporal::custom::{CustomOperator, UserOperator};
use anabranch_plan::temporal::Verb;
use anabranch_plan::{Foreign, Plan};
use arrow::datatypes::DataType;
use datafusion_expr::Expr;

use super::expression::{self, name_of};
use super::input::planned;
use super::query::{Frame, FrameState, schema_of, temporal};
use crate::contained::contained;
use crate::error::Error;

impl Frame {
    /// What a user's operator gives for these rows. There is one instance a worker; rows with
    /// equal key columns meet in one instance, and without keys all rows do.
    #[must_use]
    pub fn operator(&self, operator: impl UserOperator, keys: impl IntoIterator<Item = Expr>) -> Frame {
        let operator = CustomOperator::new(operator);
        let keys: Vec<Expr> = keys.into_iter().collect();
        self.then(|state| custom(operator, &[(state, &keys)]))
    }

    /// As [`operator`](Frame::operator), of two inputs: rows of this frame and rows of `other` with
    /// equal keys meet in one instance.
    #[must_use]
    pub fn operator_with(
        &self,
        other: &Frame,
        operator: impl UserOperator,
        left_keys: impl IntoIterator<Item = Expr>,
        right_keys: impl IntoIterator<Item = Expr>,
    ) -> Frame {
        let operator = CustomOperator::new(operator);
        let left_keys: Vec<Expr> = left_keys.into_iter().collect();
        let right_keys: Vec<Expr> = right_keys.into_iter().collect();
        self.then_with(other, |left, right| custom(operator, &[(left, &left_keys), (right, &right_keys)]))
    }
}

fn custom(operator: CustomOperator, inputs: &[(&FrameState, &Vec<Expr>)]) -> Result<Arc<Plan>, Error> {
    let name = operator.name().to_owned();
    if inputs.iter().any(|(state, _)| !state.group.is_empty()) {
        return Err(Error::invalid(format!("operator \"{name}\" stands inside group_apply"))
            .with_hint("Use it on the whole stream, and name the group's columns as its keys."));
    }
    let keys = inputs.iter().map(|(state, keys)| places(&name, state, keys)).collect::<Result<Vec<_>, Error>>()?;
    let key_types = |at: usize| -> Vec<DataType> {
        keys[at].iter().map(|&column| inputs[at].0.schema().field(column).data_type().clone()).collect()
    };
    if inputs.len() == 2 && key_types(0) != key_types(1) {
        return Err(Error::invalid(format!("the keys of operator \"{name}\" differ in number or type"))
            .with_detail(format!("They are of types {:?} and {:?}.", key_types(0), key_types(1))));
    }
    let types = |state: &FrameState| state.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let types: Vec<Vec<DataType>> = inputs.iter().map(|(state, _)| types(state)).collect();
    let asked = contained(&format!("operator \"{name}\""), || Ok(operator.output(&types)))?;
    let columns = asked.map_err(|reason| Error::invalid(format!("operator \"{name}\" is refused: {reason}")))?;
    let columns: Vec<(String, DataType)> =
        columns.into_iter().map(|(name, data_type)| (name, planned(&data_type))).collect();
    let verb = Verb::Custom { operator: Foreign::new(&name, operator), keys };
    Ok(temporal(verb, inputs.iter().map(|(state, _)| state.plan.clone()).collect(), schema_of(&columns)?))
}

/// Places of keys, which must be columns.
fn places(operator: &str, state: &FrameState, keys: &[Expr]) -> Result<Vec<usize>, Error> {
    let place = |key: &Expr| match key {
        Expr::Column(column) => expression::position(state.schema(), &column.name),
        other => {
            let error = format!("key {} of operator \"{operator}\" is no column", name_of(other));
            Err(Error::invalid(error).with_hint("Compute it first, with with_columns(..)."))
        }
    };
    keys.iter().map(place).collect()
}
