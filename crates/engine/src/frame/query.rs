//! The frame: a plan over events, with what it needs to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::Verb;
use anabranch_plan::{Node, Plan};
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion_common::{DFSchema, DFSchemaRef};

use super::events::Events;
use super::expression;
use super::windowed::Windowed;
use crate::error::Error;
use crate::render::temporal::variant;

/// A query over events. See the [module page](super).
#[derive(Clone, Debug)]
pub struct Frame {
    /// The query, or the first error of building it.
    state: Result<Arc<FrameState>, Error>,
}

/// What is known of a query.
#[derive(Clone, Debug)]
pub(crate) struct FrameState {
    /// What is computed.
    pub plan: Arc<Plan>,
    /// The inputs it reads, by name.
    pub inputs: BTreeMap<String, Events>,
    /// Columns that every verb keeps and works within: the keys of the groups that a sub-query is
    /// applied to.
    pub group: Vec<String>,
    /// The windows that its events lie in, if they do.
    pub windowed: Option<Windowed>,
}

impl Frame {
    pub(super) fn new(plan: Arc<Plan>, inputs: BTreeMap<String, Events>, group: Vec<String>) -> Frame {
        Frame { state: Ok(Arc::new(FrameState { plan, inputs, group, windowed: None })) }
    }

    /// This query in other groups, by a plan that has their keys.
    pub(super) fn regrouped(state: &FrameState, plan: Arc<Plan>, group: Vec<String>) -> Frame {
        let (inputs, windowed) = (state.inputs.clone(), state.windowed.as_ref().map(Windowed::further));
        Frame { state: Ok(Arc::new(FrameState { plan, inputs, group, windowed })) }
    }

    /// A frame that is only its error.
    pub(super) fn failed(error: Error) -> Frame {
        Frame { state: Err(error) }
    }

    pub(crate) fn state(&self) -> Result<&Arc<FrameState>, Error> {
        self.state.as_ref().map_err(Error::clone)
    }

    /// Columns of the rows.
    ///
    /// # Errors
    /// The first error of building the frame.
    pub fn schema(&self) -> Result<SchemaRef, Error> {
        Ok(self.state()?.plan.arrow_schema())
    }

    /// The query as nodes, for those who run it in their own way.
    ///
    /// # Errors
    /// The first error of building the frame.
    pub fn plan(&self) -> Result<Arc<Plan>, Error> {
        Ok(Arc::clone(&self.state()?.plan))
    }

    /// The plan, as a tree of nodes, with what is known of their streams, when windows emit, and
    /// what that chooses: how verbs run.
    ///
    /// # Errors
    /// The first error of building the frame.
    pub fn explain(&self) -> Result<String, Error> {
        let remark = |plan: &Plan| {
            let known = Some(Properties::of(plan).remark(plan)).filter(|text| !text.is_empty());
            let runs = variant(plan).map(|variant| format!("runs with {variant}"));
            let parts: Vec<String> = known.into_iter().chain(emission(plan)).chain(runs).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        };
        Ok(anabranch_plan::explain::explain(&self.state()?.plan, &remark))
    }

    /// The frame that `build` makes of this one's query, in no windows any more.
    pub(super) fn then(&self, build: impl FnOnce(&FrameState) -> Result<Arc<Plan>, Error>) -> Frame {
        self.next(|state| Ok((build(state)?, None)))
    }

    /// The frame that `build` makes of this one's query, in the same windows.
    pub(super) fn then_rows(&self, build: impl FnOnce(&FrameState) -> Result<Arc<Plan>, Error>) -> Frame {
        self.next(|state| Ok((build(state)?, state.windowed.as_ref().map(Windowed::further))))
    }

    /// The frame that `build` makes of this one's query, in windows of its own.
    pub(super) fn then_windowed(
        &self,
        build: impl FnOnce(&FrameState) -> Result<(Arc<Plan>, Windowed), Error>,
    ) -> Frame {
        self.next(|state| build(state).map(|(plan, windowed)| (plan, Some(windowed))))
    }

    fn next(&self, build: impl FnOnce(&FrameState) -> Result<(Arc<Plan>, Option<Windowed>), Error>) -> Frame {
        let next = |state: &Arc<FrameState>| {
            let (plan, windowed) = build(state)?;
            Ok(Arc::new(FrameState { plan, inputs: state.inputs.clone(), group: state.group.clone(), windowed }))
        };
        Frame { state: self.state().and_then(next) }
    }

    /// The frame that `build` makes of this one's query and another's; both must work within the
    /// same groups.
    pub(super) fn then_with(
        &self,
        other: &Frame,
        build: impl FnOnce(&FrameState, &FrameState) -> Result<Arc<Plan>, Error>,
    ) -> Frame {
        let next = || {
            let (left, right) = (self.state()?, other.state()?);
            if left.group != right.group {
                return Err(Error::invalid("the two frames are of different groups")
                    .with_hint("Inside group_apply, combine frames that come from the group's own frame."));
            }
            let mut inputs = left.inputs.clone();
            for (name, events) in &right.inputs {
                if inputs.get(name).is_some_and(|known| known != events) {
                    return Err(Error::invalid(format!("two different inputs are named \"{name}\""))
                        .with_hint("Give them different names, or build both frames from one."));
                }
                inputs.insert(name.clone(), events.clone());
            }
            let plan = build(left, right)?;
            Ok(Arc::new(FrameState { plan, inputs, group: left.group.clone(), windowed: None }))
        };
        Frame { state: next() }
    }
}

impl FrameState {
    pub(super) fn schema(&self) -> &DFSchema {
        &self.plan.schema
    }

    /// The position of a column.
    pub(super) fn position(&self, name: &str) -> Result<usize, Error> {
        expression::position(self.schema(), name)
    }

    /// A temporal node over this query, of the same columns.
    pub(super) fn verb(&self, verb: Verb) -> Arc<Plan> {
        temporal(verb, vec![self.plan.clone()], self.plan.schema.clone())
    }
}

/// When the results of windows come.
fn emission(plan: &Plan) -> Option<String> {
    let Node::Temporal { verb, .. } = &plan.node else { return None };
    match verb {
        Verb::Hopping(_) => Some("emits on close".to_owned()),
        Verb::Session { .. } | Verb::Quantize { progress: 1, .. } => Some("emits every change".to_owned()),
        Verb::Quantize { windows, progress } if windows.period == *progress => {
            Some("emits as of the window's start".to_owned())
        }
        Verb::Quantize { progress, .. } => Some(format!("emits every {progress} ticks")),
        _ => None,
    }
}

/// A temporal node.
pub(super) fn temporal(verb: Verb, inputs: Vec<Arc<Plan>>, schema: DFSchemaRef) -> Arc<Plan> {
    Arc::new(Plan { node: Node::Temporal { verb, inputs }, schema })
}

/// A schema of nullable columns.
///
/// # Errors
/// When two have the same name.
pub(super) fn schema_of(columns: &[(String, DataType)]) -> Result<DFSchemaRef, Error> {
    for (at, (name, _)) in columns.iter().enumerate() {
        if columns[..at].iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!("two columns are named \"{name}\""))
                .with_hint("Give one another name with .alias(..)."));
        }
    }
    let fields = columns.iter().map(|(name, data_type)| (None, Arc::new(Field::new(name, data_type.clone(), true))));
    let schema = DFSchema::new_with_metadata(fields.collect(), Default::default())
        .map_err(|error| Error::internal(error.strip_backtrace()))?;
    Ok(Arc::new(schema))
}

/// Names and types of a schema.
pub(super) fn columns_of(schema: &DFSchema) -> Vec<(String, DataType)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}
