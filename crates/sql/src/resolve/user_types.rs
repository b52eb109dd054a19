//! Domains and enumerations: types that users make of others.
//!
//! Rows carry values of the base type, texts for enumerations. A column of such a type has the
//! type's name in the metadata of its field, an enumeration its labels too. The checks of a domain,
//! and the labels of an enumeration, are checks of the table. In plans the columns of enumerations
//! are marked: the mark decides their order.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_expr::sqlparser::ast;

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::resolve::type_marks::{DECLARED, EnumMark, TYPE, element_name, is_unresolved, type_of};
use crate::resolve::types::{arrow_type, text_limit, time_precision, user_name};
use crate::syntax::names::quoted;
use crate::syntax::statement::{Check, CreateTable, CreateType, TypeDefinition};
use crate::syntax::table::elements_check;
use crate::syntax::walk::{Changing, change};

/// Gives the columns of a table the types that are meant by names of users' types, with their
/// defaults and checks.
///
/// # Errors
/// `UnknownName` for a type that is not there.
pub fn resolve(table: &CreateTable, find: &dyn Fn(&str) -> Option<CreateType>) -> Result<Option<CreateTable>> {
    if !table.columns.iter().any(is_unresolved) {
        return Ok(None);
    }
    let mut table = table.clone();
    table.defaults.resize(table.columns.len(), None);
    for at in 0..table.columns.len() {
        let field = &table.columns[at];
        if !is_unresolved(field) {
            continue;
        }
        let name = type_of(field).unwrap_or_default().to_owned();
        let (column, is_nullable) = (field.name().clone(), field.is_nullable());
        if let Some(element) = element_name(&name) {
            let made = find(element).ok_or_else(|| unknown(&name))?;
            let (field, check) = array_of(&made, &column)?;
            table.columns[at] = field.with_nullable(is_nullable);
            table.rules.checks.push(check);
            continue;
        }
        let Some(made) = find(&name) else { return Err(unknown(&name)) };
        table.columns[at] = field_of(&column, &made, find)?.with_nullable(is_nullable);
        for part in chain(&made, find)? {
            if table.defaults[at].is_none()
                && let TypeDefinition::Domain(domain) = &part.definition
            {
                table.defaults[at].clone_from(&domain.default);
            }
            table.rules.checks.extend(checks_of(&part, &column)?);
        }
    }
    Ok(Some(table))
}

/// The column of arrays of an enumeration, and the check of its elements.
fn array_of(made: &CreateType, column: &str) -> Result<(Field, Check)> {
    let TypeDefinition::Enum(labels) = &made.definition else {
        let hint = "Make the column one of arrays of the domain's type, with a CHECK.";
        return Err(SqlError::unsupported(format!("a column of arrays of domain \"{}\"", made.name), hint));
    };
    let list = Field::new(column, DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))), true);
    let expr = elements_check(column, labels)?;
    let check = Check { name: made.name.clone(), expr, of_type: Some((made.clone(), column.to_owned())) };
    Ok((EnumMark::new(&made.name, labels).declare(list), check))
}

/// The type that is not there.
pub fn unknown(name: &str) -> SqlError {
    match arrow_type(&ast::DataType::Custom(ast::ObjectName::from(vec![ast::Ident::new(name)]), vec![])) {
        Err(error) => error,
        Ok(_) => SqlError::internal(format!("type \"{name}\" is a built-in one")),
    }
}

/// A type and those below it.
fn chain(made: &CreateType, find: &dyn Fn(&str) -> Option<CreateType>) -> Result<Vec<CreateType>> {
    let mut chain = vec![made.clone()];
    while let Some(TypeDefinition::Domain(domain)) = chain.last().map(|last| &last.definition) {
        let Some(below) = user_name(&domain.base) else { break };
        chain.push(find(&below).ok_or_else(|| unknown(&below))?);
    }
    Ok(chain)
}

/// The column of a user's type.
///
/// # Errors
/// `UnknownName` for a type below it that is not there.
pub fn field_of(column: &str, made: &CreateType, find: &dyn Fn(&str) -> Option<CreateType>) -> Result<Field> {
    let domain = match &made.definition {
        TypeDefinition::Enum(labels) => {
            return Ok(EnumMark::new(&made.name, labels).declare(Field::new(column, DataType::Utf8View, true)));
        }
        TypeDefinition::Domain(domain) => domain,
    };
    let field = match user_name(&domain.base) {
        Some(below) => field_of(column, &find(&below).ok_or_else(|| unknown(&below))?, find)?,
        None => {
            let field = Field::new(column, arrow_type(&domain.base)?, true);
            match (text_limit(&domain.base)?, time_precision(&domain.base)?) {
                (Some(limit), _) => limit.declare(field),
                (None, Some(precision)) => precision.declare(field),
                (None, None) => field,
            }
        }
    };
    // (A domain over an enumeration is called like that one, which tells its order.)
    let key = if EnumMark::of(&field).is_some() { DECLARED } else { TYPE };
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_owned(), made.name.clone());
    Ok(field.with_metadata(metadata))
}

/// The checks of a type as those of a column.
fn checks_of(made: &CreateType, column: &str) -> Result<Vec<Check>> {
    let check = |name: String, expr: ast::Expr| Check { name, expr, of_type: Some((made.clone(), column.to_owned())) };
    let own = ast::Expr::Identifier(ast::Ident::with_quote('"', column));
    Ok(match &made.definition {
        TypeDefinition::Enum(labels) => {
            let list = labels.iter().map(|label| ast::Expr::value(ast::Value::SingleQuotedString(label.clone())));
            let expr = ast::Expr::InList { expr: Box::new(own), list: list.collect(), negated: false };
            vec![check(made.name.clone(), expr)]
        }
        TypeDefinition::Domain(domain) => {
            let not_null =
                domain.is_not_null.then(|| check(String::new(), ast::Expr::IsNotNull(Box::new(own.clone()))));
            let mut checks: Vec<Check> = not_null.into_iter().collect();
            for (name, expr) in domain.named_checks(&made.name) {
                checks.push(check(name, with_value(expr, &own)?));
            }
            checks
        }
    })
}

/// A condition with the value in the place of `VALUE`.
fn with_value(mut expr: ast::Expr, value: &ast::Expr) -> Result<ast::Expr> {
    change(&mut expr, &mut DomainValue { value })?;
    Ok(expr)
}

struct DomainValue<'a> {
    value: &'a ast::Expr,
}

impl Changing for DomainValue<'_> {
    fn after_expr(&mut self, expr: &mut ast::Expr) -> Result<()> {
        if matches!(expr, ast::Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("value"))
        {
            *expr = self.value.clone();
        }
        Ok(())
    }
}

/// What a cast to a user's type means, as text; `None` for other types.
///
/// # Errors
/// Of a condition that cannot be read.
pub(crate) fn cast_text(value: &ast::Expr, sql: &ast::DataType, catalog: &dyn Catalog) -> Result<Option<String>> {
    if let ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) = sql {
        let made = user_name(element).and_then(|name| catalog.user_type(&name));
        return Ok(made.and_then(|made| cast_elements(value, &made)));
    }
    let Some(made) = user_name(sql).and_then(|name| catalog.user_type(&name)) else { return Ok(None) };
    let domain = match &made.definition {
        TypeDefinition::Enum(labels) => {
            let mark = EnumMark::new(&made.name, labels);
            let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
            let (name, labels) = (literal(&mark.name), literal(&mark.labels));
            // (A parameter says no type.)
            let value = match value {
                ast::Expr::Value(of) if matches!(of.value, ast::Value::Placeholder(_)) => {
                    format!("CAST({value} AS text)")
                }
                other => other.to_string(),
            };
            return Ok(Some(format!("__enum_in({value}, {name}, {labels})")));
        }
        TypeDefinition::Domain(domain) => domain,
    };
    let base = format!("CAST({value} AS {})", domain.base);
    let own = ast::Expr::Nested(Box::new(crate::syntax::parse::parse_expr(&base)?));
    let mut tests = Vec::new();
    if domain.is_not_null {
        let problem = format!("domain {} does not allow null values", made.name);
        tests.push(format!("{own} IS NOT NULL, '{}'", problem.replace('\'', "''")));
    }
    for (name, expr) in domain.named_checks(&made.name) {
        let problem = format!("value for domain {} violates check constraint \"{name}\"", made.name);
        tests.push(format!("{}, '{}'", with_value(expr, &own)?, problem.replace('\'', "''")));
    }
    Ok(Some(match tests.is_empty() {
        true => base,
        false => format!("__domain_in({base}, {})", tests.join(", ")),
    }))
}

/// What a cast to an array of an enumeration means, as text.
fn cast_elements(value: &ast::Expr, made: &CreateType) -> Option<String> {
    let TypeDefinition::Enum(labels) = &made.definition else { return None };
    let mark = EnumMark::new(&made.name, labels);
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    Some(format!("__enums_in(CAST({value} AS text[]), {}, {})", literal(&mark.name), literal(&mark.labels)))
}

/// `enum_range(NULL::mood)` and its like: what they give, as text.
///
/// # Errors
/// None that a user can cause.
pub(crate) fn enum_call(name: &str, args: &[&ast::Expr], catalog: &dyn Catalog) -> Option<String> {
    let enumeration = |arg: &ast::Expr| {
        let ast::Expr::Cast { data_type, .. } = arg else { return None };
        let made = catalog.user_type(&user_name(data_type)?)?;
        match made.definition {
            TypeDefinition::Enum(labels) => Some((quoted(&made.name), labels)),
            TypeDefinition::Domain(_) => None,
        }
    };
    let (of, labels) = args.iter().find_map(|arg| enumeration(arg))?;
    let cast = |label: &String| format!("CAST('{}' AS {of})", label.replace('\'', "''"));
    let all = |labels: &[String]| match labels {
        [] => "CAST('{}' AS text[])".to_owned(),
        labels => format!("ARRAY[{}]", labels.iter().map(cast).collect::<Vec<_>>().join(", ")),
    };
    let place = |arg: &ast::Expr| {
        let value = match arg {
            ast::Expr::Cast { expr, .. } => expr,
            other => other,
        };
        match value {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Null => Some(None),
                ast::Value::SingleQuotedString(text) => labels.iter().position(|label| label == text).map(Some),
                _ => None,
            },
            _ => None,
        }
    };
    match (name, args) {
        ("enum_first", [_]) => labels.first().map(cast),
        ("enum_last", [_]) => labels.last().map(cast),
        ("enum_range", [_]) => Some(all(&labels)),
        ("enum_range", [from, to]) => {
            let (from, to) = (place(from)?.unwrap_or(0), place(to)?.unwrap_or(labels.len() - 1));
            Some(all(labels.get(from..=to).unwrap_or_default()))
        }
        _ => None,
    }
}

impl CreateType {
    /// The statement that makes the type.
    pub fn definition(&self) -> String {
        let name = quoted(&self.name);
        let literal = |text: &String| format!("'{}'", text.replace('\'', "''"));
        match &self.definition {
            TypeDefinition::Enum(labels) => {
                format!("CREATE TYPE {name} AS ENUM ({})", labels.iter().map(literal).collect::<Vec<_>>().join(", "))
            }
            TypeDefinition::Domain(domain) => {
                let mut text = format!("CREATE DOMAIN {name} AS {}", domain.base);
                if let Some(default) = &domain.default {
                    text.push_str(&format!(" DEFAULT {default}"));
                }
                if domain.is_not_null {
                    text.push_str(" NOT NULL");
                }
                for (name, expr) in domain.named_checks(&self.name) {
                    text.push_str(&format!(" CONSTRAINT {} CHECK ({expr})", quoted(&name)));
                }
                text
            }
        }
    }

    /// Puts a label into an enumeration, before or after another, or at the end.
    ///
    /// # Errors
    /// `Type` for a domain, `Duplicate` for a label that is there, `Invalid` for a neighbour that
    /// is not.
    pub fn add_label(&mut self, label: &str, beside: Option<(bool, &str)>) -> Result<()> {
        let TypeDefinition::Enum(labels) = &mut self.definition else {
            return Err(SqlError::new(ErrorKind::Type, format!("\"{}\" is not an enum", self.name)));
        };
        if labels.iter().any(|known| known == label) {
            return Err(SqlError::new(ErrorKind::Duplicate, format!("enum label \"{label}\" already exists")));
        }
        let at = match beside {
            None => labels.len(),
            Some((is_before, other)) => {
                let at = labels.iter().position(|known| known == other).ok_or_else(|| {
                    SqlError::new(ErrorKind::Invalid, format!("\"{other}\" is not an existing enum label"))
                })?;
                if is_before { at } else { at + 1 }
            }
        };
        labels.insert(at, label.to_owned());
        Ok(())
    }

    /// Gives a label of an enumeration another name, in its place.
    ///
    /// # Errors
    /// As [`add_label`](Self::add_label).
    pub fn rename_label(&mut self, from: &str, to: &str) -> Result<()> {
        let TypeDefinition::Enum(labels) = &mut self.definition else {
            return Err(SqlError::new(ErrorKind::Type, format!("\"{}\" is not an enum", self.name)));
        };
        let Some(at) = labels.iter().position(|known| known == from) else {
            return Err(SqlError::new(ErrorKind::Invalid, format!("\"{from}\" is not an existing enum label")));
        };
        if labels.iter().any(|known| known == to) {
            return Err(SqlError::new(ErrorKind::Duplicate, format!("enum label \"{to}\" already exists")));
        }
        labels[at] = to.to_owned();
        Ok(())
    }
}
