//! A query, planned: the plan, and what is left to do with its answer.

use std::sync::Arc;

use anabranch_batch::numeric::NumericPlaces;
use anabranch_batch::{TextLimit, TimePrecision};
use anabranch_plan::{Plan, SortKey};
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::resolve::type_marks::EnumMark;

/// A query, planned.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The rows asked for. Its first `visible` columns are the query's, under the names its user
    /// wrote (names that repeat are told apart by a qualifier); further ones only serve
    /// `finish.order`.
    pub plan: Arc<Plan>,
    /// What is left to do with a finished answer.
    pub finish: Finish,
    /// Number of columns to show.
    pub visible: usize,
    /// Forms of the columns to show, beside their types.
    pub forms: Vec<Option<ColumnForm>>,
    /// Enumerations among the columns to show.
    pub enums: Vec<Option<EnumMark>>,
}

/// What the type of a column to show says beside its Arrow type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnForm {
    /// The type of a text: a document, a `uuid`, `varchar(n)` ..
    Text(TextLimit),
    /// The type of an array's texts.
    Elements(TextLimit),
    /// The digits of a time.
    Time(TimePrecision),
    /// The places of a numeric without a scale.
    Number(NumericPlaces),
}

impl ColumnForm {
    /// The field with this form declared.
    pub fn declare(self, field: Field) -> Field {
        match self {
            ColumnForm::Text(limit) => limit.declare(field),
            ColumnForm::Elements(limit) => limit.declare_elements(field),
            ColumnForm::Time(precision) => precision.declare(field),
            ColumnForm::Number(places) => places.declare(field),
        }
    }
}

impl Planned {
    /// A plan all of whose columns are shown, as they come.
    pub(crate) fn whole(plan: Arc<Plan>) -> Planned {
        Planned { visible: plan.schema.fields().len(), plan, finish: Finish::default(), forms: vec![], enums: vec![] }
    }

    /// The columns to show.
    pub fn columns(&self) -> SchemaRef {
        let fields = self.plan.schema.fields().iter().take(self.visible).enumerate();
        let field = |(at, field): (usize, &Arc<Field>)| match self.forms.get(at).copied().flatten() {
            Some(form) => Arc::new(form.declare(field.as_ref().clone())),
            None => match self.enums.get(at).and_then(Option::as_ref) {
                Some(mark) => Arc::new(mark.declare(field.as_ref().clone())),
                None => field.clone(),
            },
        };
        Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
    }
}

/// The top `ORDER BY`, `OFFSET` and `LIMIT` of a query, to be applied to its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// Order of the answer, by columns of the plan; empty leaves it open.
    pub order: Vec<SortKey>,
    /// Rows left out at the front.
    pub offset: usize,
    /// Rows kept after these; `None` keeps all.
    pub limit: Option<usize>,
}

impl Finish {
    /// Whether there is nothing to do.
    pub fn is_trivial(&self) -> bool {
        self.order.is_empty() && self.offset == 0 && self.limit.is_none()
    }
}
