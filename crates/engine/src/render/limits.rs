//! What may leave the state of a plan's nodes, as limits of steps.

use anabranch_arrangement::has_ticks;
use anabranch_plan::Plan;
use anabranch_plan::bounds::{self, Leaving};

use super::prepare::Preparer;
use super::specs::types_of;
use crate::cluster::promised::{Reading, leaving};
use crate::cluster::spec::LimitStep;

impl Preparer<'_> {
    /// The limits of a node's inputs.
    pub(super) fn limits(&self, plan: &Plan) -> Vec<LimitStep> {
        let of_input = |(input, leaving): (usize, Vec<Leaving>)| {
            leaving.into_iter().map(move |Leaving { column, below }| LimitStep { input, column, below })
        };
        leaving(plan, &Reading(self.reads)).into_iter().enumerate().flat_map(of_input).collect()
    }

    /// What leaves the left side of a join and the right one.
    pub(super) fn leaving_sides(&self, plan: &Plan) -> [Option<Leaving>; 2] {
        let mut sides = leaving(plan, &Reading(self.reads)).into_iter();
        // (A reader has one floor; those of keys come first.)
        [(); 2].map(|()| sides.next().and_then(|leaving| leaving.into_iter().next()))
    }

    /// The rows of a plan of which no change will come.
    pub(super) fn floor_of(&self, plan: &Plan) -> Option<LimitStep> {
        let types = types_of(&plan.schema);
        let bounds = bounds::bounds(plan, &Reading(self.reads)).into_iter().enumerate();
        let mut bounds = bounds.filter(|(column, _)| has_ticks(&types[*column]));
        bounds.find_map(|(column, below)| Some(LimitStep { input: 0, column, below: below? }))
    }
}
