//! Files in FROM: `FROM 'rows.parquet'`, `FROM read_csv('rows.csv', delim => ';')`.
//!
//! A file stands where a table may. The session that runs the statement makes a table of it, and
//! gives the table's name here.

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, TableAlias, TableFactor, Value,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::statement::{Copied, CopyTo, CreateTableAs, Explain, Insert, Statement};
use crate::syntax::walk::{Changing, Look, Looking, change, look};

/// A file that a statement reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadFile {
    /// The path, or a pattern of several.
    pub path: String,
    /// Options of the connector `file`, but for the path.
    pub options: Vec<(String, String)>,
}

/// Functions that read files, and the formats that they read; `None` is told by the file's name.
const READERS: [(&str, Option<&str>); 9] = [
    ("read_csv", Some("csv")),
    ("read_csv_auto", Some("csv")),
    ("read_parquet", Some("parquet")),
    ("parquet_scan", Some("parquet")),
    ("read_json", Some("json")),
    ("read_json_auto", Some("json")),
    ("read_ndjson", Some("json")),
    ("read_ndjson_auto", Some("json")),
    ("read_file", None),
];

/// Names that other systems have for options.
const OPTIONS: [(&str, &str); 6] = [
    ("delim", "delimiter"),
    ("sep", "delimiter"),
    ("quotechar", "quote"),
    ("nullstr", "null"),
    ("na_values", "null"),
    ("filename", "path"),
];

/// The statement with tables in place of files; `None` if it reads none. `table` makes a table of a
/// file and says its name.
///
/// # Errors
/// Those of `table`; `Unsupported` where a file stands in a statement that reads it again later, or
/// changes rows by it.
pub fn with_tables<E: From<SqlError>>(
    statement: &Statement,
    table: &mut dyn FnMut(&ReadFile) -> std::result::Result<String, E>,
) -> std::result::Result<Option<Statement>, E> {
    // (Nearly all statements read no file, and a copy of a deep one needs a deep stack.)
    if !reads_files(statement) {
        return Ok(None);
    }
    let mut changed = statement.copied();
    let (query, stands) = match &mut changed {
        Statement::Select { query, .. }
        | Statement::Insert(Insert { query, .. })
        | Statement::CreateTableAs(CreateTableAs { query, .. })
        | Statement::Explain(Explain { query, .. })
        | Statement::CopyTo(CopyTo { copied: Copied::Query(query), .. }) => (query, false),
        Statement::ExplainChange(explained) => match explained.as_mut() {
            Statement::Insert(Insert { query, .. }) => (query, false),
            _ => return Ok(None),
        },
        Statement::CreateView(view) => (&mut view.query, true),
        Statement::Subscribe(subscribe) => (&mut subscribe.query, true),
        _ => return Ok(None),
    };
    let mut files = Files { found: vec![] };
    change(query.as_mut(), &mut files)?;
    if files.found.is_empty() {
        return Ok(None);
    }
    if stands {
        let path = &files.found[0].path;
        let hint = format!("CREATE SOURCE name WITH (connector = 'file', path = '{path}'), and read the source.");
        return Err(SqlError::unsupported("a file in a query that stands", hint).into());
    }
    let names = files.found.iter().map(table).collect::<std::result::Result<Vec<String>, E>>()?;
    change(query.as_mut(), &mut Named { names })?;
    Ok(Some(changed))
}

/// Whether a file stands somewhere in the statement's query.
pub fn reads_files(statement: &Statement) -> bool {
    query_of(statement).is_some_and(|query| {
        let mut seen = Seen(false);
        look(query, &mut seen);
        seen.0
    })
}

/// Whether the statement's query calls what moves the counter of a sequence.
pub fn moves_sequences(statement: &Statement) -> bool {
    query_of(statement).is_some_and(|query| {
        let mut moves = Moves(false);
        look(query, &mut moves);
        moves.0
    })
}

fn query_of(statement: &Statement) -> Option<&Query> {
    let query = match statement {
        Statement::Select { query, .. }
        | Statement::Insert(Insert { query, .. })
        | Statement::CreateTableAs(CreateTableAs { query, .. })
        | Statement::Explain(Explain { query, .. })
        | Statement::CopyTo(CopyTo { copied: Copied::Query(query), .. }) => query,
        Statement::CreateView(view) => &view.query,
        Statement::Subscribe(subscribe) => &subscribe.query,
        Statement::Declare(declare) => return query_of(&declare.statement.statement),
        Statement::ExplainChange(explained) => return query_of(explained),
        _ => return None,
    };
    Some(query)
}

/// Whether a call was met that moves a counter.
struct Moves(bool);

impl Looking for Moves {
    fn expr(&mut self, expr: &Expr) -> Look {
        if let Expr::Function(function) = expr {
            let name = function.name.0.last().map(|part| part.to_string().to_lowercase());
            self.0 |= matches!(name.as_deref(), Some("nextval" | "setval"));
        }
        if self.0 { Look::Break(()) } else { Look::Continue(()) }
    }
}

/// Whether a file, or a mistake in one, was met.
struct Seen(bool);

impl Looking for Seen {
    fn table_factor(&mut self, factor: &TableFactor) -> Look {
        self.0 = !matches!(read_file(factor), Ok(None));
        if self.0 { Look::Break(()) } else { Look::Continue(()) }
    }
}

/// Takes note of files, and puts numbers in their places.
struct Files {
    found: Vec<ReadFile>,
}

/// What stands for a file until its table has a name.
const PLACE: &str = "__file_";

impl Changing for Files {
    fn table_factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let Some(file) = read_file(factor)? else { return Ok(()) };
        let number = self.found.iter().position(|known| *known == file).unwrap_or(self.found.len());
        let own = stem(&file.path);
        if number == self.found.len() {
            self.found.push(file);
        }
        if let TableFactor::Table { name, alias, args, .. } = factor {
            *name = ObjectName::from(vec![Ident::with_quote('"', format!("{PLACE}{number}"))]);
            *args = None;
            let own = Ident::with_quote('"', own);
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: own, columns: vec![], at: None });
        }
        Ok(())
    }
}

struct Named {
    names: Vec<String>,
}

impl Changing for Named {
    fn table_factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        if let TableFactor::Table { name, .. } = factor
            && let [part] = name.0.as_slice()
            && let Some(number) = part.as_ident().and_then(|ident| ident.value.strip_prefix(PLACE))
            && let Some(known) = number.parse().ok().and_then(|number: usize| self.names.get(number))
        {
            *name = ObjectName::from(vec![Ident::with_quote('"', known)]);
        }
        Ok(())
    }
}

/// The name of a file without folders and ending: what its rows go by.
fn stem(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    if stem.is_empty() || stem.contains(['*', '?', '[']) { "file".to_string() } else { stem.to_string() }
}

/// The file that stands here, if one does.
fn read_file(factor: &TableFactor) -> Result<Option<ReadFile>> {
    let TableFactor::Table { name, args, .. } = factor else { return Ok(None) };
    let [part] = name.0.as_slice() else { return Ok(None) };
    let Some(ident) = part.as_ident() else { return Ok(None) };
    let Some(args) = args else {
        let is_path = ident.quote_style == Some('\'');
        return Ok(is_path.then(|| ReadFile { path: ident.value.clone(), options: vec![] }));
    };
    let reader = READERS.iter().find(|(reader, _)| ident.value.eq_ignore_ascii_case(reader));
    let Some((reader, format)) = reader else { return Ok(None) };
    let mut path = None;
    let mut options: Vec<(String, String)> =
        format.iter().map(|format| ("format".to_string(), (*format).to_string())).collect();
    for arg in &args.args {
        match option(arg) {
            Some((None, value)) if path.is_none() => path = Some(value),
            Some((Some(name), value)) => {
                let known = OPTIONS.iter().find(|(other, _)| *other == name).map(|(_, own)| (*own).to_string());
                options.push((known.unwrap_or(name), value));
            }
            _ => {
                let hint = format!("Write {reader}('path', header => true, delim => ';').");
                return Err(SqlError::unsupported(format!("the argument {arg} of {reader}()"), hint));
            }
        }
    }
    let missing = || SqlError::new(ErrorKind::Invalid, format!("{reader}() needs the path of a file"));
    Ok(Some(ReadFile { path: path.ok_or_else(missing)?, options }))
}

/// A path, or an option with its value.
fn option(arg: &FunctionArg) -> Option<(Option<String>, String)> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, op, right }))
            if *op == BinaryOperator::Eq || *op == BinaryOperator::Assignment =>
        {
            match left.as_ref() {
                Expr::Identifier(name) => Some((Some(name.value.to_lowercase()), constant(right)?)),
                _ => None,
            }
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some((None, constant(value)?)),
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            Some((Some(name.value.to_lowercase()), constant(value)?))
        }
        _ => None,
    }
}

fn constant(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text.clone()),
            Value::Number(number, _) => Some(number.clone()),
            Value::Boolean(is) => Some(is.to_string()),
            _ => None,
        },
        Expr::Identifier(word) => Some(word.value.clone()),
        _ => None,
    }
}
