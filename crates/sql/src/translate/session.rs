//! Sessions: the partition and the time become plain columns.

use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use anabranch_spec::session::SessionWindows;

use super::Translator;
use super::asof::ticks;
use super::expr::resolve;
use super::schema::{drafts, schema};
use super::stage::{take, with_columns};
use crate::error::{Result, SqlError};
use crate::passes::plan::session::SessionNode;
use crate::syntax::relation_calls::{SESSION_FIRST, SESSION_LAST};

impl Translator {
    pub(super) fn session(&self, node: &SessionNode) -> Result<Arc<Plan>> {
        let input = self.node(&node.input)?;
        let width = input.schema.fields().len();
        let exprs = node.partition.iter().chain([&node.time]);
        let exprs = exprs.map(|expr| resolve(expr, node.input.schema(), &input.schema)).collect::<Result<_>>()?;
        let (input, mut partition) = with_columns(input, exprs)?;
        let time = partition.pop().ok_or_else(|| SqlError::internal("sessions have a time"))?;
        partition.sort_unstable();
        partition.dedup();
        let time_type = input.schema.field(time).data_type().clone();
        let gap = ticks(&node.gap, &time_type)?;
        let bound = |name: &str| (name.trim_start_matches('_').to_owned(), time_type.clone(), false);
        let columns = drafts(&input.schema).into_iter().chain([bound(SESSION_FIRST), bound(SESSION_LAST)]).collect();
        let offset = input.schema.fields().len();
        let session = SessionWindows { partition, time, gap };
        let plan = Arc::new(Plan { node: Node::Session { input, session }, schema: schema(columns) });
        let output: Vec<usize> = (0..width).chain([offset, offset + 1]).collect();
        Ok(take(plan, &output))
    }
}
