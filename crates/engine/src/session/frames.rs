//! Fluent queries: frames are started, and live as long as their run.

use std::collections::BTreeMap;

use anabranch_batch::Time;
use anabranch_plan::bounds::Promises;

use super::state::Session;
use crate::cluster::{DataflowSpec, Egress, Read};
use crate::error::Error;
use crate::frame::{Frame, FrameRun, RunInput, has_open_variable};
use crate::render::temporal::input_name;

impl Session {
    /// Sets a frame to work. Its inputs are empty and begin before all times.
    ///
    /// # Errors
    /// The first error of building the frame; `Invalid` when an expression cannot be evaluated.
    pub fn start(&mut self, frame: &Frame) -> Result<FrameRun<'_>, Error> {
        let state = frame.state()?;
        if has_open_variable(&state.plan) {
            return Err(Error::invalid("a variable of a loop is used outside of the loop's body")
                .with_hint("Use the frame that iterate returns."));
        }
        let dataflow = self.dataflows.next_dataflow();
        let mut inputs = BTreeMap::new();
        let mut reads = BTreeMap::new();
        for (name, events) in &state.inputs {
            let collection = self.dataflows.next_collection();
            let read = Read {
                collection,
                is_input: true,
                arrangements: vec![],
                primary_key: vec![],
                promises: Promises::default(),
            };
            reads.insert(input_name(name), read);
            inputs.insert(name.clone(), RunInput::new(collection, events)?);
        }
        inputs.values().for_each(|input| self.cluster.create_events(input.collection));
        let installed = self.cluster.install(DataflowSpec {
            dataflow,
            name: "frame".to_owned(),
            plan: state.plan.clone(),
            reads,
            as_of: Time::MIN,
            exports: vec![],
            egress: Egress::Events,
        });
        if let Err(error) = installed {
            inputs.values().for_each(|input| self.cluster.drop_input(input.collection));
            return Err(error);
        }
        Ok(FrameRun::new(&mut self.cluster, dataflow, frame.clone(), inputs, self.options.clock.clone()))
    }
}
