//! From a syntax tree to a plan.
//!
//! DataFusion resolves the rewritten tree, the steps of [`passes`](crate::passes) make its
//! optimised plan, which is translated. A panic of the planner crates becomes an `Internal` error.
//! All of it runs with a [`stack`](crate::stack) that is deep enough.
//!
//! Cost: milliseconds a query, once; nothing here runs per row.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_plan::bounds::{Bound, Promises, bounds};
use anabranch_plan::rewrite::{Facts, optimise, optimised_in_steps, with_inputs};
use anabranch_plan::{Node, Plan, RankedBy, Recursive, RoundLimit};
use arrow::datatypes::DataType;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::sqlparser::ast;

use crate::error::{ErrorKind, Result, SqlError};
use crate::passes::pass::Chosen;
use crate::passes::plan::clock::Clock;
use crate::passes::plan::optimise as optimise_logical;
use crate::passes::plan::temporal_filters::{asks_for_now, follow};
use crate::passes::tree::{on_close, set_output_names};
use crate::planned::{ColumnForm, Finish, Planned};
use crate::resolve::catalog::Catalog;
use crate::resolve::context::Context;
use crate::resolve::parameters::Parameters;
use crate::resolve::position;
use crate::resolve::shown_forms::{form_told, forms_of};
use crate::resolve::type_marks::EnumMark;
use crate::stack::{
    DEPTH_MAX, SHALLOW_LEVELS_MAX, check_plan, check_size, few_parts, with_deep_stack, with_shallow_stack,
};
use crate::syntax::statement::{CreateView, EmitClause, Explain};
use crate::translate::Translator;
use crate::translate::recursion::adds_rows;

/// Column names of a query, their forms, and its optimised plan.
type Prepared = (Vec<String>, Vec<Option<ColumnForm>>, LogicalPlan);

/// Plans queries against a catalog, as of a moment.
pub struct Planner<'a> {
    catalog: &'a dyn Catalog,
    /// What `now()` means in one-time statements, in microseconds since the epoch.
    now_micros: i64,
    /// The rewrites that are made: all, but in tests of single ones.
    chosen: Chosen,
    parameters: Parameters,
    /// Whether plans hold at any moment: `now()` is refused.
    is_steady: bool,
    /// What ends loops that say nothing of it.
    round_limit: RoundLimit,
    /// Whether rows lie in several shards.
    is_spread: bool,
}

impl<'a> Planner<'a> {
    /// A planner whose `now()` is the machine's present.
    pub fn new(catalog: &'a dyn Catalog) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::as_of(catalog, now.as_micros() as i64)
    }

    /// A planner whose `now()` is the given moment, in microseconds since the epoch.
    pub fn as_of(catalog: &'a dyn Catalog, now_micros: i64) -> Self {
        Self {
            catalog,
            now_micros,
            chosen: Chosen::default(),
            parameters: Parameters::None,
            is_steady: false,
            round_limit: RoundLimit::None,
            is_spread: false,
        }
    }

    /// The planner of queries over each of several shards, whose placement is derived of the plan:
    /// without rewrites that hide it.
    pub fn spread(self) -> Self {
        Self { is_spread: true, ..self }
    }

    /// The planner whose loops end with an error after so many rounds, unless they say another
    /// limit.
    pub fn with_recursion_limit(self, rounds: Option<NonZeroU64>) -> Self {
        Self { round_limit: rounds.map_or(RoundLimit::None, RoundLimit::Error), ..self }
    }

    /// The same planner over another catalog.
    pub(crate) fn over<'b>(&self, catalog: &'b dyn Catalog) -> Planner<'b> {
        let Planner { now_micros, chosen, is_steady, round_limit, is_spread, .. } = *self;
        let parameters = self.parameters.clone();
        Planner { catalog, now_micros, chosen, parameters, is_steady, round_limit, is_spread }
    }

    pub(crate) fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// The planner without one of the rewrites that [`described`](crate::passes::described) lists:
    /// what the rewrite is for.
    pub fn without(self, pass: &'static str) -> Self {
        Self { chosen: Chosen { without: Some(pass) }, ..self }
    }

    /// The planner with what stands for `$1`, `$2` ..
    pub fn with_parameters(self, parameters: Parameters) -> Self {
        Self { parameters, ..self }
    }

    /// The same planner, with other parameters.
    pub(crate) fn with_known(&self, parameters: Parameters) -> Planner<'a> {
        let Planner { catalog, now_micros, chosen, is_steady, round_limit, is_spread, .. } = *self;
        Planner { catalog, now_micros, chosen, parameters, is_steady, round_limit, is_spread }
    }

    /// The planner whose plans hold at any moment: functions of the clock and of chance are
    /// refused.
    pub fn steady(self) -> Self {
        Self { is_steady: true, ..self }
    }

    /// Plans a query whose answer is wanted once: the top `ORDER BY` and `LIMIT` are left to the
    /// reader.
    ///
    /// # Errors
    /// Any [`ErrorKind`] but `Syntax`; placed where the unknown name stands, if one is the cause.
    pub fn plan_query(&self, query: &ast::Query) -> Result<Planned> {
        self.plan_query_over(query, &Ok)
    }

    /// As [`plan_query`](Self::plan_query), of what `over` makes of the query's first plan.
    pub(crate) fn plan_query_over(
        &self,
        query: &ast::Query,
        over: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Result<Planned> {
        self.guarded(query, |context| {
            let plan = context.logical(query)?;
            let names = column_names(query, &plan, self.catalog);
            let plan = over(plan)?;
            let forms = forms_of(&plan);
            let plan = optimise_logical(plan, &context.config(), self.clock(), context.chosen())?;
            let planned = Translator::new(self.round_limit).query(&plan)?;
            let (forms, enums) = (either(forms, &plan), enums_of(&plan));
            let plan = with_few_rounds(&self.optimised(&planned.plan, false), &planned.finish);
            Ok(Planned { plan: named(&plan, &names), forms, enums, ..planned })
        })
    }

    /// As [`plan_query`](Self::plan_query), before rewrites: nothing is made of what exists.
    ///
    /// # Errors
    /// As [`plan_query`](Self::plan_query).
    pub fn plan_unrewritten(&self, query: &ast::Query) -> Result<Planned> {
        self.guarded(query, |context| {
            let (names, forms, plan) = self.prepare(context, query, self.clock())?;
            let planned = Translator::new(self.round_limit).query(&plan)?;
            Ok(Planned { plan: named(&planned.plan, &names), forms, enums: enums_of(&plan), ..planned })
        })
    }

    /// The plan of a query before and after each rewrite that changes it, with the rewrite's name.
    ///
    /// # Errors
    /// As [`plan_query`](Self::plan_query).
    pub fn plan_in_steps(&self, explain: &Explain) -> Result<Vec<(&'static str, Arc<Plan>)>> {
        let closing = match explain.emit {
            EmitClause::Changes => None,
            EmitClause::OnWindowClose => Some(self.of_closed_windows(&explain.query)?),
        };
        let query = closing.as_ref().unwrap_or(&explain.query);
        self.guarded(query, |context| {
            let (_, _, plan) = self.prepare(context, query, self.clock())?;
            let planned = Translator::new(self.round_limit).query(&plan)?;
            let is_standing = matches!(explain.emit, EmitClause::OnWindowClose);
            self.with_facts(is_standing, |facts| Ok(optimised_in_steps(&planned.plan, facts)))
        })
    }

    /// The plan rewritten with what the catalog knows: one that stands, or one that is asked once.
    fn optimised(&self, plan: &Arc<Plan>, is_standing: bool) -> Arc<Plan> {
        self.with_facts(is_standing, |facts| optimise(plan, facts))
    }

    fn with_facts<T>(&self, is_standing: bool, work: impl FnOnce(&Facts<'_>) -> T) -> T {
        work(&Facts {
            indexes: &|relation, columns| self.catalog.is_indexed(relation, columns),
            has_key: &|relation, columns| self.catalog.has_key(relation, columns),
            is_standing,
            is_spread: self.is_spread,
        })
    }

    /// Plans a query that is to be kept current: a top `LIMIT` stays in the plan, and an `ORDER BY`
    /// alone means nothing.
    ///
    /// # Errors
    /// As [`plan_query`](Self::plan_query); also `Unsupported` for `now()` and `random()`, and
    /// `Duplicate` for two columns of one name.
    pub fn plan_view(&self, query: &ast::Query) -> Result<Planned> {
        self.named_view(query, &[])
    }

    /// Plans the query of a `CREATE [MATERIALIZED] VIEW`, with the names it gives to columns; with
    /// `EMIT ON WINDOW CLOSE` only those windows are shown that are over.
    ///
    /// # Errors
    /// As [`plan_view`](Self::plan_view); `Invalid` for more names than columns, and when no window
    /// is over a relation with a watermark.
    pub fn plan_create_view(&self, view: &CreateView) -> Result<Planned> {
        match view.emit {
            EmitClause::Changes => self.named_view(&view.query, &view.column_names),
            EmitClause::OnWindowClose => self.named_view(&self.of_closed_windows(&view.query)?, &view.column_names),
        }
    }

    /// Plans what EXPLAIN shows: a query that is asked once, or the view that it is with `EMIT ON
    /// WINDOW CLOSE`.
    ///
    /// # Errors
    /// As [`plan_query`](Self::plan_query) and [`plan_create_view`](Self::plan_create_view).
    pub fn plan_explained(&self, explain: &Explain) -> Result<Planned> {
        match explain.emit {
            EmitClause::Changes => self.plan_query(&explain.query),
            EmitClause::OnWindowClose => self.plan_view(&self.of_closed_windows(&explain.query)?),
        }
    }

    /// The query's rows of closed windows.
    fn of_closed_windows(&self, query: &ast::Query) -> Result<ast::Query> {
        on_close::rewrite(query, self.catalog, &|query, column| {
            self.guarded(query, |context| {
                let (names, _, plan) = self.prepare_standing(context, query)?;
                let plan = Translator::new(self.round_limit).view(&plan)?;
                let promises = |name: String| Some((self.catalog.promises(&name)?, name));
                let promised: BTreeMap<String, Promises> =
                    plan.relations().into_iter().filter_map(promises).map(|(of, name)| (name, of)).collect();
                let at = names.iter().position(|name| name == column);
                Ok(at.and_then(|at| {
                    let bound = bounds(&plan, &promised).into_iter().nth(at).flatten()?;
                    Some((bound, plan.schema.field(at).data_type().clone()))
                }))
            })
        })
    }

    fn named_view(&self, query: &ast::Query, given: &[String]) -> Result<Planned> {
        self.guarded(query, |context| {
            let (mut names, forms, plan) = self.prepare_standing(context, query)?;
            if given.len() > names.len() {
                return Err(SqlError::new(ErrorKind::Syntax, "CREATE VIEW specifies more column names than columns"));
            }
            names[..given.len()].clone_from_slice(given);
            // (Arrays of labels keep their order in what reads the view.)
            let enums = plan.schema().fields().iter().map(|field| EnumMark::of_elements(field)).collect();
            let plan = self.optimised(&Translator::new(self.round_limit).view(&plan)?, true);
            let mut taken = HashSet::with_capacity(names.len());
            for name in &names {
                if !taken.insert(name) {
                    return Err(SqlError::new(
                        ErrorKind::Duplicate,
                        format!("column \"{name}\" specified more than once"),
                    )
                    .with_hint("Give each column its own name with AS."));
                }
            }
            Ok(Planned { visible: names.len(), plan: named(&plan, &names), finish: Finish::default(), forms, enums })
        })
    }

    /// Runs a planning step, turning panics into errors and looking up the place of unknown names.
    /// A step that turns out to need more [`stack`](crate::stack) than there is runs anew where
    /// there is enough.
    pub(crate) fn guarded<T: Checked>(
        &self,
        query: &ast::Query,
        plan: impl Fn(&Context<'a>) -> Result<T>,
    ) -> Result<T> {
        check_size(query)?;
        if let Some(parts) = few_parts(query) {
            let context = Context::new(self.catalog, self.chosen, self.parameters.clone(), SHALLOW_LEVELS_MAX - parts);
            let result = with_shallow_stack(|| step(&context, query, &plan));
            if !context.wants_deep_stack() {
                return result;
            }
        }
        let context = || Context::new(self.catalog, self.chosen, self.parameters.clone(), DEPTH_MAX);
        with_deep_stack(|| step(&context(), query, &plan))
    }

    /// Column names, their forms, and the optimised plan of DataFusion.
    fn prepare(&self, context: &Context<'a>, query: &ast::Query, clock: Clock) -> Result<Prepared> {
        let plan = context.logical(query)?;
        let (names, forms) = (column_names(query, &plan, self.catalog), forms_of(&plan));
        let plan = optimise_logical(plan, &context.config(), clock, context.chosen())?;
        Ok((names, either(forms, &plan), plan))
    }

    /// As [`prepare`](Self::prepare), of a query that follows the clock.
    fn prepare_standing(&self, context: &Context<'a>, query: &ast::Query) -> Result<Prepared> {
        let plan = context.logical(query)?;
        let (names, forms) = (column_names(query, &plan, self.catalog), forms_of(&plan));
        let plan = match asks_for_now(&plan)? {
            true => match context.clock() {
                Some(clock) => follow(plan, &clock)?,
                None => plan,
            },
            false => plan,
        };
        let plan = optimise_logical(plan, &context.config(), Clock::Running, context.chosen())?;
        Ok((names, either(forms, &plan), plan))
    }

    pub(crate) fn round_limit(&self) -> RoundLimit {
        self.round_limit
    }

    /// The present of what is planned to run once.
    pub(crate) fn clock(&self) -> Clock {
        if self.is_steady { Clock::Running } else { Clock::Fixed(self.now_micros) }
    }
}

fn step<'a, T: Checked>(
    context: &Context<'a>,
    query: &ast::Query,
    plan: impl Fn(&Context<'a>) -> Result<T>,
) -> Result<T> {
    let checked = || {
        let result = plan(context)?;
        result.check()?;
        Ok(result)
    };
    match catch_unwind(AssertUnwindSafe(checked)) {
        Ok(result) => result.map_err(|error| position::complete(without_own_names(error), query)),
        Err(panic) => Err(SqlError::internal(format!("the planner failed: {}", panic_message(&panic)))),
    }
}

/// Names that the planner gives begin so; no user has written one.
const OWN_NAMES: [&str; 13] = [
    "__beside_",
    "__domain_",
    "__answers",
    "__compared",
    "__correlated_sq",
    "__scalar_sq",
    "__common_expr",
    "__place_",
    "__found",
    "__lifted",
    "__present",
    "__any_",
    "__test_",
];

/// An error about a name of the planner's own is one about the form of the query.
fn without_own_names(error: SqlError) -> SqlError {
    let mentions = |text: &str| OWN_NAMES.iter().any(|name| text.contains(name));
    let is_about_own = mentions(&error.message) || error.detail.as_deref().is_some_and(mentions);
    match is_about_own {
        true => SqlError::unsupported(
            "this nesting of subqueries",
            "Name the inner queries with WITH, join them with the outer table, and compare there.",
        ),
        false => error,
    }
}

/// The result of a step of planning, checked where the stack is deep enough to follow and to drop
/// it.
pub(crate) trait Checked {
    fn check(&self) -> Result<()>;
}

impl Checked for Planned {
    fn check(&self) -> Result<()> {
        check_plan(&self.plan)
    }
}

impl Checked for Vec<(&'static str, Arc<Plan>)> {
    fn check(&self) -> Result<()> {
        self.iter().try_for_each(|(_, plan)| check_plan(plan))
    }
}

impl Checked for Option<(Bound, DataType)> {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl<T> Checked for (Vec<T>, Box<ast::Query>) {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Plans a query whose answer is wanted once. See [`Planner::plan_query`].
///
/// # Errors
/// Of planning.
pub fn plan_query(query: &ast::Query, catalog: &dyn Catalog) -> Result<Planned> {
    Planner::new(catalog).plan_query(query)
}

/// Plans a query that is to be kept current. See [`Planner::plan_view`].
///
/// # Errors
/// Of planning.
pub fn plan_view(query: &ast::Query, catalog: &dyn Catalog) -> Result<Planned> {
    Planner::new(catalog).plan_view(query)
}

/// The names PostgreSQL gives to the columns of a query.
fn column_names(query: &ast::Query, plan: &LogicalPlan, catalog: &dyn Catalog) -> Vec<String> {
    let mut names: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
    set_output_names(&mut names, query, catalog);
    names
}

/// Enumerations among the columns of a plan.
fn enums_of(plan: &LogicalPlan) -> Vec<Option<EnumMark>> {
    plan.schema().fields().iter().map(|field| EnumMark::of(field)).collect()
}

/// The plan whose loop ends when a `LIMIT` without an order has its rows: a round that is not the
/// last one adds a row, so that so many rounds are enough.
fn with_few_rounds(plan: &Arc<Plan>, finish: &Finish) -> Arc<Plan> {
    let wanted = finish.limit.filter(|_| finish.order.is_empty()).map(|limit| limit.saturating_add(finish.offset));
    within_rounds(plan, wanted)
}

/// The plan, of whose rows so many are wanted, whichever.
fn within_rounds(plan: &Arc<Plan>, wanted: Option<usize>) -> Arc<Plan> {
    let wanted = match &plan.node {
        Node::Stage { filter, .. } => wanted.filter(|_| filter.is_empty()),
        Node::TopK { top, .. } if top.group.is_empty() && top.order.is_empty() && top.ranked == RankedBy::Row => {
            top.limit.map(|limit| limit.saturating_add(top.offset))
        }
        Node::Recursive(of) => {
            let rounds = wanted.and_then(|rows| NonZeroU64::new(rows.saturating_add(1) as u64));
            let (Some(rounds), RoundLimit::None, true) = (rounds, of.limit, adds_rows(of)) else {
                return Arc::clone(plan);
            };
            let node = Recursive { limit: RoundLimit::Return(rounds), ..of.as_ref().clone() };
            return Arc::new(Plan { node: Node::Recursive(Box::new(node)), schema: plan.schema.clone() });
        }
        _ => None,
    };
    with_inputs(plan, |input| within_rounds(input, wanted))
}

/// The forms of a query's columns, or else those that its optimised plan tells.
fn either(forms: Vec<Option<ColumnForm>>, plan: &LogicalPlan) -> Vec<Option<ColumnForm>> {
    // (Places are told by the query alone: a union of others has the mark of its first branch.)
    let told = plan.schema().fields().iter().map(|field| form_told(field));
    let told = told.map(|form| form.filter(|form| !matches!(form, ColumnForm::Number(_))));
    forms.into_iter().zip(told).map(|(form, told)| form.or(told)).collect()
}

/// The plan with its first columns renamed.
fn named(plan: &Arc<Plan>, names: &[String]) -> Arc<Plan> {
    Arc::new(Plan { node: plan.node.clone(), schema: crate::translate::schema::rename(&plan.schema, names) })
}

fn panic_message(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("unknown").lines().next().unwrap_or("unknown").to_string()
}
