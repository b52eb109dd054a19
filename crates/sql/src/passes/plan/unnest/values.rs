//! Subqueries in expressions as columns of joins: scalar ones, EXISTS, IN, ANY and ALL.

use std::sync::Arc;

use datafusion_common::{Column, JoinType, NullEquality, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion_expr::{BinaryExpr, Expr, Operator, lit, when};

use super::free::{free_of, has_subquery};
use super::guards::{answered, asking};
use super::{Domain, Unnesting, refused};
use crate::error::{ErrorKind, SqlError};
use crate::functions::table::FUNCTIONS;

impl Unnesting<'_> {
    /// The distinct values of some columns.
    pub(super) fn domain_of(&mut self, rows: &LogicalPlan, outer: &[Column]) -> DfResult<Domain> {
        let items: Vec<Expr> = outer
            .iter()
            .map(|column| {
                let name = self.name("domain");
                Expr::Column(column.clone()).alias(name)
            })
            .collect();
        let values = LogicalPlanBuilder::from(rows.clone()).project(items)?.distinct()?.build()?;
        Ok(Domain { outer: outer.to_vec(), rows: values })
    }

    /// Expressions over rows, with columns in place of their subqueries.
    pub(super) fn over(&mut self, rows: LogicalPlan, exprs: Vec<Expr>) -> DfResult<(LogicalPlan, Vec<Expr>)> {
        let mut rows = match exprs.iter().any(has_subquery) {
            true => self.shared(rows)?,
            false => rows,
        };
        let base = rows.clone();
        let mut out = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let answers = answered(expr, &[], &mut |part, conditions| {
                let (joined, value) = self.with_value(rows.clone(), &asking(&base, conditions)?, part)?;
                rows = self.small(joined)?;
                Ok(value)
            });
            out.push(answers?);
        }
        Ok((rows, out))
    }

    /// Rows with the value of a subquery, and the expression that stands for it. `base` has the
    /// rows that ask for it, without the values of other subqueries, which are joined to the left
    /// and so leave each row: the domain is taken of it, or it would double with each subquery.
    pub(super) fn with_value(
        &mut self,
        rows: LogicalPlan,
        base: &LogicalPlan,
        expr: Expr,
    ) -> DfResult<(LogicalPlan, Expr)> {
        match expr {
            Expr::ScalarSubquery(subquery) => {
                let (joined, value, _) =
                    self.joined(rows, base, &[], subquery, |_, values| Ok(values[..1].to_vec()))?;
                Ok((joined, value))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let (joined, found, _) = self.joined(rows, base, &[], subquery, |_, _| Ok(vec![]))?;
                Ok((joined, if negated { found.is_not_true() } else { found.is_true() }))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let (joined, value) = self.compared(rows, base, *expr, subquery, Operator::Eq, SetQuantifier::Any)?;
                Ok((joined, if negated { Expr::Not(Box::new(value)) } else { value }))
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                self.compared(rows, base, *expr, subquery, op, quantifier)
            }
            other => Ok((rows, other)),
        }
    }

    /// `x op ANY (q)` and `x op ALL (q)`.
    pub(super) fn compared(
        &mut self,
        rows: LogicalPlan,
        base: &LogicalPlan,
        x: Expr,
        subquery: Subquery,
        op: Operator,
        quantifier: SetQuantifier,
    ) -> DfResult<(LogicalPlan, Expr)> {
        let parts = match x {
            // (A row of several values.)
            Expr::ScalarFunction(row) if row.func.name() == "struct" => row.args,
            x => vec![x],
        };
        if parts.len() != subquery.subquery.schema().fields().len() {
            return Err(
                SqlError::new(ErrorKind::Invalid, "the subquery has another number of columns than the row").into()
            );
        }
        if parts.len() > 1 && !matches!(op, Operator::Eq | Operator::NotEq) {
            return Err(refused("an ordered comparison of rows"));
        }
        let names: Vec<Column> = parts.iter().map(|_| Column::new_unqualified(self.name("compared"))).collect();
        let with_parts = |plan: LogicalPlan| {
            let mut items: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
            items.extend(parts.iter().cloned().zip(&names).map(|(part, name)| part.alias(&name.name)));
            LogicalPlanBuilder::from(plan).project(items)?.build()
        };
        let is_of_base =
            parts.iter().all(|part| part.column_refs().into_iter().all(|column| base.schema().has_column(column)));
        let base = if is_of_base { with_parts(base.clone())? } else { rows.clone() };
        let rows = with_parts(rows)?;
        let decides = quantifier == SetQuantifier::Any;
        let n_parts = names.len();
        let (joined, decided, unknown) = self.joined(rows, &base, &names, subquery, |keys, values| {
            let compared = keys[keys.len() - n_parts..].iter().cloned().map(Expr::Column);
            let each = compared.zip(values.iter().cloned());
            let each = each.map(|(x, y)| Expr::BinaryExpr(BinaryExpr::new(Box::new(x), op, Box::new(y))));
            let both = if op == Operator::NotEq { Expr::or } else { Expr::and };
            let comparison = each.reduce(both).unwrap_or_else(|| lit(true));
            let decided = if decides { comparison.clone().is_true() } else { comparison.clone().is_false() };
            Ok(vec![decided, comparison.is_unknown()])
        })?;
        let unknown = unknown.unwrap_or_else(|| lit(false));
        let null = lit(ScalarValue::Boolean(None));
        let value = when(decided.is_true(), lit(decides)).when(unknown.is_true(), null).otherwise(lit(!decides))?;
        Ok((joined, value))
    }

    /// Rows joined with a subquery's answers. `tests` gives, for a row of the subquery with its
    /// value, what is asked of it: nothing asks whether there is a row; the value itself is taken;
    /// of several tests it is told whether any row passes.
    pub(super) fn joined(
        &mut self,
        rows: LogicalPlan,
        base: &LogicalPlan,
        further: &[Column],
        subquery: Subquery,
        tests: impl FnOnce(&[Column], &[Expr]) -> DfResult<Vec<Expr>>,
    ) -> DfResult<(LogicalPlan, Expr, Option<Expr>)> {
        let plan = Arc::unwrap_or_clone(subquery.subquery);
        let free = free_of(&plan)?;
        let outer: Vec<Column> = free.into_iter().filter(|column| rows.schema().has_column(column)).collect();
        let outer: Vec<Column> = outer.into_iter().chain(further.iter().cloned()).collect();
        let is_dependent = !outer.is_empty();
        let is_of_base = outer.iter().all(|column| base.schema().has_column(column));
        let domain = is_dependent.then(|| self.domain_of(if is_of_base { base } else { &rows }, &outer)).transpose()?;
        let own = plan.schema().columns();
        let (answers, keys) = match &domain {
            // (The value that is compared is in no plan, but each row is compared with it.)
            Some(domain) => self.push(plan, Some(domain))?,
            None => self.push(plan, None)?,
        };
        let value = |(at, column): (usize, Column)| match answers.schema().has_column(&column) {
            true => Expr::Column(column),
            false => Expr::Column(Column::from(answers.schema().qualified_field(at))),
        };
        let values: Vec<Expr> = own.into_iter().enumerate().map(value).collect();
        let asked = tests(&keys, &values)?;
        let (marks, answers) = self.answers(answers, &keys, values.first(), asked)?;
        let table = self.name("answers");
        let answers = LogicalPlanBuilder::from(answers).alias(table.as_str())?.build()?;
        let column = |name: &String| Column::new(Some(table.clone()), name.clone());
        let joined = match is_dependent {
            true => {
                let keys: Vec<Column> = keys.iter().map(|key| column(&key.name)).collect();
                LogicalPlanBuilder::from(rows)
                    .join_detailed(answers, JoinType::Left, (outer, keys), None, NullEquality::NullEqualsNull)?
                    .build()?
            }
            false => LogicalPlanBuilder::from(rows).join_on(answers, JoinType::Left, vec![lit(true)])?.build()?,
        };
        let mut marks = marks.iter().map(|mark| Expr::Column(column(mark)));
        let first = marks.next().unwrap_or_else(|| lit(true));
        Ok((joined, first, marks.next()))
    }

    /// One row of answers for each value of the domain, and the names of what is asked.
    pub(super) fn answers(
        &mut self,
        rows: LogicalPlan,
        keys: &[Column],
        value: Option<&Expr>,
        asked: Vec<Expr>,
    ) -> DfResult<(Vec<String>, LogicalPlan)> {
        let keys = || keys.iter().map(|key| Expr::Column(key.clone()).alias(&key.name));
        if asked.is_empty() {
            let mark = self.name("found");
            let found = LogicalPlanBuilder::from(rows).project(keys().chain([lit(true).alias(&mark)]))?.distinct()?;
            return Ok((vec![mark], found.build()?));
        }
        if let [asked] = asked.as_slice()
            && Some(asked) == value
        {
            let mark = self.name("value");
            let values = LogicalPlanBuilder::from(rows).project(keys().chain([asked.clone().alias(&mark)]))?;
            return Ok((vec![mark], values.build()?));
        }
        let marks: Vec<String> = asked.iter().map(|_| self.name("test")).collect();
        let items = asked.into_iter().zip(&marks).map(|(test, mark)| test.alias(mark));
        let rows = LogicalPlanBuilder::from(rows).project(keys().chain(items))?.build()?;
        let Some(any) = FUNCTIONS.aggregate.get("bool_or").cloned() else { return Err(refused("a comparison")) };
        let plain = |name: &String| Expr::Column(Column::new_unqualified(name));
        let group: Vec<Expr> =
            keys().map(|key| Expr::Column(Column::new_unqualified(key.schema_name().to_string()))).collect();
        let totals: Vec<String> = marks.iter().map(|_| self.name("any")).collect();
        let calls: Vec<Expr> =
            marks.iter().zip(&totals).map(|(mark, total)| any.call(vec![plain(mark)]).alias(total)).collect();
        let rows = LogicalPlanBuilder::from(rows).aggregate(group, calls)?.build()?;
        Ok((totals, rows))
    }
}
