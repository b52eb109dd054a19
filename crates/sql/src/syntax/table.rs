//! Definitions of tables: their text, and what ALTER TABLE makes of them.
//!
//! Law: the text of a definition parses to the same definition. A change of a definition is one of
//! two kinds: the rows stay as they are, or each row is written anew, from the columns that the row
//! had. Cost: of the definition's size.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType, Field};
use datafusion_expr::sqlparser::ast::{self, Expr, Ident};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::type_names::is_text;
use crate::resolve::types::column_type_name;
use crate::syntax::names::{fold, quoted};
pub use crate::syntax::names::{own_name, quoted_path};
use crate::syntax::parse::parse_expr;
use crate::syntax::references::ForeignKey;
use crate::syntax::statement::{
    AlterAction, Check, CreateTable, CreateType, Made, NewColumn, Numbering, NumberingForm, Rules, TypeDefinition,
};
use crate::syntax::walk::{Changing, Look, Looking, change, look};

impl Rules {
    /// Adds a foreign key of a table. Without a name it is named as PostgreSQL does: after its
    /// columns.
    pub(crate) fn add_reference(&mut self, table: &str, mut reference: ForeignKey) {
        if reference.name.is_empty() {
            let table = table.rsplit_once('.').map_or(table, |(_, own)| own);
            let base = format!("{table}_{}_fkey", reference.columns.join("_"));
            reference.name = self.free_name(base);
        }
        self.references.push(reference);
    }

    /// The first name of this form that no constraint has.
    fn free_name(&self, base: String) -> String {
        let mut tried = std::iter::once(base.clone()).chain((1..).map(|n| format!("{base}{n}")));
        let is_free = |name: &String| !self.has_constraint(name);
        tried.find(is_free).expect("the names to try are endless")
    }

    /// Whether a CHECK or a foreign key has this name.
    fn has_constraint(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name)
            || self.references.iter().any(|reference| reference.name == name)
    }

    /// Adds a CHECK of a table with these columns. Without a name it is named as PostgreSQL does:
    /// after the one column that it names, if it names one.
    pub(crate) fn add_check(&mut self, table: &str, columns: &[&str], name: Option<String>, expr: Expr) {
        let name = name.unwrap_or_else(|| {
            let table = table.rsplit_once('.').map_or(table, |(_, own)| own);
            let named: Vec<&&str> = columns.iter().filter(|column| names_column(&expr, column)).collect();
            let base = match named.as_slice() {
                [column] => format!("{table}_{column}_check"),
                _ => format!("{table}_check"),
            };
            self.free_name(base)
        });
        self.checks.push(Check { name, expr, of_type: None });
    }
}

impl Check {
    /// Takes note of the labels that an enumeration has now.
    pub fn relabel(&mut self, made: &CreateType) {
        let Some((of, column)) = &mut self.of_type else { return };
        *of = made.clone();
        match (&mut self.expr, &made.definition) {
            (Expr::InList { list, .. }, TypeDefinition::Enum(labels)) => {
                let literal = |label: &String| Expr::value(ast::Value::SingleQuotedString(label.clone()));
                *list = labels.iter().map(literal).collect();
            }
            // (A text that has been read once is read again.)
            (expr, TypeDefinition::Enum(labels)) => {
                if let Ok(check) = elements_check(column, labels) {
                    *expr = check;
                }
            }
            _ => {}
        }
    }

    /// Whether the condition names a column.
    pub fn names(&self, column: &str) -> bool {
        names_column(&self.expr, column)
    }
}

/// The condition that the elements of a column are labels, or NULL.
pub(crate) fn elements_check(column: &str, labels: &[String]) -> Result<Expr> {
    let list: Vec<String> = labels.iter().map(|label| format!("'{}'", label.replace('\'', "''"))).collect();
    let column = Ident::with_quote('"', column);
    let text = format!("array_remove({column}::text[], NULL) <@ ARRAY[{}]::text[]", list.join(", "));
    parse_expr(&text)
}

/// Whether a query stands in an expression.
pub fn has_query(expr: &Expr) -> bool {
    let mut queries = Queries { found: false };
    look(expr, &mut queries);
    queries.found
}

struct Queries {
    found: bool,
}

impl Looking for Queries {
    fn query(&mut self, _query: &ast::Query) -> Look {
        self.found = true;
        ControlFlow::Break(())
    }
}

/// Whether an expression names a column.
pub(crate) fn names_column(expr: &Expr, column: &str) -> bool {
    let mut names = Names { column, found: false };
    look(expr, &mut names);
    names.found
}

struct Names<'a> {
    column: &'a str,
    found: bool,
}

impl Looking for Names<'_> {
    fn expr(&mut self, expr: &Expr) -> Look {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        self.found |= name.is_some_and(|name| fold(name) == self.column);
        ControlFlow::Continue(())
    }
}

/// A definition that is being changed.
#[derive(Clone, Debug)]
pub struct Altered {
    /// The definition so far.
    pub table: CreateTable,
    /// What fills each column of rows that are there.
    pub from: Vec<Filled>,
    /// What becomes of the rows.
    pub rows: RowsBecome,
    /// What rows that stay must be checked for.
    pub to_check: Vec<ToCheck>,
    /// Counters that start anew: columns, and their next numbers.
    pub restarts: Vec<(usize, i64)>,
}

/// What fills a column of rows that are there.
#[derive(Clone, Debug)]
pub enum Filled {
    /// The column of that name before.
    Before(String),
    /// An expression over the columns before.
    Value(Box<Expr>),
    /// The column's default, expression or counter.
    Default,
}

/// What becomes of the rows of a table whose definition changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsBecome {
    /// They stay.
    Same,
    /// They are written anew.
    New,
}

/// What rows that stay must be checked for.
#[derive(Clone, Debug)]
pub enum ToCheck {
    /// No NULL in the column.
    NotNull(String),
    /// The CHECK.
    Check(Box<Check>),
    /// The foreign key.
    Reference(ForeignKey),
}

impl Altered {
    /// No change yet.
    pub fn new(mut table: CreateTable) -> Altered {
        table.rules.made.resize(table.columns.len(), Made::Given);
        table.defaults.resize(table.columns.len(), None);
        let from = table.columns.iter().map(|field| Filled::Before(field.name().clone())).collect();
        Altered { table, from, rows: RowsBecome::Same, to_check: vec![], restarts: vec![] }
    }

    /// Makes one change; renaming the table is left to the caller.
    ///
    /// # Errors
    /// `UnknownName` for a column or constraint that is not there, `Duplicate` for one that is.
    pub fn apply(&mut self, action: &AlterAction) -> Result<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists } => self.add_column(column, *if_not_exists),
            AlterAction::DropColumn { name, if_exists } => self.drop_column(name, *if_exists),
            AlterAction::RenameColumn { from, to } => self.rename_column(from, to),
            AlterAction::SetDefault { column, default } => self.set_default(column, default.clone()),
            AlterAction::SetNullable { column, nullable } => self.set_nullable(column, *nullable),
            AlterAction::SetType { column, field, type_text, using } => {
                self.set_type(column, field, type_text, using.as_ref())
            }
            AlterAction::Restart { column, with } => self.restart(column, *with),
            AlterAction::AddCheck { name, expr } => self.add_check(name.clone(), expr.clone()),
            AlterAction::AddReference(reference) => self.add_reference(reference.clone()),
            AlterAction::AddPrimaryKey { columns } => self.add_primary_key(columns),
            AlterAction::DropConstraint { name, if_exists } => self.drop_constraint(name, *if_exists),
            AlterAction::Rename { .. } | AlterAction::AddUnique(_) | AlterAction::Stop | AlterAction::Nothing => Ok(()),
        }
    }

    fn place(&self, column: &str) -> Result<usize> {
        self.table.columns.iter().position(|field| field.name() == column).ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{}\" does not exist", self.table.name);
            SqlError::new(ErrorKind::UnknownName, message)
        })
    }

    fn refuse_name(&self, column: &str) -> Result<()> {
        if self.table.columns.iter().all(|field| field.name() != column) {
            return Ok(());
        }
        let message = format!("column \"{column}\" of relation \"{}\" already exists", self.table.name);
        Err(SqlError::new(ErrorKind::Duplicate, message))
    }

    fn add_column(&mut self, column: &NewColumn, if_not_exists: bool) -> Result<()> {
        let name = column.field.name();
        if if_not_exists && self.place(name).is_ok() {
            return Ok(());
        }
        self.refuse_name(name)?;
        self.table.columns.push(column.field.clone());
        self.table.defaults.push(column.default.clone());
        self.table.rules.made.push(column.made.clone());
        self.from.push(Filled::Default);
        self.rows = RowsBecome::New;
        for (name, expr) in &column.checks {
            self.add_check(name.clone(), expr.clone())?;
        }
        for reference in &column.references {
            self.add_reference(reference.clone())?;
        }
        if column.is_key { self.add_primary_key(std::slice::from_ref(name)) } else { Ok(()) }
    }

    fn drop_column(&mut self, name: &str, if_exists: bool) -> Result<()> {
        if if_exists && self.place(name).is_err() {
            return Ok(());
        }
        let at = self.place(name)?;
        self.refuse_watermark(name)?;
        let table = &mut self.table;
        let computed = table.rules.made.iter().zip(&table.columns).find_map(|(made, field)| match made {
            Made::Computed(expr) if field.name() != name && names_column(expr, name) => Some(field.name().clone()),
            _ => None,
        });
        if let Some(computed) = computed {
            let message = format!("cannot drop column \"{name}\" because others depend on it");
            return Err(SqlError::new(ErrorKind::Invalid, message)
                .with_detail(format!("Column \"{computed}\" of table \"{}\" is computed from it.", table.name))
                .with_hint("Drop that column first."));
        }
        if table.columns.len() == 1 {
            let hint = "DROP the table, or add a column before.";
            return Err(SqlError::unsupported("dropping the last column of a table", hint));
        }
        table.columns.remove(at);
        table.defaults.remove(at);
        table.rules.made.remove(at);
        table.rules.checks.retain(|check| !names_column(&check.expr, name));
        table.rules.references.retain(|reference| reference.columns.iter().all(|column| column != name));
        if table.primary_key.contains(&at) {
            table.primary_key.clear();
        }
        table.primary_key.iter_mut().filter(|key| **key > at).for_each(|key| *key -= 1);
        self.from.remove(at);
        self.rows = RowsBecome::New;
        Ok(())
    }

    fn refuse_watermark(&self, column: &str) -> Result<()> {
        match &self.table.watermark {
            Some(watermark) if watermark.column == column => Err(SqlError::unsupported(
                format!("changing column \"{column}\", on which the watermark of the table stands"),
                "Create a new table, and INSERT the rows of this one into it.",
            )),
            _ => Ok(()),
        }
    }

    fn rename_column(&mut self, from: &str, to: &str) -> Result<()> {
        let at = self.place(from)?;
        self.refuse_name(to)?;
        self.refuse_watermark(from)?;
        let table = &mut self.table;
        table.columns[at] = table.columns[at].clone().with_name(to);
        let mut rename = Rename { from, to };
        for check in &mut table.rules.checks {
            change(&mut check.expr, &mut rename)?;
            check
                .of_type
                .iter_mut()
                .filter(|(_, column)| column == from)
                .for_each(|(_, column)| *column = to.to_owned());
        }
        let own = table.rules.references.iter_mut().flat_map(|reference| &mut reference.columns);
        own.filter(|column| *column == from).for_each(|column| *column = to.to_owned());
        for made in &mut table.rules.made {
            if let Made::Computed(expr) = made {
                change(expr, &mut rename)?;
            }
        }
        Ok(())
    }

    fn set_default(&mut self, column: &str, default: Option<Expr>) -> Result<()> {
        let at = self.place(column)?;
        if let Made::Computed(_)
        | Made::Numbered(Numbering { form: NumberingForm::Always | NumberingForm::ByDefault, .. }) =
            self.table.rules.made[at]
        {
            let message = format!("column \"{column}\" of relation \"{}\" is generated", self.table.name);
            return Err(SqlError::new(ErrorKind::Invalid, message).with_hint("Drop the column, and add it anew."));
        }
        // (The default of a serial column is its counter.)
        self.table.rules.made[at] = Made::Given;
        self.table.defaults[at] = default;
        Ok(())
    }

    fn set_nullable(&mut self, column: &str, nullable: bool) -> Result<()> {
        let at = self.place(column)?;
        if nullable && self.table.primary_key.contains(&at) {
            return Err(SqlError::new(ErrorKind::Invalid, format!("column \"{column}\" is in a primary key")));
        }
        if self.table.columns[at].is_nullable() == nullable {
            return Ok(());
        }
        self.table.columns[at] = self.table.columns[at].clone().with_nullable(nullable);
        match nullable {
            // (Plans over the table may rely on NOT NULL.)
            true => self.rows = RowsBecome::New,
            false => self.to_check.push(ToCheck::NotNull(column.to_string())),
        }
        Ok(())
    }

    fn set_type(&mut self, column: &str, field: &Field, text: &str, using: Option<&Expr>) -> Result<()> {
        let at = self.place(column)?;
        self.refuse_watermark(column)?;
        let old = self.table.columns[at].clone();
        let (was, is) = (old.data_type(), field.data_type());
        if using.is_none() && is_text(was) && !is_text(is) {
            let wanted = column_type_name(field);
            let message = format!("column \"{column}\" cannot be cast automatically to type {wanted}");
            return Err(SqlError::new(ErrorKind::Type, message)
                .with_hint(format!("Say what becomes of the values: USING \"{column}\"::{text}.")));
        }
        self.table.columns[at] = field.clone().with_name(column).with_nullable(old.is_nullable());
        // (What the old type checks goes with it.)
        self.table.rules.checks.retain(|check| check.of_type.as_ref().is_none_or(|(_, of)| of != column));
        if let Filled::Before(name) = &self.from[at] {
            let value = match using {
                Some(using) => using.to_string(),
                None => quoted(name),
            };
            self.from[at] = Filled::Value(Box::new(parse_expr(&format!("CAST(({value}) AS {text})"))?));
        }
        if let Some(default) = &mut self.table.defaults[at] {
            *default = parse_expr(&format!("CAST(({default}) AS {text})"))?;
        }
        self.rows = RowsBecome::New;
        Ok(())
    }

    fn restart(&mut self, column: &str, with: Option<i64>) -> Result<()> {
        let at = self.place(column)?;
        match &self.table.rules.made[at] {
            Made::Numbered(numbering) => self.restarts.push((at, with.unwrap_or(numbering.start))),
            _ => {
                let message =
                    format!("column \"{column}\" of relation \"{}\" is not an identity column", self.table.name);
                return Err(SqlError::new(ErrorKind::Invalid, message));
            }
        }
        Ok(())
    }

    fn add_check(&mut self, name: Option<String>, expr: Expr) -> Result<()> {
        let table = &mut self.table;
        if let Some(name) = &name
            && table.rules.has_constraint(name)
        {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new(ErrorKind::Duplicate, message));
        }
        let names: Vec<&str> = table.columns.iter().map(|field| field.name().as_str()).collect();
        table.rules.add_check(&table.name, &names, name, expr);
        self.to_check.extend(table.rules.checks.last().cloned().map(Box::new).map(ToCheck::Check));
        Ok(())
    }

    fn add_reference(&mut self, reference: ForeignKey) -> Result<()> {
        for column in &reference.columns {
            self.place(column)?;
        }
        let table = &mut self.table;
        if table.rules.has_constraint(&reference.name) {
            let message = format!("constraint \"{}\" for relation \"{}\" already exists", reference.name, table.name);
            return Err(SqlError::new(ErrorKind::Duplicate, message));
        }
        table.rules.add_reference(&table.name, reference);
        self.to_check.extend(table.rules.references.last().cloned().map(ToCheck::Reference));
        Ok(())
    }

    fn add_primary_key(&mut self, columns: &[String]) -> Result<()> {
        if !self.table.primary_key.is_empty() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", self.table.name);
            return Err(SqlError::new(ErrorKind::Invalid, message));
        }
        for column in columns {
            let at = self.place(column)?;
            if self.table.primary_key.contains(&at) {
                let message = format!("column \"{column}\" appears twice in the primary key");
                return Err(SqlError::new(ErrorKind::Duplicate, message));
            }
            self.table.primary_key.push(at);
            self.table.columns[at] = self.table.columns[at].clone().with_nullable(false);
        }
        self.rows = RowsBecome::New;
        Ok(())
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let table = &mut self.table;
        let own = table.name.rsplit_once('.').map_or(table.name.as_str(), |(_, own)| own);
        if !table.primary_key.is_empty() && name == format!("{own}_pkey") {
            table.primary_key.clear();
            self.rows = RowsBecome::New;
            return Ok(());
        }
        let is_there = table.rules.has_constraint(name);
        table.rules.checks.retain(|check| check.name != name);
        table.rules.references.retain(|reference| reference.name != name);
        self.to_check.retain(|checked| match checked {
            ToCheck::Check(check) => check.name != name,
            ToCheck::Reference(reference) => reference.name != name,
            ToCheck::NotNull(_) => true,
        });
        if !is_there && !if_exists {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new(ErrorKind::UnknownName, message));
        }
        Ok(())
    }
}

/// Gives a column another name in an expression.
struct Rename<'a> {
    from: &'a str,
    to: &'a str,
}

impl Changing for Rename<'_> {
    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(name) = name.filter(|name| fold(name) == self.from) {
            *name = Ident::with_quote('"', self.to);
        }
        Ok(())
    }
}

impl CreateTable {
    /// The statement that makes the table.
    pub fn definition(&self) -> String {
        let mut parts: Vec<String> = (0..self.columns.len()).map(|column| self.column_text(column)).collect();
        if !self.primary_key.is_empty() {
            let key: Vec<String> = self.primary_key.iter().map(|at| quoted(self.columns[*at].name())).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        parts.extend(
            self.rules
                .checks
                .iter()
                .filter(|check| check.of_type.is_none())
                .map(|check| format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.expr)),
        );
        let references = self.rules.references.iter();
        parts.extend(references.map(|key| format!("CONSTRAINT {} {}", quoted(&key.name), key.text())));
        if let Some(watermark) = &self.watermark {
            let column = quoted(&watermark.column);
            parts.push(format!("WATERMARK FOR {column} AS {column} - {}", watermark.delay));
        }
        let append_only = if self.is_append_only { " APPEND ONLY" } else { "" };
        format!("CREATE TABLE {} ({}){append_only}{}", quoted_path(&self.name), parts.join(", "), self.options_text())
    }

    fn column_text(&self, at: usize) -> String {
        let field = &self.columns[at];
        let name = quoted(field.name());
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        let of_type = column_type_name(field);
        match self.rules.made(at) {
            Made::Given => match self.defaults.get(at).and_then(Option::as_ref) {
                Some(default) => format!("{name} {of_type}{not_null} DEFAULT {default}"),
                None => format!("{name} {of_type}{not_null}"),
            },
            Made::Computed(expr) => format!("{name} {of_type}{not_null} GENERATED ALWAYS AS ({expr}) STORED"),
            Made::Numbered(Numbering { form: NumberingForm::Serial, .. }) => {
                format!("{name} {}{not_null}", serial_name(field.data_type()))
            }
            Made::Numbered(Numbering { form, start, step }) => {
                let when = if *form == NumberingForm::Always { "ALWAYS" } else { "BY DEFAULT" };
                format!(
                    "{name} {of_type} GENERATED {when} AS IDENTITY (INCREMENT BY {step} START WITH {start}){not_null}"
                )
            }
        }
    }

    fn options_text(&self) -> String {
        let option = |(name, value): &(String, String)| format!("{name} = '{}'", value.replace('\'', "''"));
        let options: Vec<String> = self.options.iter().map(option).collect();
        if options.is_empty() { String::new() } else { format!(" WITH ({})", options.join(", ")) }
    }
}

fn serial_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int16 => "smallserial",
        DataType::Int64 => "bigserial",
        _ => "serial",
    }
}

/// The query of a table's rows as the columns of its altered form: what INSERT takes, with the
/// columns that it fills.
pub fn rewritten(altered: &Altered, before: &str) -> Result<(Vec<String>, Box<ast::Query>)> {
    let (mut columns, mut items) = (Vec::new(), Vec::new());
    for (at, (field, filled)) in altered.table.columns.iter().zip(&altered.from).enumerate() {
        // (Computed columns are computed of the rows as they come to be.)
        if matches!(altered.table.rules.made.get(at), Some(Made::Computed(_))) {
            continue;
        }
        let item = match filled {
            Filled::Before(name) => quoted(name),
            Filled::Value(expr) => expr.to_string(),
            Filled::Default => continue,
        };
        columns.push(field.name().clone());
        items.push(format!("{item} AS \"__item_{}\"", items.len()));
    }
    if items.is_empty() {
        items.push("NULL".to_string());
    }
    let query = crate::syntax::template::template(&format!("SELECT {} FROM {}", items.join(", "), quoted(before)))?;
    Ok((columns, query))
}
