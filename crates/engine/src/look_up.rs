//! Look-ups by key that need no evaluation: the commonest questions of applications.
//!
//! ```text
//!     SELECT columns FROM relation WHERE key column = $1 [AND key column = $2 ..]
//! ```
//!
//! Law: where the conditions are exactly the columns of an arrangement's key, each compared with a
//! value of the column's type, the rows under that key are the rows that pass: a key that is found
//! is equal, and NULL is never looked up. So nothing is evaluated, and no plan is bound to values.
//!
//! Cost: recognising is a walk over the conditions, once a plan; running is a look-up.

use anabranch_batch::types;
use anabranch_plan::positions::position_near;
use anabranch_plan::{Node, Plan};
use anabranch_sql::index_of;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, Operator};

use crate::catalog::{Catalog, Object};
use crate::cluster::ArrangementId;
use crate::direct::conjuncts;

/// A look-up.
#[derive(Clone, Debug)]
pub(crate) struct LookUp {
    pub arrangement: ArrangementId,
    key: Vec<KeyValue>,
    /// Columns of the relation that are wanted.
    pub columns: Vec<usize>,
}

/// What a column of the key is compared with.
#[derive(Clone, Debug)]
struct KeyValue {
    data_type: DataType,
    source: KeySource,
}

#[derive(Clone, Debug)]
enum KeySource {
    Parameter(usize),
    Literal(ScalarValue),
}

impl LookUp {
    /// The look-up that a plan is, if it is one.
    pub fn of(plan: &Plan, catalog: &Catalog) -> Option<LookUp> {
        let Node::Stage { input, filter, project } = &plan.node else { return None };
        let Node::Scan { relation, columns: read } = &input.node else { return None };
        let place =
            |expr: &Expr, near: usize| position_near(&expr.clone().unalias(), &input.schema, near).map(|at| read[at]);
        let position = |expr: &Expr| place(expr, 0);
        let columns = project.iter().enumerate().map(|(at, expr)| place(expr, at)).collect::<Option<Vec<usize>>>()?;
        let object = catalog.find(relation).filter(|object| object.is_readable())?;
        let fixed = filter.iter().flat_map(conjuncts).map(|condition| fixed(condition, &position));
        let fixed = fixed.collect::<Option<Vec<(usize, KeySource)>>>()?;
        let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let (arrangement, key) = arrangements
            .filter_map(|arranged| Some((arranged.arrangement, key_of(object, &arranged.key, &fixed)?)))
            .min_by_key(|(arrangement, _)| *arrangement)?;
        Some(LookUp { arrangement, key, columns })
    }

    /// The key for these values of parameters; `None` where a value is NULL or of another type.
    pub fn key(&self, values: &[ScalarValue]) -> Option<Vec<ArrayRef>> {
        let column = |key: &KeyValue| {
            let value = match &key.source {
                KeySource::Parameter(at) => values.get(*at)?,
                KeySource::Literal(value) => value,
            };
            let fits = !value.is_null() && value.data_type() == key.data_type;
            let array = fits.then(|| value.to_array().ok())??;
            types::narrowed(&array).ok()
        };
        self.key.iter().map(column).collect()
    }
}

/// The column and the value of a condition that says that they are equal.
fn fixed(condition: &Expr, position: &impl Fn(&Expr) -> Option<usize>) -> Option<(usize, KeySource)> {
    let Expr::BinaryExpr(binary) = condition else { return None };
    let value = |expr: &Expr| match expr {
        Expr::Literal(value, _) => Some(KeySource::Literal(value.clone())),
        other => index_of(other).map(KeySource::Parameter),
    };
    if binary.op != Operator::Eq {
        return None;
    }
    match position(&binary.left) {
        Some(column) => Some((column, value(&binary.right)?)),
        None => Some((position(&binary.right)?, value(&binary.left)?)),
    }
}

/// The values of a key's columns, where the conditions are about these and no others.
fn key_of(object: &Object, key: &[usize], fixed: &[(usize, KeySource)]) -> Option<Vec<KeyValue>> {
    if key.is_empty() || key.len() != fixed.len() {
        return None;
    }
    let value = |column: &usize| {
        let (_, source) = fixed.iter().find(|(of, _)| of == column)?;
        Some(KeyValue { data_type: object.schema.field(*column).data_type().clone(), source: source.clone() })
    };
    key.iter().map(value).collect()
}
