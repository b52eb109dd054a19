//! From a call's description to its state, and from a batch to the rows that the call sees.
//!
//! Law: a call sees the rows on which its filter is true, with its argument; a DISTINCT call sees
//! the values that come into being and cease to be ([`super::distinct`]). A call that sees all rows
//! copies nothing.

use anabranch_arrangement::Floor;
use anabranch_batch::{Batch, Diffs, Time, gather};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::bits::{BitVerb, Bits};
use super::boolean::Boolean;
use super::count::{Count, count_rows};
use super::custom::CustomAggregate;
use super::custom_call::CustomCall;
use super::distinct::Distinct;
use super::extreme::{ExtremeState, KeptExtreme, Seen, extreme};
use super::float::FloatTotal;
use super::number_sum::NumberSum;
use super::ordered::Ordered;
use super::output::GroupOutcome;
use super::spec::{AggregateSpec, Unsupported};
use super::state::{Input, KnownState, Linear, State};
use super::sum::{ExactSum, SumVerb};
use super::turn::AggregateTurn;
use super::variance::{Divisor, Variance, VarianceReport};

/// A call at work. Columns are positions among the used ones.
pub(crate) struct CallState {
    argument: Option<usize>,
    /// The type that the state takes, if it is not the argument's own.
    argument_type: Option<DataType>,
    filter: Option<usize>,
    order: Vec<usize>,
    n_keys: usize,
    keeps_nulls: bool,
    distinct: Option<Distinct>,
    kind: CallKind,
}

enum CallKind {
    /// `count(*)` of this type: the group's multiplicity.
    Rows(DataType),
    Linear(Box<dyn State>),
    Extreme(Box<dyn ExtremeState>),
    Ordered(Box<Ordered>),
    Custom(Box<CustomCall>),
}

/// The input columns that an aggregate uses: keys, then those of the calls.
pub(crate) fn columns(spec: &AggregateSpec) -> Vec<usize> {
    let mut columns = spec.keys.clone();
    for call in &spec.calls {
        let order = call.order.iter().map(|key| key.column);
        for column in call.arguments().chain(call.filter).chain(order) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    columns
}

/// The state of every call.
pub(crate) fn states(spec: &AggregateSpec) -> Result<Vec<CallState>, Unsupported> {
    let columns = columns(spec);
    let types: Vec<DataType> = columns.iter().map(|&column| spec.input_types[column].clone()).collect();
    let state = |call: &AggregateCall| CallState::new(call, &columns, &types, spec.keys.len(), spec);
    spec.calls.iter().map(state).collect()
}

impl AggregateSpec {
    /// Whether every call is defined for its types.
    ///
    /// # Errors
    /// The first call that is not.
    pub fn check(&self) -> Result<(), Unsupported> {
        states(self).map(|_| ())
    }
}

impl CallState {
    /// The state of `call`, whose columns are those of the input; `columns` are the used ones, of
    /// these types.
    fn new(
        call: &AggregateCall,
        columns: &[usize],
        types: &[DataType],
        n_keys: usize,
        spec: &AggregateSpec,
    ) -> Result<CallState, Unsupported> {
        let effort = spec.effort;
        let keep = if spec.is_append_only { KeptExtreme::Winners } else { KeptExtreme::Values(effort) };
        let position =
            |column: usize| columns.iter().position(|&used| used == column).expect("columns of calls are used");
        let argument = call.argument.map(position);
        let order: Vec<usize> = call.order.iter().map(|key| position(key.column)).collect();
        if let AggregateFunction::Custom(function, _) = &call.function {
            if call.distinct {
                return Err(Unsupported::DistinctCustom { function: call.function.to_string() });
            }
            let arguments = call.arguments().map(position).collect();
            let function = CustomAggregate::of(function);
            let custom = CustomCall::new(function, arguments, types, n_keys, &call.output_type, effort);
            return Ok(CallState {
                argument,
                argument_type: None,
                filter: call.filter.map(position),
                order,
                n_keys,
                keeps_nulls: true,
                distinct: None,
                kind: CallKind::Custom(Box::new(custom)),
            });
        }
        if argument.is_none() && call.function != AggregateFunction::Count {
            return Err(Unsupported::types(&call.function, None, &call.output_type));
        }
        let keys = || types[..n_keys].iter().cloned();
        let (kind, argument_type) = match argument {
            Some(argument) if call.function.is_ordered() => {
                let values = std::iter::once(argument).chain(order.iter().copied()).map(|column| types[column].clone());
                let is_extreme = matches!(call.function, AggregateFunction::Min | AggregateFunction::Max);
                let kept = || keys().chain([types[argument].clone()]).collect();
                let extreme = is_extreme.then(|| extreme(&call.function, kept(), &call.output_type, keep)).flatten();
                let kind = match extreme {
                    Some(state) => CallKind::Extreme(state),
                    None => {
                        CallKind::Ordered(Box::new(Ordered::new(call, keys().chain(values).collect(), n_keys, effort)?))
                    }
                };
                (kind, None)
            }
            None if call.filter.is_none() && matches!(call.output_type, DataType::Int64 | DataType::UInt64) => {
                (CallKind::Rows(call.output_type.clone()), None)
            }
            _ => {
                let (state, argument_type) = linear(call, argument.map(|argument| &types[argument]))?;
                (CallKind::Linear(state), argument_type)
            }
        };
        let is_distinct = call.distinct && !call.function.ignores_duplicates() && matches!(kind, CallKind::Linear(_));
        let distinct = argument.filter(|_| is_distinct).map(|argument| {
            let types: Vec<DataType> = keys().chain([types[argument].clone()]).collect();
            Distinct::new(&types)
        });
        let keeps_nulls = call.function.keeps_nulls();
        Ok(CallState {
            argument,
            argument_type,
            filter: call.filter.map(position),
            order,
            n_keys,
            keeps_nulls,
            distinct,
            kind,
        })
    }

    /// Merges a turn's rows; returns pairs of results.
    pub(crate) fn step(&mut self, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
        match &self.kind {
            CallKind::Rows(output_type) => count_rows(turn, output_type, outcome),
            CallKind::Extreme(_) => self.step_extreme(turn, outcome),
            CallKind::Ordered(_) => self.step_ordered(turn, outcome),
            CallKind::Custom(_) => self.step_custom(turn, outcome),
            CallKind::Linear(_) if self.filter.is_none() && self.distinct.is_none() => self.step_all(turn, outcome),
            CallKind::Linear(_) => self.step_some(turn, outcome),
        }
    }

    /// Says that so many more groups are likely to come.
    pub(crate) fn reserve(&mut self, groups: usize) {
        if let CallKind::Linear(state) = &mut self.kind {
            state.reserve(groups);
        }
    }

    /// Spare time.
    pub(crate) fn idle(&mut self) {
        match &mut self.kind {
            CallKind::Extreme(state) => state.idle(),
            CallKind::Ordered(ordered) => ordered.idle(),
            CallKind::Custom(custom) => custom.idle(),
            CallKind::Rows(_) | CallKind::Linear(_) => {}
        }
    }

    /// Whether the state is a sum over rows, which may come in any pieces, also those of one time.
    pub(crate) fn is_sum(&self) -> bool {
        matches!(self.kind, CallKind::Rows(_) | CallKind::Linear(_))
    }

    /// Whether it takes all rows of a batch as they are, those included that belong to no segment.
    pub(crate) fn takes_absent(&self) -> bool {
        self.is_sum() && self.filter.is_none() && self.distinct.is_none()
    }

    pub(crate) fn is_ordered(&self) -> bool {
        match &self.kind {
            CallKind::Ordered(_) => true,
            CallKind::Custom(custom) => custom.is_ordered(),
            CallKind::Rows(_) | CallKind::Linear(_) | CallKind::Extreme(_) => false,
        }
    }

    /// Leaves in `slots` only those of which nothing is remembered.
    pub(crate) fn retain_zero(&self, slots: &mut Vec<u32>) {
        match &self.kind {
            CallKind::Linear(state) => state.retain_zero(slots),
            CallKind::Extreme(state) => state.retain_zero(slots),
            // (A user's state begins anew when its group has no rows.)
            CallKind::Rows(_) | CallKind::Ordered(_) | CallKind::Custom(_) => {}
        }
    }

    /// Makes the state of some slots that of nothing. What is kept in order leaves by its floor.
    pub(crate) fn clear(&mut self, slots: &[u32]) {
        match &mut self.kind {
            CallKind::Linear(state) => state.clear(slots),
            CallKind::Extreme(state) => state.clear(slots),
            CallKind::Custom(custom) => custom.clear(slots),
            CallKind::Rows(_) | CallKind::Ordered(_) => {}
        }
    }

    /// Lets go of what is kept in order of groups with a key below a floor, whose column is a
    /// position among the keys.
    pub(crate) fn set_floor(&mut self, floor: Floor) {
        match &mut self.kind {
            CallKind::Extreme(state) => state.set_floor(floor),
            CallKind::Ordered(ordered) => ordered.set_floor(floor),
            CallKind::Custom(custom) => custom.set_floor(floor),
            CallKind::Rows(_) | CallKind::Linear(_) => {}
        }
    }

    /// Lets go of the distinct values of groups with a key that has passed.
    pub(crate) fn free_distinct(&mut self, passed: &[(usize, i64)]) {
        if let Some(distinct) = &mut self.distinct {
            distinct.free(passed);
        }
    }

    /// Slot `i` is from now on what slot `old_of_new[i]` was.
    pub(crate) fn renumber(&mut self, old_of_new: &[u32]) {
        match &mut self.kind {
            CallKind::Linear(state) => state.renumber(old_of_new),
            CallKind::Extreme(state) => state.renumber(old_of_new),
            CallKind::Custom(custom) => custom.renumber(old_of_new),
            CallKind::Rows(_) | CallKind::Ordered(_) => {}
        }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let distinct = self.distinct.as_ref().map_or(0, Distinct::size_bytes);
        distinct
            + match &self.kind {
                CallKind::Rows(_) => 0,
                CallKind::Linear(state) => state.size_bytes(),
                CallKind::Extreme(state) => state.size_bytes(),
                CallKind::Ordered(ordered) => ordered.size_bytes(),
                CallKind::Custom(custom) => custom.size_bytes(),
            }
    }

    /// A linear call that sees all rows.
    fn step_all(&mut self, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
        let argument = self.argument.map(|argument| self.convert(turn.batch.column(argument)));
        let input = Input {
            argument,
            segment: &turn.segments.of_row,
            diffs: turn.batch.diffs(),
            multiplicities: Some(turn.multiplicities),
            known: self.argument.map(|argument| KnownState { argument, deltas: &turn.deltas }),
        };
        step_linear(&mut self.kind, &input, turn, outcome)
    }

    /// A linear call with a filter, or DISTINCT.
    fn step_some(&mut self, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
        let mut rows = self.rows_seen(turn.batch, self.distinct.is_some());
        let mut diffs = turn.batch.diffs().take(&rows);
        if let (Some(distinct), Some(argument)) = (&mut self.distinct, self.argument) {
            let columns = (0..self.n_keys).chain([argument]).map(|column| turn.batch.column(column).clone());
            let columns = gather::take(&columns.collect::<Vec<_>>(), &rows);
            let (picked, changes) = distinct.step(&columns, &turn.batch.times().take(&rows), &diffs);
            rows = picked.into_iter().map(|row| rows[row as usize]).collect();
            diffs = Diffs::Column(changes.into());
        }
        let segment: Vec<u32> = rows.iter().map(|&row| turn.segments.of_row[row as usize]).collect();
        let argument = self.argument.map(|argument| {
            let taken = gather::take(&[turn.batch.column(argument).clone()], &rows);
            self.convert(&taken[0])
        });
        let input = Input { argument, segment: &segment, diffs: &diffs, multiplicities: None, known: None };
        step_linear(&mut self.kind, &input, turn, outcome)
    }

    /// Whether [`take_rows`](CallState::take_rows) does anything.
    pub(crate) fn takes_rows(&self) -> bool {
        self.argument.is_some() && matches!(&self.kind, CallKind::Extreme(state) if state.takes_rows())
    }

    /// Takes the complete rows of a turn (the used columns, keyed by the groups' keys), all of
    /// them, before they are merged, in one or more portions.
    pub(crate) fn take_rows(&mut self, batch: &Batch, upto: Time) {
        let Some(argument) = self.argument.filter(|_| self.takes_rows()) else { return };
        let columns: Vec<usize> = (0..self.n_keys).chain([argument]).collect();
        let has_nulls = batch.column(argument).logical_null_count() > 0;
        let mut rows = batch.project(&columns);
        if self.filter.is_some() || has_nulls {
            rows = rows.take(&self.rows_seen(batch, true));
        }
        if let CallKind::Extreme(state) = &mut self.kind {
            state.take(rows, upto);
        }
    }

    fn step_extreme(&mut self, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
        let argument = self.argument.expect("extreme calls have an argument");
        let seen = Seen {
            input: Input {
                argument: Some(turn.batch.column(argument).clone()),
                segment: &turn.segments.of_row,
                diffs: turn.batch.diffs(),
                multiplicities: None,
                known: None,
            },
            filter: self.filter.map(|filter| turn.batch.column(filter).as_boolean()),
            keys: &turn.batch.columns()[..self.n_keys],
            hashes: turn.hashes,
        };
        match &mut self.kind {
            CallKind::Extreme(state) => {
                state.resize(turn.n_slots);
                state.step(seen, turn.segments, outcome)
            }
            CallKind::Rows(_) | CallKind::Linear(_) | CallKind::Ordered(_) | CallKind::Custom(_) => {
                unreachable!("the caller has matched the kind")
            }
        }
    }

    fn step_ordered(&mut self, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
        let argument = self.argument.expect("ordered calls have an argument");
        let columns: Vec<usize> = (0..self.n_keys).chain([argument]).chain(self.order.iter().copied()).collect();
        let has_nulls = !self.keeps_nulls && turn.batch.column(argument).logical_null_count() > 0;
        let rows = turn.batch.project(&columns);
        let rows = match self.filter.is_some() || has_nulls {
            true => rows.take(&self.rows_seen(turn.batch, !self.keeps_nulls)),
            false => rows,
        };
        let (keys, key_of_group) = turn.keys.expect("keys are made when there is an ordered call");
        match &mut self.kind {
            CallKind::Ordered(ordered) => ordered.step(rows, turn.upto, turn.segments, (keys, key_of_group), outcome),
            CallKind::Rows(_) | CallKind::Linear(_) | CallKind::Extreme(_) | CallKind::Custom(_) => {
                unreachable!("the caller has matched the kind")
            }
        }
    }

    fn step_custom(&mut self, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
        let seen = self.filter.is_some().then(|| self.rows_seen(turn.batch, false));
        match &mut self.kind {
            CallKind::Custom(custom) => custom.step(turn, seen, outcome),
            CallKind::Rows(_) | CallKind::Linear(_) | CallKind::Extreme(_) | CallKind::Ordered(_) => {
                unreachable!("the caller has matched the kind")
            }
        }
    }

    /// Rows on which the filter is true and, if `skip_nulls`, the argument is not NULL.
    fn rows_seen(&self, batch: &Batch, skip_nulls: bool) -> Vec<u32> {
        let nulls = self.argument.filter(|_| skip_nulls).and_then(|argument| batch.column(argument).logical_nulls());
        let filter = self.filter.map(|filter| batch.column(filter).as_boolean());
        let passes = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let is_there = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        (0..batch.len() as u32).filter(|&row| passes(row as usize) && is_there(row as usize)).collect()
    }

    fn convert(&self, argument: &ArrayRef) -> ArrayRef {
        match &self.argument_type {
            Some(data_type) => cast(argument, data_type).expect("the conversion was chosen for the argument's type"),
            None => argument.clone(),
        }
    }
}

fn step_linear(kind: &mut CallKind, input: &Input, turn: &AggregateTurn, outcome: &mut GroupOutcome) -> ArrayRef {
    match kind {
        CallKind::Linear(state) => {
            state.resize(turn.n_slots);
            state.step(input, turn.segments, outcome)
        }
        CallKind::Rows(_) | CallKind::Extreme(_) | CallKind::Ordered(_) | CallKind::Custom(_) => {
            unreachable!("the caller has matched the kind")
        }
    }
}

/// The state of a linear call, and the type it takes its argument as, if not its own.
fn linear(
    call: &AggregateCall,
    argument: Option<&DataType>,
) -> Result<(Box<dyn State>, Option<DataType>), Unsupported> {
    let unsupported = || Unsupported::types(&call.function, argument, &call.output_type);
    let output = &call.output_type;
    let state: (Box<dyn State>, Option<DataType>) = match (&call.function, argument) {
        (AggregateFunction::Count, _) if matches!(output, DataType::Int64 | DataType::UInt64) => {
            (Box::new(Linear::new(Count { output_type: output.clone() })), None)
        }
        (AggregateFunction::Sum, Some(argument)) => sum(SumVerb::Sum, argument, output).ok_or_else(unsupported)?,
        (AggregateFunction::Avg, Some(argument)) => sum(SumVerb::Avg, argument, output).ok_or_else(unsupported)?,
        (AggregateFunction::BoolAnd, Some(DataType::Boolean)) => (Box::new(Linear::new(Boolean::And)), None),
        (AggregateFunction::BoolOr, Some(DataType::Boolean)) => (Box::new(Linear::new(Boolean::Or)), None),
        (AggregateFunction::BitAnd, Some(argument)) => bits(BitVerb::And, argument, output).ok_or_else(unsupported)?,
        (AggregateFunction::BitOr, Some(argument)) => bits(BitVerb::Or, argument, output).ok_or_else(unsupported)?,
        (AggregateFunction::BitXor, Some(argument)) => bits(BitVerb::Xor, argument, output).ok_or_else(unsupported)?,
        (function, Some(argument)) if *output == DataType::Float64 => {
            variance(function, argument).ok_or_else(unsupported)?
        }
        _ => return Err(unsupported()),
    };
    Ok(state)
}

type LinearState = Option<(Box<dyn State>, Option<DataType>)>;

fn sum(verb: SumVerb, argument: &DataType, output_type: &DataType) -> LinearState {
    use DataType::*;
    let output_type = output_type.clone();
    if argument.is_floating() {
        let is_double = *argument == Float64;
        return output_type.is_floating().then(|| -> (Box<dyn State>, _) {
            (Box::new(Linear::new(FloatTotal { verb, output_type })), (!is_double).then_some(Float64))
        });
    }
    let fits = match (argument, verb, &output_type) {
        (Duration(from), _, Duration(to)) => from == to,
        (Duration(_), ..) => false,
        // (Decimals without a fraction: partial sums of integers, which have room for more.)
        (_, SumVerb::Sum, Int64 | UInt64) => argument.is_integer() || matches!(argument, Decimal128(_, 0)),
        (LargeBinary, _, LargeBinary) => true,
        (LargeBinary, ..) => false,
        (_, _, Float64 | Decimal64(..) | Decimal128(..) | Decimal256(..) | LargeBinary) => true,
        _ => false,
    };
    let is_native =
        matches!(argument, LargeBinary | Int32 | Int64 | UInt64 | Decimal64(..) | Decimal128(..) | Decimal256(..));
    let argument_type = (!is_native).then_some(Int64);
    let state: Box<dyn State> = match argument {
        _ if !fits => return None,
        LargeBinary => Box::new(Linear::new(NumberSum { verb })),
        Decimal256(_, input_scale) => {
            Box::new(Linear::new(ExactSum::<5> { verb, input_scale: *input_scale, output_type }))
        }
        Decimal64(_, input_scale) | Decimal128(_, input_scale) => {
            Box::new(Linear::new(ExactSum::<3> { verb, input_scale: *input_scale, output_type }))
        }
        _ if argument.is_integer() || matches!(argument, Duration(_)) => {
            Box::new(Linear::new(ExactSum::<3> { verb, input_scale: 0, output_type }))
        }
        _ => return None,
    };
    Some((state, argument_type))
}

fn bits(verb: BitVerb, argument: &DataType, output_type: &DataType) -> LinearState {
    let data_type = argument.clone();
    let fits = argument.is_integer() && argument == output_type;
    fits.then(|| -> (Box<dyn State>, _) { (Box::new(Linear::new(Bits { verb, data_type })), None) })
}

fn variance(function: &AggregateFunction, argument: &DataType) -> LinearState {
    let (divisor, report) = match function {
        AggregateFunction::VarianceSample => (Divisor::Sample, VarianceReport::Variance),
        AggregateFunction::VariancePopulation => (Divisor::Population, VarianceReport::Variance),
        AggregateFunction::StddevSample => (Divisor::Sample, VarianceReport::Deviation),
        AggregateFunction::StddevPopulation => (Divisor::Population, VarianceReport::Deviation),
        _ => return None,
    };
    let argument_type = match argument {
        DataType::Float64 => None,
        _ if argument.is_numeric() => Some(DataType::Float64),
        _ => return None,
    };
    Some((Box::new(Linear::new(Variance { divisor, report, scratch: Default::default() })), argument_type))
}
