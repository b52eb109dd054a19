//! The name of a column that has none: what PostgreSQL makes of its expression.
//!
//! Law: a column, a call and a subquery give their name to what stands around them. A cast gives
//! the name of its type, and CASE `case`, only where what they hold has no name or has one of a
//! type. All else has no name, and the column is `?column?`. Source: `FigureColname` of PostgreSQL.

use datafusion_expr::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, SelectItem, SetExpr, TimezoneInfo,
    TrimWhereField,
};

use crate::syntax::names::fold;

/// A name, and whether it gives way to the name of a cast or CASE around it.
struct Figured {
    name: String,
    gives_way: bool,
}

/// The items that name the columns of a query.
pub(super) fn select_items(body: &SetExpr) -> Option<&Vec<SelectItem>> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => select_items(&query.body),
        SetExpr::SetOperation { left, .. } => select_items(left),
        _ => None,
    }
}

/// The name of an item; `None` for what stands for several columns.
pub(super) fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        SelectItem::UnnamedExpr(expr) => Some(expression_name(expr).unwrap_or_else(|| "?column?".into())),
        _ => None,
    }
}

/// The name of an expression in a select list.
fn expression_name(expr: &Expr) -> Option<String> {
    figured(expr).map(|figured| figured.name)
}

fn figured(expr: &Expr) -> Option<Figured> {
    let named = |name: &str| Some(Figured { name: name.to_owned(), gives_way: false });
    match expr {
        Expr::Identifier(ident) => named(&fold(ident)),
        Expr::CompoundIdentifier(parts) => named(&fold(parts.last()?)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let fields = access_chain.iter().rev().filter_map(|access| match access {
                AccessExpr::Dot(field) => figured(field),
                AccessExpr::Subscript(_) => None,
            });
            fields.chain(figured(root)).next()
        }
        Expr::Function(function) => named(&fold(function.name.0.last()?.as_ident()?)),
        Expr::Nested(inner) => figured(inner),
        Expr::Collate { expr, .. } => figured(expr),
        Expr::Cast { expr, data_type, .. } => around(figured(expr), &type_name(data_type)),
        Expr::TypedString(typed) => around(None, &type_name(&typed.data_type)),
        Expr::Interval(_) => around(None, "interval"),
        Expr::Case { else_result, .. } => around(else_result.as_deref().and_then(figured), "case"),
        Expr::Subquery(query) => named(&item_name(select_items(&query.body)?.first()?)?),
        Expr::Exists { negated: false, .. } => named("exists"),
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => named("overlaps"),
        Expr::Array(_) => named("array"),
        Expr::Tuple(_) => named("row"),
        Expr::Extract { .. } => named("extract"),
        Expr::AtTimeZone { .. } => named("timezone"),
        Expr::Substring { shorthand, .. } => named(if *shorthand { "substr" } else { "substring" }),
        Expr::Position { .. } => named("position"),
        Expr::Overlay { .. } => named("overlay"),
        Expr::Ceil { .. } => named("ceil"),
        Expr::Floor { .. } => named("floor"),
        Expr::Trim { trim_where, .. } => named(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        _ => None,
    }
}

/// The name of what is inside, or else this one.
fn around(inside: Option<Figured>, name: &str) -> Option<Figured> {
    match inside {
        Some(figured) if !figured.gives_way => Some(figured),
        _ => Some(Figured { name: name.to_owned(), gives_way: true }),
    }
}

/// The name by which PostgreSQL's catalog knows a type; of an array, that of its elements.
fn type_name(data_type: &DataType) -> String {
    let known = match data_type {
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => "float4",
        DataType::Float(_) | DataType::Float8 | DataType::Double(_) | DataType::DoublePrecision => "float8",
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "varchar",
        DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Time(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => "timetz",
        DataType::Time(..) => "time",
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(of)
            | ArrayElemTypeDef::SquareBracket(of, _)
            | ArrayElemTypeDef::Parenthesis(of),
        ) => return type_name(of),
        DataType::Custom(name, _) => {
            return name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
        }
        other => return other.to_string().split(['(', ' ']).next().unwrap_or_default().to_lowercase(),
    };
    known.to_owned()
}
