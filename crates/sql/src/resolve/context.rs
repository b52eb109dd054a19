//! What DataFusion's planner may ask of us: relations, functions, types, options.
//!
//! Plain views are planned in place from their text; a view that reaches itself is refused.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Column, Constraint, Constraints, DFSchema, Result as DfResult, TableReference};
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion_expr::sqlparser::ast;
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::planner::{NullOrdering, ParserOptions, SqlToRel};

use crate::error::{ErrorKind, SqlError};
use crate::functions::planner::expr_planners;
use crate::functions::table::FUNCTIONS;
use crate::passes::pass::Chosen;
use crate::passes::plan::asof::AsofPlanner;
use crate::passes::plan::options::options;
use crate::passes::plan::recognize::RecognizePlanner;
use crate::passes::plan::recursion::{RecursionPlanner, Variables};
use crate::passes::plan::repeated_rows::{RepeatedRows, behind_lists};
use crate::passes::plan::session::SessionPlanner;
use crate::passes::plan::set_operations::SetOperationPlanner;
use crate::passes::plan::temporal_filters::ClockRelation;
use crate::passes::tree::rewrite;
use crate::resolve::catalog::{Catalog, Relation};
use crate::resolve::parameters::Parameters;
use crate::resolve::row_at_once;
use crate::resolve::types::Types;
use crate::resolve::unknown::{catalog_table, unknown_relation};
use crate::stack::{DEPTH_MAX, VIEW_LEVELS, check_planned_size, too_deep};
use crate::syntax::parse::{self, parse_query};
use crate::syntax::statement::ObjectKind;

/// One planning run.
pub(crate) struct Context<'a> {
    catalog: &'a dyn Catalog,
    chosen: Chosen,
    parameters: Parameters,
    options: Arc<ConfigOptions>,
    expr_planners: Vec<Arc<dyn ExprPlanner>>,
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
    types: Arc<dyn TypePlanner>,
    /// The variables of the loops around what is being planned.
    variables: Arc<Variables>,
    /// Views being planned, outermost first.
    views: RefCell<Vec<String>>,
    /// Depth of these views, and how deep they may be where this runs.
    depth: Cell<usize>,
    depth_max: usize,
    wants_deep_stack: Cell<bool>,
    /// How often planning a view has failed.
    n_failed_views: Cell<usize>,
}

impl<'a> Context<'a> {
    /// A run that follows views down to a depth of `depth_max`.
    pub(crate) fn new(catalog: &'a dyn Catalog, chosen: Chosen, parameters: Parameters, depth_max: usize) -> Self {
        let variables = Arc::new(Variables::default());
        Self {
            catalog,
            chosen,
            parameters,
            options: Arc::new(options(chosen)),
            expr_planners: expr_planners(),
            relation_planners: vec![
                Arc::new(SetOperationPlanner { chosen }),
                Arc::new(AsofPlanner),
                Arc::new(RecognizePlanner),
                Arc::new(SessionPlanner),
                Arc::new(RecursionPlanner { variables: variables.clone(), chosen }),
                Arc::<RepeatedRows>::default(),
            ],
            variables,
            types: Arc::new(Types),
            views: RefCell::new(vec![]),
            depth: Cell::new(0),
            depth_max,
            wants_deep_stack: Cell::new(false),
            n_failed_views: Cell::new(0),
        }
    }

    /// Whether the run failed for want of depth, and would not on a deep stack.
    pub(crate) fn wants_deep_stack(&self) -> bool {
        self.wants_deep_stack.get()
    }

    pub(crate) fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// The rewrites that the run makes.
    pub(crate) fn chosen(&self) -> Chosen {
        self.chosen
    }

    pub(crate) fn config(&self) -> Arc<ConfigOptions> {
        self.options.clone()
    }

    /// DataFusion's planner over this context.
    pub(crate) fn planner(&self) -> SqlToRel<'_, Context<'a>> {
        let options = ParserOptions {
            parse_float_as_decimal: true,
            enable_ident_normalization: true,
            support_varchar_with_length: true,
            enable_options_value_normalization: false,
            collect_spans: true,
            map_string_types_to_utf8view: true,
            default_null_ordering: NullOrdering::NullsMax,
        };
        SqlToRel::new_with_options(self, options)
    }

    /// DataFusion's first plan of a query.
    pub(crate) fn logical(&self, query: &ast::Query) -> DfResult<LogicalPlan> {
        let written = self.parameters.written(query)?;
        let query = written.as_ref().unwrap_or(query);
        let plan = |query: ast::Query| {
            let statement = ast::Statement::Query(Box::new(query));
            let mut parameters = self.parameters.context();
            let plan = self.planner().sql_statement_to_plan_with_context(statement, &mut parameters)?;
            self.parameters.fill_plan(plan)
        };
        let mut rewritten = rewrite(query, self.catalog, false, self.chosen)?;
        if let Some(held) = row_at_once::hold_back(&mut rewritten) {
            let column = |name: &ast::Expr, schema: &DFSchema| self.expression(name.clone(), schema);
            let n_failed = self.n_failed_views.get();
            match plan(rewritten).and_then(|plan| row_at_once::listed(plan, &held, &column)) {
                Ok(Some(planned)) => {
                    check_planned_size(&planned)?;
                    return Ok(planned);
                }
                // (A view below fails again: views on views would double the time at each level.)
                Err(error) if self.n_failed_views.get() > n_failed => return Err(error),
                // What goes wrong so is told in the words of the query as it was.
                _ => {}
            }
            rewritten = rewrite(query, self.catalog, false, self.chosen)?;
        }
        let planned = match plan(rewritten) {
            // Two computed columns are spelt alike by DataFusion, or one is spelt as the column
            // that it casts, beside rows of a function: it is asked again with names for all.
            Err(error) if wants_names(&error.to_string()) => plan(rewrite(query, self.catalog, true, self.chosen)?),
            planned => planned,
        };
        let planned = planned?;
        check_planned_size(&planned)?;
        Ok(planned)
    }

    /// An expression over columns of that schema.
    pub(crate) fn expression(&self, expr: ast::Expr, schema: &DFSchema) -> DfResult<Expr> {
        let expr = self.planner().sql_to_expr(expr, schema, &mut self.parameters.context())?;
        self.parameters.fill(expr)
    }

    /// The relation of that name.
    pub(crate) fn relation(&self, name: &str) -> Result<Relation, SqlError> {
        self.catalog.relation(name).ok_or_else(|| unknown_relation(self.catalog, name))
    }

    /// The relation that holds the time of the last commit, if the catalog has one.
    pub(crate) fn clock(&self) -> Option<ClockRelation> {
        let Relation { name, schema, .. } = self.catalog.clock()?;
        let source = Arc::new(RelationSource { schema, keys: Constraints::default(), plan: None, is_kept_view: false });
        Some(ClockRelation { name, source })
    }

    fn view_plan(&self, relation: &Relation, text: &str) -> DfResult<LogicalPlan> {
        let mut views = self.views.borrow_mut();
        if views.contains(&relation.name) {
            return Err(SqlError::new(ErrorKind::Invalid, format!("view \"{}\" refers to itself", relation.name))
                .with_detail(format!("It is reached through {}.", views.join(", then ")))
                .into());
        }
        let outer = self.depth.get();
        let depth = outer + VIEW_LEVELS + parse::depth(text)?;
        if depth > self.depth_max {
            self.wants_deep_stack.set(self.depth_max < DEPTH_MAX);
            self.n_failed_views.set(self.n_failed_views.get() + 1);
            return Err(too_deep(format!("{} views stand on each other in it.", views.len())).into());
        }
        views.push(relation.name.clone());
        drop(views);
        self.depth.set(depth);
        let plan = self.view_body(relation, text);
        self.depth.set(outer);
        self.views.borrow_mut().pop();
        plan.map_err(|error| {
            self.n_failed_views.set(self.n_failed_views.get() + 1);
            let mut error = SqlError::from(error);
            error.line_column = None;
            error.position = None;
            error.detail.get_or_insert(format!("This is in the view \"{}\".", relation.name));
            error.into()
        })
    }

    fn view_body(&self, relation: &Relation, text: &str) -> DfResult<LogicalPlan> {
        let plan = behind_lists(self.logical(&*parse_query(text)?)?)?;
        let names = relation.schema.fields();
        if plan.schema().fields().len() != names.len() {
            return Err(SqlError::new(
                ErrorKind::Invalid,
                format!("view \"{}\" no longer has the columns it was created with", relation.name),
            )
            .with_hint("DROP the view and CREATE it anew.")
            .into());
        }
        let columns: Vec<Expr> = plan
            .schema()
            .iter()
            .zip(names)
            .map(|(field, name)| Expr::Column(Column::from(field)).alias(name.name()))
            .collect();
        LogicalPlanBuilder::from(plan).project(columns)?.build()
    }
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, name: TableReference) -> DfResult<Arc<dyn TableSource>> {
        if let Some(schema) = name.schema()
            && schema != "public"
        {
            if matches!(schema, "information_schema" | "pg_catalog") {
                return Err(catalog_table(&name.to_string()).into());
            }
            return Err(SqlError::new(ErrorKind::UnknownName, format!("relation \"{name}\" does not exist")).into());
        }
        if let Some(schema) = self.variables.schema(name.table()) {
            return Ok(Arc::new(RelationSource {
                schema,
                keys: Constraints::default(),
                plan: None,
                is_kept_view: false,
            }));
        }
        let relation = self.relation(name.table())?;
        let plan = match &relation.view_query {
            Some(text) => Some(self.view_plan(&relation, text)?),
            None => None,
        };
        // Only a table's key is checked on every write; others are claims.
        let keys = match relation.kind {
            ObjectKind::Table if !relation.primary_key.is_empty() => vec![Constraint::PrimaryKey(relation.primary_key)],
            _ => vec![],
        };
        let is_kept_view = relation.kind == ObjectKind::MaterializedView;
        let keys = Constraints::new_unverified(keys);
        Ok(Arc::new(RelationSource { schema: relation.schema, keys, plan, is_kept_view }))
    }

    fn get_table_function_source(&self, name: &str, _args: Vec<Expr>) -> DfResult<Arc<dyn TableSource>> {
        let hint = match name {
            "generate_series" | "range" => "Write FROM (SELECT unnest(generate_series(1, 10)) AS n) AS s.",
            "unnest" => "Write SELECT unnest(list) in the select list.",
            _ => "Name a table or a view, or write a query in parentheses.",
        };
        Err(SqlError::unsupported(format!("table function {name}"), hint).into())
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expr_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(self.types.clone())
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.catalog.function(name).or_else(|| FUNCTIONS.scalar.get(name).cloned())
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.catalog.aggregate(name).or_else(|| FUNCTIONS.aggregate.get(name).cloned())
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        FUNCTIONS.window.get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        FUNCTIONS.scalar.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        vec![]
    }

    fn udaf_names(&self) -> Vec<String> {
        FUNCTIONS.aggregate.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        FUNCTIONS.window.keys().cloned().collect()
    }
}

/// A relation of the planner's own, with these columns.
pub(crate) fn own_relation(schema: SchemaRef) -> Arc<dyn TableSource> {
    Arc::new(RelationSource { schema, keys: Constraints::default(), plan: None, is_kept_view: false })
}

/// A relation as DataFusion scans it; a plain view brings its plan.
struct RelationSource {
    schema: SchemaRef,
    keys: Constraints,
    plan: Option<LogicalPlan>,
    is_kept_view: bool,
}

/// Whether a relation is a materialized view, so that its columns are computed.
pub(crate) fn is_kept_view(source: &dyn TableSource) -> bool {
    (source as &dyn std::any::Any).downcast_ref::<RelationSource>().is_some_and(|relation| relation.is_kept_view)
}

impl TableSource for RelationSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.keys)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.plan.as_ref().map(Cow::Borrowed)
    }
}

/// Whether a message of the planner is about names that it has made of expressions.
fn wants_names(message: &str) -> bool {
    message.contains("unique expression names")
        || message.contains("No field named") && message.contains("__unnest_placeholder")
}
