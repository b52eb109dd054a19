//! A program as numbered steps, each once however many read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::placement::{Placement, Spread};
use crate::program::{ProgramStep, Shards, Verb};
use crate::relational::relational;
use crate::safety::{KnownSteps, known_step};
use anabranch_engine::Error;

/// The steps of a program, inputs before those that read them; the last one is the result.
pub struct Tasks {
    /// In order.
    pub list: Vec<Task>,
}

/// A step, and who reads it.
pub struct Task {
    /// What is done.
    pub step: Arc<ProgramStep>,
    /// Readers, and which of their inputs it is.
    pub readers: Vec<(usize, usize)>,
    /// Places of the key's columns.
    pub key: Vec<usize>,
    /// Whether it is a query of SQL over rows that all lie in the first shard: others do not ask
    /// it, as an aggregate of nothing is a row.
    pub is_first_only: bool,
    /// Whether its rows are measured where it makes them: a movement behind it hands batches on,
    /// and reads no row.
    pub is_measured: bool,
}

impl Tasks {
    /// The steps of a program.
    pub fn of(program: &Shards) -> Result<Tasks, Error> {
        let mut tasks = Tasks { list: Vec::new() };
        let mut places = BTreeMap::new();
        tasks.add(program.step()?, &mut places)?;
        tasks.check_names()?;
        // (Readers have greater numbers than what they read.)
        for place in (0..tasks.list.len()).rev() {
            let is_measured = tasks.list[place].readers.iter().any(|(reader, _)| {
                let reader = &tasks.list[*reader];
                reader.passes_bytes() && reader.is_measured || reader.hands_on()
            });
            tasks.list[place].is_measured = is_measured;
        }
        let mut known = KnownSteps::new();
        for task in &mut tasks.list {
            if let Verb::Query { frame } = &task.step.verb
                && relational(&*frame.plan()?).is_some()
            {
                let Placement { across, within } = known_step(&task.step, &mut known)?.placement;
                task.is_first_only = across == Spread::One && within == Spread::One;
            }
        }
        Ok(tasks)
    }

    /// The place of the source of this name.
    pub fn source(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|task| task.source_name() == Some(name))
    }

    /// The steps as text, a line each: equal for programs that may run together. What queries and
    /// functions compute is not part of it, only the columns that come out.
    pub fn text(&self) -> String {
        let line = |(at, task): (usize, &Task)| {
            let ProgramStep { verb, schema, key, layout, .. } = &*task.step;
            let verb = match verb {
                Verb::Source { events, .. } => format!("source {}", events.name()),
                Verb::Dataset(dataset) => format!("dataset {}", dataset.name),
                Verb::Rekey => "rekey".to_owned(),
                Verb::Choose(places) => format!("columns {places:?}"),
                Verb::InTime => "in order of time".to_owned(),
                Verb::Query { .. } => "query".to_owned(),
                Verb::Move { kind, reach } => format!("{} {reach:?}", kind.name()),
            };
            let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
            let (columns, key) = (columns.collect::<Vec<_>>().join(", "), key.join(", "));
            format!("step {at}: {verb} by ({key}) in {layout:?}, readers {:?}, columns {columns}\n", task.readers)
        };
        self.list.iter().enumerate().map(line).collect()
    }

    fn add(
        &mut self,
        step: &Arc<ProgramStep>,
        places: &mut BTreeMap<*const ProgramStep, usize>,
    ) -> Result<usize, Error> {
        if let Some(place) = places.get(&Arc::as_ptr(step)) {
            return Ok(*place);
        }
        let inputs = step.inputs.iter().map(|input| self.add(input, places)).collect::<Result<Vec<_>, Error>>()?;
        let place = self.list.len();
        for (port, input) in inputs.into_iter().enumerate() {
            self.list[input].readers.push((place, port));
        }
        let key = step.key.iter().map(|name| step.schema.index_of(name));
        let key = key.collect::<Result<Vec<_>, _>>().map_err(|error| Error::internal(error.to_string()))?;
        self.list.push(Task { step: Arc::clone(step), readers: vec![], key, is_first_only: false, is_measured: false });
        places.insert(Arc::as_ptr(step), place);
        Ok(place)
    }

    fn check_names(&self) -> Result<(), Error> {
        let mut names: Vec<&str> = self.list.iter().filter_map(Task::source_name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => Err(Error::invalid(format!("two sources of the program are named \"{}\"", pair[0]))
                .with_hint("Build both parts from one source, or give them different names.")),
        }
    }
}

impl Task {
    /// Whether it moves whole batches, or ranges of them.
    pub fn hands_on(&self) -> bool {
        matches!(&self.step.verb, Verb::Move { kind, .. } if kind.hands_on())
    }

    /// Whether its rows have the bytes of those that it takes.
    fn passes_bytes(&self) -> bool {
        matches!(self.step.verb, Verb::Rekey) && self.step.key.is_empty()
    }

    /// Its name, if it is a source.
    pub fn source_name(&self) -> Option<&str> {
        match &self.step.verb {
            Verb::Source { events, .. } => Some(events.name()),
            _ => None,
        }
    }
}
