//! The columns of `CREATE TABLE` and `ADD COLUMN`, as they are read.

use arrow::datatypes::Field;
use datafusion_expr::sqlparser::ast;
use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::type_marks::{array_name, unresolved};
use crate::resolve::types::{arrow_type, element_limit, text_limit, time_precision, user_name};
use crate::syntax::collation::check_collation;
use crate::syntax::names::fold;
use crate::syntax::references::{ForeignKey, foreign_key};
use crate::syntax::statement::{LikeClause, Made, Numbering, NumberingForm, Rules, UniqueClause, Watermark};

/// Puts the options of `IDENTITY (..)` in the order in which `sqlparser` wants them: PostgreSQL
/// takes any.
pub(super) fn order_options(tokens: &mut [TokenWithSpan]) {
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.value.to_uppercase(),
        _ => String::new(),
    };
    let rank = |token: &TokenWithSpan| match word(token).as_str() {
        "INCREMENT" => Some(0),
        "MINVALUE" => Some(1),
        "MAXVALUE" => Some(2),
        "START" => Some(3),
        "CACHE" => Some(4),
        "CYCLE" => Some(5),
        _ => None,
    };
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    for at in 0..tokens.len() {
        if word(&tokens[at]) != "IDENTITY" {
            continue;
        }
        let Some(open) = (at + 1..tokens.len()).find(|at| !is_space(&tokens[*at])) else { continue };
        let close = (open..tokens.len()).find(|at| tokens[*at].token == Token::RParen);
        let (Some(close), true) = (close, tokens[open].token == Token::LParen) else { continue };
        let mut options: Vec<(u8, Vec<TokenWithSpan>)> = Vec::new();
        for token in tokens[open + 1..close].iter() {
            // (`NO` belongs to the word behind it.)
            let begins = rank(token).filter(|_| options.last().is_none_or(|(rank, _)| *rank != NO));
            match (begins, options.last_mut()) {
                (Some(rank), _) => options.push((rank, vec![token.clone()])),
                (None, _) if word(token) == "NO" => options.push((NO, vec![token.clone()])),
                (None, Some((own, option))) => {
                    option.push(token.clone());
                    if let (NO, Some(rank)) = (*own, rank(token)) {
                        *own = rank;
                    }
                }
                (None, None) => options.push((0, vec![token.clone()])),
            }
        }
        options.sort_by_key(|(rank, _)| *rank);
        let space = TokenWithSpan::wrap(Token::Whitespace(Whitespace::Space));
        let mut ordered: Vec<TokenWithSpan> =
            options.into_iter().flat_map(|(_, option)| option.into_iter().filter(|token| !is_space(token))).collect();
        ordered.resize(close - open - 1, space);
        tokens[open + 1..close].clone_from_slice(&ordered);
    }
}

/// An option that begins with `NO`, whose other word has not come.
const NO: u8 = 9;

/// Columns as they are collected.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) like: Option<LikeClause>,
    pub(super) fields: Vec<Field>,
    pub(super) defaults: Vec<Option<ast::Expr>>,
    /// Where the values of each come from.
    pub(super) made: Vec<Made>,
    /// CHECKs, with the names that users gave.
    pub(super) checks: Vec<(Option<String>, ast::Expr)>,
    /// `UNIQUE`, at a column or at the end.
    pub(super) uniques: Vec<UniqueClause>,
    /// Foreign keys; names are empty where none was given.
    pub(super) references: Vec<ForeignKey>,
    /// Names of the key's columns, from `PRIMARY KEY` at a column or at the end.
    pub(super) key_names: Vec<String>,
    pub(super) primary_key: Vec<usize>,
    pub(super) watermark: Option<Watermark>,
}

impl Columns {
    /// Adds a column.
    pub(super) fn add(&mut self, definition: ast::ColumnDef) -> Result<()> {
        let name = fold(&definition.name);
        if self.fields.iter().any(|field| *field.name() == name) {
            return Err(SqlError::new(ErrorKind::Duplicate, format!("column \"{name}\" is specified more than once")));
        }
        if definition.data_type == ast::DataType::Unspecified {
            return Err(SqlError::new(ErrorKind::Syntax, format!("column \"{name}\" has no type")));
        }
        let serial = serial_type(&definition.data_type);
        let plain = typed_field(&name, serial.as_ref().unwrap_or(&definition.data_type))?;
        let mut nullable = serial.is_none();
        let mut made = match serial {
            Some(_) => Made::Numbered(Numbering { form: NumberingForm::Serial, start: 1, step: 1 }),
            None => Made::Given,
        };
        let mut default = None;
        for option in definition.options {
            match option.option {
                ast::ColumnOption::Null | ast::ColumnOption::Comment(_) => {}
                ast::ColumnOption::NotNull => nullable = false,
                ast::ColumnOption::Default(expr) => default = Some(expr),
                ast::ColumnOption::PrimaryKey(_) => {
                    if !self.key_names.is_empty() {
                        return Err(SqlError::new(ErrorKind::Duplicate, "the table has two primary keys")
                            .with_hint("Write PRIMARY KEY (a, b) after the columns for a key of several columns."));
                    }
                    self.key_names.push(name.clone());
                }
                ast::ColumnOption::Unique(unique) => {
                    let given = option.name.as_ref().or(unique.name.as_ref()).map(fold);
                    self.uniques.push(UniqueClause { name: given, columns: vec![name.clone()] });
                }
                ast::ColumnOption::ForeignKey(mut constraint) => {
                    constraint.name = option.name.or(constraint.name);
                    self.references.push(foreign_key(constraint, Some(&name))?);
                }
                ast::ColumnOption::Check(check) => {
                    let given = option.name.as_ref().or(check.name.as_ref()).map(fold);
                    self.checks.push((given, *check.expr));
                }
                ast::ColumnOption::Generated {
                    generated_as,
                    sequence_options,
                    generation_expr,
                    generation_expr_mode,
                    ..
                } => {
                    made = generated(generated_as, sequence_options, generation_expr, generation_expr_mode)?;
                    nullable &= matches!(made, Made::Computed(_));
                }
                ast::ColumnOption::Collation(collation) => check_collation(&collation.to_string())?,
                other => return Err(unsupported_constraint(&other.to_string())),
            }
        }
        if default.is_some() && !matches!(made, Made::Given) {
            return Err(SqlError::new(
                ErrorKind::Invalid,
                format!("both default and generated values specified for column \"{name}\""),
            ));
        }
        self.fields.push(plain.with_nullable(nullable));
        self.defaults.push(default);
        self.made.push(made);
        Ok(())
    }

    /// Whether there is more than names, types, NOT NULL and a key.
    pub(super) fn has_rules(&self) -> bool {
        self.like.is_some()
            || !self.checks.is_empty()
            || !self.references.is_empty()
            || self.made.iter().any(|made| !matches!(made, Made::Given))
    }

    /// The rules of a table of that name.
    pub(super) fn rules(&self, table: &str) -> Rules {
        let mut rules = Rules { checks: vec![], made: self.made.clone(), references: vec![] };
        let names: Vec<&str> = self.fields.iter().map(|field| field.name().as_str()).collect();
        for (name, expr) in &self.checks {
            rules.add_check(table, &names, name.clone(), expr.clone());
        }
        for reference in &self.references {
            rules.add_reference(table, reference.clone());
        }
        rules
    }

    /// Resolves the key's columns, which are never null.
    pub(super) fn finish(mut self) -> Result<Self> {
        if let Some(Watermark { column, .. }) = &self.watermark
            // (Without columns they are a source's, which its connector finds.)
            && !self.fields.is_empty()
            && self.fields.iter().all(|field| field.name() != column)
        {
            return Err(SqlError::new(
                ErrorKind::UnknownName,
                format!("column \"{column}\" named in the watermark does not exist"),
            ));
        }
        for unique in &self.uniques {
            check_unique(unique, &|name| self.fields.iter().any(|field| field.name() == name))?;
        }
        // (Columns of the other table are not known here.)
        let own = self.references.iter().filter(|_| self.like.is_none());
        for name in own.flat_map(|reference| &reference.columns) {
            if self.fields.iter().all(|field| field.name() != name) {
                let message = format!("column \"{name}\" referenced in foreign key constraint does not exist");
                return Err(SqlError::new(ErrorKind::UnknownName, message));
            }
        }
        for name in &self.key_names {
            let Some(at) = self.fields.iter().position(|field| field.name() == name) else {
                return Err(SqlError::new(
                    ErrorKind::UnknownName,
                    format!("column \"{name}\" named in the primary key does not exist"),
                ));
            };
            if self.primary_key.contains(&at) {
                return Err(SqlError::new(
                    ErrorKind::Duplicate,
                    format!("column \"{name}\" appears twice in the primary key"),
                ));
            }
            self.primary_key.push(at);
            self.fields[at].set_nullable(false);
        }
        Ok(self)
    }
}

/// Refuses UNIQUE of columns that are not there, or come twice.
fn check_unique(unique: &UniqueClause, is_there: &dyn Fn(&str) -> bool) -> Result<()> {
    for (at, name) in unique.columns.iter().enumerate() {
        if !is_there(name) {
            let message = format!("column \"{name}\" named in UNIQUE does not exist");
            return Err(SqlError::new(ErrorKind::UnknownName, message));
        }
        if unique.columns[..at].contains(name) {
            let message = format!("column \"{name}\" appears twice in UNIQUE");
            return Err(SqlError::new(ErrorKind::Duplicate, message));
        }
    }
    Ok(())
}

/// The column of that name and type, which may be NULL.
pub(super) fn typed_field(name: &str, sql: &ast::DataType) -> Result<Field> {
    if let Some(user) = user_name(sql) {
        return Ok(unresolved(name, &user));
    }
    if let ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) = sql
        && let Some(user) = user_name(element)
    {
        return Ok(unresolved(name, &array_name(&user)));
    }
    let field = Field::new(name, arrow_type(sql)?, true);
    if let Some(limit) = element_limit(sql)? {
        return Ok(limit.declare_elements(field));
    }
    Ok(match (text_limit(sql)?, time_precision(sql)?) {
        (Some(limit), _) => limit.declare(field),
        (None, Some(precision)) => precision.declare(field),
        (None, None) => field,
    })
}

/// The type of the numbers of a `serial` column.
fn serial_type(sql: &ast::DataType) -> Option<ast::DataType> {
    let ast::DataType::Custom(name, _) = sql else { return None };
    match name.to_string().to_lowercase().as_str() {
        "serial" | "serial4" => Some(ast::DataType::Int(None)),
        "bigserial" | "serial8" => Some(ast::DataType::BigInt(None)),
        "smallserial" | "serial2" => Some(ast::DataType::SmallInt(None)),
        _ => None,
    }
}

/// `GENERATED ..`.
fn generated(
    generated_as: ast::GeneratedAs,
    options: Option<Vec<ast::SequenceOptions>>,
    expr: Option<ast::Expr>,
    mode: Option<ast::GeneratedExpressionMode>,
) -> Result<Made> {
    if let Some(expr) = expr {
        return match mode {
            Some(ast::GeneratedExpressionMode::Stored) => Ok(Made::Computed(Box::new(expr))),
            _ => Err(SqlError::unsupported(
                "a generated column that is not stored",
                "Write GENERATED ALWAYS AS (..) STORED, or compute the value in a view.",
            )),
        };
    }
    let form = match generated_as {
        ast::GeneratedAs::ByDefault => NumberingForm::ByDefault,
        _ => NumberingForm::Always,
    };
    numbering(form, options.unwrap_or_default()).map(Made::Numbered)
}

/// `AS IDENTITY (options)`.
pub(super) fn numbering(form: NumberingForm, options: Vec<ast::SequenceOptions>) -> Result<Numbering> {
    let (mut start, mut step) = (None, 1);
    for option in options {
        match option {
            ast::SequenceOptions::StartWith(expr, _) => start = Some(whole(&expr)?),
            ast::SequenceOptions::IncrementBy(expr, _) => step = whole(&expr)?,
            ast::SequenceOptions::Cache(_)
            | ast::SequenceOptions::Cycle(false)
            | ast::SequenceOptions::MinValue(None)
            | ast::SequenceOptions::MaxValue(None) => {}
            other => {
                let hint = "START WITH and INCREMENT BY are the options that there are.";
                return Err(SqlError::unsupported(format!("the option{other} of an identity column"), hint));
            }
        }
    }
    if step == 0 {
        return Err(SqlError::new(ErrorKind::Invalid, "INCREMENT must not be zero"));
    }
    Ok(Numbering { form, start: start.unwrap_or(if step > 0 { 1 } else { -1 }), step })
}

fn whole(expr: &ast::Expr) -> Result<i64> {
    expr.to_string().replace(' ', "").parse().map_err(|_| {
        SqlError::new(ErrorKind::Syntax, format!("{expr} is no whole number")).with_hint("Write a number.")
    })
}

pub(super) fn unsupported_constraint(construct: &str) -> SqlError {
    SqlError::unsupported(construct, "Leave it out.")
}
