//! Nodes of one input as parts of a `SELECT`.

use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use datafusion_common::DFSchema;
use datafusion_expr::Expr;

use super::block::{Block, identifier};
use crate::expressions::{BoundText, ExpressionText, list, quoted};
use crate::{AggregateCall, AggregateFunction, Place, Plan, RankedBy, SortKey, TopK, Window, WindowFunction};

/// Arguments, and what stands beside commas, need no parentheses.
const LOOSE: u8 = 0;

/// Conditions joined by AND.
const CONDITION: u8 = 15;

/// Names for the columns of a plan: plain ones, each once.
pub(super) fn names(schema: &DFSchema) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for field in schema.fields() {
        let mut name = String::new();
        for c in field.name().chars() {
            match c {
                c if c.is_alphanumeric() || c == '_' => name.push(c),
                _ if name.ends_with('_') || name.is_empty() => {}
                _ => name.push('_'),
            }
        }
        let name = match identifier(field.name()) == *field.name() {
            true => field.name().clone(),
            false => {
                Some(name.trim_matches('_').to_lowercase()).filter(|name| !name.is_empty()).unwrap_or("c".to_owned())
            }
        };
        let name: String = name.chars().take(40).collect();
        let free = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}_{n}") });
        let name = free.into_iter().find(|name| !taken.contains(name)).unwrap_or(name);
        taken.push(name);
    }
    taken
}

/// Conditions and columns over a block.
pub(super) fn stage(
    block: Block,
    input: &DFSchema,
    plan: &Plan,
    filter: &[Expr],
    project: &[Expr],
    alias: &str,
) -> Block {
    let is_closed = block.is_distinct || !block.tail.is_empty() || (block.has_windows && !filter.is_empty());
    let mut block = if is_closed { block.nested(alias) } else { block };
    let column = |column: &datafusion_common::Column| {
        let at = input.index_of_column_by_name(None, &column.name);
        at.map_or_else(|| BoundText::tight(identifier(&column.name)), |at| block.columns[at].clone())
    };
    let texts = ExpressionText { column: &column, is_exact: true };
    let conditions: Vec<String> = filter.iter().map(|part| texts.bound(part).within(CONDITION)).collect();
    let columns = project.iter().map(|expr| texts.bound(expr)).collect();
    match block.group {
        Some(_) => block.having.extend(conditions),
        None => block.filter.extend(conditions),
    }
    Block { columns, names: names(&plan.schema), ..block }
}

/// Groups of a block.
pub(super) fn aggregate(block: Block, keys: &[usize], calls: &[String], names: Vec<String>) -> Block {
    let keys: Vec<BoundText> = keys.iter().map(|key| block.columns[*key].clone()).collect();
    let group = keys.iter().map(|key| key.text.clone()).collect();
    let columns = keys.into_iter().chain(calls.iter().map(BoundText::tight)).collect();
    Block { columns, names, group: Some(group), ..block }
}

/// Whether aggregates may be computed in this very block: keys that are literals would be read as
/// positions.
pub(super) fn takes_groups(block: &Block, keys: &[usize]) -> bool {
    block.is_rows() && keys.iter().all(|key| block.columns[*key].text.contains(|c: char| c.is_alphabetic()))
}

/// An aggregate's text.
pub(super) fn call(block: &Block, call: &AggregateCall) -> String {
    let column = |at: usize| block.columns[at].within(LOOSE);
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let argument = call.argument.map_or("*".to_owned(), column);
    let order = match call.order.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", order(block, &call.order)),
    };
    let name = call.function.name();
    let text = match &call.function {
        AggregateFunction::StringAgg(separator) => {
            format!("{name}({distinct}{argument}, {}{order})", quoted(separator))
        }
        AggregateFunction::PercentileCont(part) | AggregateFunction::PercentileDisc(part) => {
            let descending = if call.order.iter().any(|key| key.descending) { " DESC" } else { "" };
            format!("{name}({}) WITHIN GROUP (ORDER BY {argument}{descending})", part.get())
        }
        AggregateFunction::Mode => {
            let descending = if call.order.iter().any(|key| key.descending) { " DESC" } else { "" };
            format!("{name}() WITHIN GROUP (ORDER BY {argument}{descending})")
        }
        AggregateFunction::Custom(_, further) => {
            let further: String = further.iter().map(|at| format!(", {}", column(*at))).collect();
            format!("{name}({distinct}{argument}{further}{order})")
        }
        _ => format!("{name}({distinct}{argument}{order})"),
    };
    match call.filter {
        None => text,
        Some(filter) => format!("{text} FILTER (WHERE {})", column(filter)),
    }
}

fn order(block: &Block, keys: &[SortKey]) -> String {
    list(keys.iter().map(|key| format!("{}{}", block.columns[key.column].within(LOOSE), direction(key))))
}

/// What follows the column of a key.
pub(super) fn direction(key: &SortKey) -> String {
    let direction = if key.descending { " DESC" } else { "" };
    let nulls = match (key.nulls_first, key.descending) {
        (true, false) => " NULLS FIRST",
        (false, true) => " NULLS LAST",
        _ => "",
    };
    format!("{direction}{nulls}")
}

/// Each row once.
pub(super) fn distinct(block: Block) -> Block {
    Block { is_distinct: true, ..block }
}

/// The first rows of each group.
pub(super) fn top_k(block: Block, top: &TopK, plan: &Plan, alias: [&str; 2]) -> Block {
    let order_by = match top.order.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", order(&block, &top.order)),
    };
    if top.group.is_empty() && !top.numbered && top.ranked == RankedBy::Row {
        let limit = top.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let offset = if top.offset > 0 { format!(" OFFSET {}", top.offset) } else { String::new() };
        return Block { tail: format!("{order_by}{limit}{offset}"), ..block };
    }
    let block = if block.is_rows() { block } else { block.nested(alias[0]) };
    let group = match top.group.is_empty() {
        true => String::new(),
        false => format!("PARTITION BY {}", list(top.group.iter().map(|at| block.columns[*at].within(LOOSE)))),
    };
    let place = match top.ranked {
        RankedBy::Row => "row_number",
        RankedBy::Rank => "rank",
        RankedBy::DenseRank => "dense_rank",
    };
    let number = BoundText::tight(format!("{place}() OVER ({})", format!("{group}{order_by}").trim()));
    let width = block.columns.len();
    let mut numbered = block;
    numbered.columns.push(number);
    numbered.names.push("row_in_group".to_owned());
    numbered.has_windows = true;
    let is_all = top.limit.is_none() && top.offset == 0;
    let mut block = if is_all { numbered } else { numbered.nested(alias[1]) };
    let number = block.columns[width].text.clone();
    let last = top.limit.map(|limit| format!("{number} <= {}", limit + top.offset));
    let first = (top.offset > 0).then(|| format!("{number} > {}", top.offset));
    if !is_all {
        block.filter.extend(first.into_iter().chain(last));
    }
    if !top.numbered {
        block.columns.truncate(width);
    }
    Block { names: names(&plan.schema), ..block }
}

/// Window functions over a block of rows.
///
/// # Errors
/// Words for what has no text.
pub(super) fn window(block: Block, window: &Window, plan: &Plan) -> Result<Block, String> {
    let mut parts = Vec::new();
    if !window.partition.is_empty() {
        parts
            .push(format!("PARTITION BY {}", list(window.partition.iter().map(|at| block.columns[*at].within(LOOSE)))));
    }
    if !window.order.is_empty() {
        parts.push(format!("ORDER BY {}", order(&block, &window.order)));
    }
    let over = parts.join(" ");
    let mut columns = block.columns.clone();
    for function in &window.calls {
        let frame = frame(&function.frame)?;
        // (GROUPS wants an order, where all rows are peers too.)
        let needs_order = window.order.is_empty() && frame.starts_with("GROUPS");
        let frame = if needs_order { format!("ORDER BY true {frame}") } else { frame };
        let column = |at: usize| block.columns[at].within(LOOSE);
        let text = match &function.function {
            WindowFunction::Aggregate(aggregate) => call(&block, aggregate),
            WindowFunction::Value { column: at, place } => match place {
                Place::First => format!("first_value({})", column(*at)),
                Place::Last => format!("last_value({})", column(*at)),
                Place::Nth(n) => format!("nth_value({}, {n})", column(*at)),
            },
            WindowFunction::PercentRank => "percent_rank()".to_owned(),
            WindowFunction::CumeDist => "cume_dist()".to_owned(),
        };
        columns.push(BoundText::tight(format!("{text} OVER ({})", format!("{over} {frame}").trim())));
    }
    Ok(Block { columns, names: names(&plan.schema), has_windows: true, ..block })
}

fn frame(frame: &WindowFrame) -> Result<String, String> {
    let ends = [frame.start, frame.end];
    let unit = match ends {
        _ if ends.iter().any(|end| matches!(end, FrameBound::Key(_))) => {
            return Err("a frame of RANGE with an offset".to_owned());
        }
        _ if ends.iter().any(|end| matches!(end, FrameBound::Rows(_))) => "ROWS",
        _ if ends.iter().any(|end| matches!(end, FrameBound::Peers(n) if *n != 0)) => "GROUPS",
        _ => "RANGE",
    };
    let bound = |end: FrameBound| match end {
        FrameBound::First => "UNBOUNDED PRECEDING".to_owned(),
        FrameBound::Last => "UNBOUNDED FOLLOWING".to_owned(),
        FrameBound::Rows(0) | FrameBound::Peers(0) | FrameBound::Key(_) => "CURRENT ROW".to_owned(),
        FrameBound::Rows(n) | FrameBound::Peers(n) if n < 0 => format!("{} PRECEDING", n.unsigned_abs()),
        FrameBound::Rows(n) | FrameBound::Peers(n) => format!("{n} FOLLOWING"),
    };
    let exclude = match frame.exclude {
        Exclude::Nothing => "",
        Exclude::Row => " EXCLUDE CURRENT ROW",
        Exclude::Peers => " EXCLUDE GROUP",
        Exclude::Ties => " EXCLUDE TIES",
    };
    Ok(format!("{unit} BETWEEN {} AND {}{exclude}", bound(frame.start), bound(frame.end)))
}

/// Elements of lists as rows.
pub(super) fn unnest(block: Block, lists: &[usize], plan: &Plan) -> Block {
    let column = |(at, text): (usize, &BoundText)| match lists.contains(&at) {
        true => BoundText::tight(format!("unnest({})", text.within(LOOSE))),
        false => text.clone(),
    };
    let columns = block.columns.iter().enumerate().map(column).collect();
    Block { columns, names: names(&plan.schema), ..block }
}
