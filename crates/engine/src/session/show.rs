//! SHOW and DESCRIBE: the catalog and the cluster as rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::Time;
use anabranch_flow::steps::StepStats;
use anabranch_sql::column_type_name;
use anabranch_sql::statement::{ObjectKind, Show};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::util::display::array_value_to_string;

use super::explain::column_names;
use super::outcome::{Rows, SourceState, SourceStatus};
use super::state::Session;
use crate::catalog::{Index, Object, Watermark};
use crate::cluster::{ArrangementId, ArrangementStats, DataflowId};
use crate::error::Error;

/// The name of the one database.
const DATABASE: &str = "anabranch";

/// A column of an answer.
pub(super) enum ShowColumn {
    Text(Vec<Option<String>>),
    Number(Vec<Option<i64>>),
}

impl Session {
    /// What every arrangement holds, those that only queries share included.
    pub fn arrangements(&mut self) -> Vec<ArrangementStats> {
        self.allow_compaction();
        self.cluster.stats()
    }

    /// How long operators ran without a pause, by their kinds: no other query of their worker goes
    /// on meanwhile.
    pub fn steps(&mut self) -> Vec<StepStats> {
        self.cluster.steps()
    }

    /// Counts steps anew.
    pub fn reset_steps(&mut self) {
        self.cluster.reset_steps();
    }

    pub(super) fn show(&mut self, show: &Show) -> Result<Rows, Error> {
        match show {
            Show::Tables => self.show_tables(),
            Show::Schemas => self.show_schemas(),
            Show::Databases => rows(vec![("name", texts([DATABASE.to_owned()]))]),
            Show::Sources => self.show_sources(),
            Show::Views => rows(self.views(ObjectKind::View)),
            Show::MaterializedViews => self.show_materialized(),
            Show::Indexes { on } => self.show_indexes(on.as_deref()),
            Show::Arrangements => self.show_arrangements(),
            Show::Time => self.show_time(),
            Show::Operators => self.show_operators(),
            Show::Steps => self.show_steps(),
            Show::Watermarks => self.show_watermarks(),
            Show::Columns { relation } => self.describe(relation),
            Show::Create { relation } => self.show_create(relation),
            Show::Setting { name } => self.show_settings(name.as_deref()),
        }
    }

    /// The columns of a relation: name, type, whether NULL is allowed, key, default.
    pub(super) fn describe(&self, name: &str) -> Result<Rows, Error> {
        let object = self.catalog.get(name)?;
        let fields = object.schema.fields();
        let key = |idx: usize| object.primary_key.contains(&idx).then(|| "primary".to_string());
        let default = |idx: usize| object.defaults.get(idx).and_then(|d| d.as_ref()).map(ToString::to_string);
        rows(vec![
            ("column", texts(fields.iter().map(|field| field.name().clone()))),
            ("type", texts(fields.iter().map(|field| column_type_name(field)))),
            ("null", texts(fields.iter().map(|field| yes_no(field.is_nullable())))),
            ("key", ShowColumn::Text((0..fields.len()).map(key).collect())),
            ("default", ShowColumn::Text((0..fields.len()).map(default).collect())),
        ])
    }

    fn show_tables(&self) -> Result<Rows, Error> {
        let tables: Vec<&Object> = self.of_kind(ObjectKind::Table);
        let key = |table: &&Object| (!table.primary_key.is_empty()).then(|| table.column_list(&table.primary_key));
        rows(vec![
            ("name", texts(tables.iter().map(|table| table.name.clone()))),
            ("columns", texts(tables.iter().map(|table| all_columns(table)))),
            ("primary_key", ShowColumn::Text(tables.iter().map(key).collect())),
        ])
    }

    fn show_schemas(&self) -> Result<Rows, Error> {
        let names: BTreeSet<&str> = self.catalog.schemas().keys().map(String::as_str).chain(["public"]).collect();
        rows(vec![("name", texts(names.into_iter().map(str::to_owned)))])
    }

    fn show_sources(&self) -> Result<Rows, Error> {
        let statuses = self.pump.statuses();
        let connector = |status: &SourceStatus| {
            let object = self.catalog.find(&status.name)?;
            object.source.as_ref().map(|source| source.connector.clone())
        };
        let share = |status: &SourceStatus| {
            let total = status.progress.bytes_total.filter(|total| *total > 0)?;
            Some(format!("{}%", status.progress.bytes_read.min(total) * 100 / total))
        };
        let error = |status: &SourceStatus| match &status.state {
            SourceState::Failed(message) => Some(message.clone()),
            _ => status.progress.first_skipped.clone(),
        };
        rows(vec![
            ("name", texts(statuses.iter().map(|status| status.name.clone()))),
            ("connector", ShowColumn::Text(statuses.iter().map(connector).collect())),
            ("state", texts(statuses.iter().map(|status| state_name(&status.state).to_string()))),
            ("rows", numbers(statuses.iter().map(|status| status.rows as i64))),
            ("skipped", numbers(statuses.iter().map(|status| status.progress.skipped as i64))),
            ("read", ShowColumn::Text(statuses.iter().map(share).collect())),
            ("error", ShowColumn::Text(statuses.iter().map(error).collect())),
        ])
    }

    fn show_watermarks(&self) -> Result<Rows, Error> {
        let timed: Vec<(&Object, &Watermark)> =
            self.catalog.objects().filter_map(|object| Some((object, object.watermark.as_ref()?))).collect();
        let current = |(object, watermark): &(&Object, &Watermark)| {
            let value = watermark.value(&object.schema)?;
            array_value_to_string(&value, 0).ok()
        };
        rows(vec![
            ("name", texts(timed.iter().map(|(object, _)| object.name.clone()))),
            ("column", texts(timed.iter().map(|(_, watermark)| watermark.declared.column.clone()))),
            ("watermark", ShowColumn::Text(timed.iter().map(current).collect())),
            ("late_rows", numbers(timed.iter().map(|(_, watermark)| watermark.late as i64))),
        ])
    }

    fn views(&self, kind: ObjectKind) -> Vec<(&'static str, ShowColumn)> {
        let views = self.of_kind(kind);
        vec![
            ("name", texts(views.iter().map(|view| view.name.clone()))),
            ("columns", texts(views.iter().map(|view| all_columns(view)))),
            ("reads", texts(views.iter().map(|view| view.reads.iter().cloned().collect::<Vec<_>>().join(", ")))),
        ]
    }

    /// Materialized views, and how far those are that have not worked off what they read.
    fn show_materialized(&mut self) -> Result<Rows, Error> {
        self.await_dataflows_shortly()?;
        let now = self.timeline.last();
        let uppers: BTreeMap<ArrangementId, Time> =
            self.arrangements().into_iter().map(|stats| (stats.arrangement, stats.upper)).collect();
        let state = |view: &&Object| {
            let arrangements = view.maintained.iter().flat_map(|maintained| &maintained.arrangements);
            let is_behind = |upper: Option<&Time>| upper.is_some_and(|upper| *upper <= now);
            match arrangements.clone().any(|arranged| is_behind(uppers.get(&arranged.arrangement))) {
                true => format!("behind, {} rows worked off", self.rows_worked_off(&view.name)),
                false => "current".to_owned(),
            }
        };
        let states: Vec<String> = self.of_kind(ObjectKind::MaterializedView).iter().map(state).collect();
        let mut columns = self.views(ObjectKind::MaterializedView);
        columns.push(("state", texts(states)));
        rows(columns)
    }

    /// Rows that the operators of a view have put out.
    fn rows_worked_off(&self, view: &str) -> u64 {
        let own = self.dataflows.operators().filter(|operator| operator.name == view);
        let dataflows: BTreeSet<DataflowId> = own.map(|operator| operator.dataflow).collect();
        let counts = dataflows.into_iter().flat_map(|dataflow| self.cluster.operators(dataflow).into_values());
        counts.map(|counts| counts.rows).sum()
    }

    fn show_indexes(&self, on: Option<&str>) -> Result<Rows, Error> {
        if let Some(relation) = on {
            self.catalog.get(relation)?;
        }
        let indexes: Vec<&Index> =
            self.catalog.indexes().filter(|index| on.is_none_or(|relation| index.relation == relation)).collect();
        let columns = |index: &&Index| match index.parts.as_slice() {
            [] => self.catalog.find(&index.relation).map(|object| object.column_list(&index.key)),
            parts => Some(parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        };
        rows(vec![
            ("name", texts(indexes.iter().map(|index| index.name.clone()))),
            ("relation", texts(indexes.iter().map(|index| index.relation.clone()))),
            ("columns", ShowColumn::Text(indexes.iter().map(columns).collect())),
        ])
    }

    /// All arrangements, with what they hold. Those that only queries share have no owner; what
    /// they are of stands for the relation.
    fn show_arrangements(&mut self) -> Result<Rows, Error> {
        self.await_dataflows_shortly()?;
        let stats = self.arrangements();
        let name = |stats: &ArrangementStats| {
            self.owned_name(stats.arrangement).or_else(|| self.shared_name(stats.arrangement))
        };
        let named: Vec<Option<(String, String, String)>> = stats.iter().map(name).collect();
        rows(vec![
            ("relation", ShowColumn::Text(named.iter().map(|named| named.as_ref().map(|n| n.0.clone())).collect())),
            ("key", ShowColumn::Text(named.iter().map(|named| named.as_ref().map(|n| n.1.clone())).collect())),
            ("owners", ShowColumn::Text(named.iter().map(|named| named.as_ref().map(|n| n.2.clone())).collect())),
            ("rows", numbers(stats.iter().map(|stats| stats.rows as i64))),
            ("bytes", numbers(stats.iter().map(|stats| stats.bytes as i64))),
            ("runs", numbers(stats.iter().map(|stats| stats.runs as i64))),
            ("readers", numbers(stats.iter().map(|stats| stats.readers as i64))),
            ("since", numbers(stats.iter().map(|stats| stats.readable))),
            ("upper", numbers(stats.iter().map(|stats| stats.upper))),
            ("compacted_to", numbers(stats.iter().map(|stats| stats.since))),
            ("slowest_reader", texts(stats.iter().map(|stats| stats.slowest_reader.clone()))),
        ])
    }

    /// The relations that an arrangement is of (several views, if their queries are equal), its
    /// key, and its owners.
    fn owned_name(&self, arrangement: ArrangementId) -> Option<(String, String, String)> {
        let of = |object: &'_ Object| {
            let mut arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
            let arranged = arrangements.find(|arranged| arranged.arrangement == arrangement)?;
            Some((object.name.clone(), object.column_list(&arranged.key), arranged.owners.clone()))
        };
        let all: Vec<(String, String, BTreeSet<String>)> = self.catalog.objects().filter_map(of).collect();
        let key = all.first()?.1.clone();
        let relations: Vec<String> = all.iter().map(|(name, ..)| name.clone()).collect();
        let owners: BTreeSet<String> = all.into_iter().flat_map(|(.., owners)| owners).collect();
        Some((relations.join(", "), key, Vec::from_iter(owners).join(", ")))
    }

    /// What an arrangement holds and by which key, as a line of EXPLAIN would say.
    pub(super) fn arranged_by(&self, arrangement: ArrangementId) -> String {
        match self.owned_name(arrangement).or_else(|| self.shared_name(arrangement)) {
            Some((of, key, _)) => format!("Arrange {of} by ({key})"),
            None => "Arrange".to_owned(),
        }
    }

    /// What an arrangement without a name is of, its key, and no owner.
    fn shared_name(&self, arrangement: ArrangementId) -> Option<(String, String, String)> {
        let (plan, key) = self.dataflows.registry().describe(arrangement)?;
        Some((anabranch_plan::explain::line(plan), column_names(plan, key), String::new()))
    }

    /// The time of the last commit: what is read now is as of it.
    fn show_time(&self) -> Result<Rows, Error> {
        let micros: ArrayRef = Arc::new(Int64Array::from(vec![self.time()]));
        let timestamp = cast(&micros, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
        let text = array_value_to_string(&timestamp, 0)?;
        rows(vec![("time", numbers([self.time()])), ("timestamp", texts([text]))])
    }

    /// How long operators of each kind ran without a pause, in microseconds.
    fn show_steps(&mut self) -> Result<Rows, Error> {
        let steps: Vec<StepStats> = self.steps().into_iter().filter(|stats| stats.count > 0).collect();
        let micros = |length: fn(&StepStats) -> Duration| numbers(steps.iter().map(|s| length(s).as_micros() as i64));
        rows(vec![
            ("operator", texts(steps.iter().map(|stats| stats.operator.to_string()))),
            ("steps", numbers(steps.iter().map(|stats| stats.count as i64))),
            ("total_us", micros(|stats| stats.total)),
            ("median_us", micros(|stats| stats.quantile(0.5))),
            ("p99_us", micros(|stats| stats.quantile(0.99))),
            ("max_us", micros(|stats| stats.max)),
        ])
    }

    fn show_create(&self, name: &str) -> Result<Rows, Error> {
        let index = self.catalog.indexes().find(|index| index.name == name);
        let definition = match index {
            Some(index) => index.definition.clone(),
            None => self.catalog.get(name)?.definition.clone(),
        };
        rows(vec![("name", texts([name.to_string()])), ("statement", texts([definition]))])
    }

    fn show_settings(&self, name: Option<&str>) -> Result<Rows, Error> {
        if let Some(name) = name {
            let value = self.setting(name)?;
            return rows(vec![(&shown_name(name), texts([value]))]);
        }
        let settings = self.setting_rows();
        rows(vec![
            ("name", texts(settings.iter().map(|setting| setting[0].clone()))),
            ("setting", texts(settings.iter().map(|setting| setting[1].clone()))),
            ("description", texts(settings.iter().map(|setting| setting[2].clone()))),
        ])
    }

    fn of_kind(&self, kind: ObjectKind) -> Vec<&Object> {
        self.catalog.objects().filter(|object| object.kind == kind).collect()
    }
}

/// A setting's name as PostgreSQL shows it.
fn shown_name(name: &str) -> String {
    const CAPITALISED: [&str; 3] = ["TimeZone", "DateStyle", "IntervalStyle"];
    let known = CAPITALISED.iter().find(|known| known.eq_ignore_ascii_case(name));
    known.map_or_else(|| name.to_lowercase(), |known| (*known).to_owned())
}

/// A `lines` column, for EXPLAIN.
pub(super) fn text_rows(name: &str, lines: impl IntoIterator<Item = String>) -> Result<Rows, Error> {
    rows(vec![(name, texts(lines))])
}

pub(super) fn rows(columns: Vec<(&str, ShowColumn)>) -> Result<Rows, Error> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for (name, column) in columns {
        let (data_type, array): (DataType, ArrayRef) = match column {
            ShowColumn::Text(values) => {
                (DataType::Utf8View, Arc::new(values.iter().map(Option::as_deref).collect::<StringViewArray>()))
            }
            ShowColumn::Number(values) => (DataType::Int64, Arc::new(Int64Array::from(values))),
        };
        fields.push(Field::new(name, data_type, true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays)?;
    Ok(Rows::new(schema, vec![batch]))
}

pub(super) fn texts(values: impl IntoIterator<Item = String>) -> ShowColumn {
    ShowColumn::Text(values.into_iter().map(Some).collect())
}

pub(super) fn numbers(values: impl IntoIterator<Item = i64>) -> ShowColumn {
    ShowColumn::Number(values.into_iter().map(Some).collect())
}

/// Texts, some of which are NULL.
pub(super) fn optional_texts(values: impl IntoIterator<Item = Option<String>>) -> ShowColumn {
    ShowColumn::Text(values.into_iter().collect())
}

/// Numbers, some of which are NULL.
pub(super) fn optional_numbers(values: impl IntoIterator<Item = Option<i64>>) -> ShowColumn {
    ShowColumn::Number(values.into_iter().collect())
}

fn all_columns(object: &Object) -> String {
    object.column_list(&(0..object.schema.fields().len()).collect::<Vec<_>>())
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_string()
}

fn state_name(state: &SourceState) -> &'static str {
    match state {
        SourceState::Unread => "unread",
        SourceState::Running => "running",
        SourceState::Done => "done",
        SourceState::Failed(_) => "failed",
    }
}
