//! `CREATE VIEW`, `CREATE RECURSIVE VIEW` and `CREATE MATERIALIZED VIEW`.

use datafusion_expr::sqlparser::tokenizer::Token;

use super::Input;
use crate::error::{Result, SqlError};
use crate::syntax::statement::{CreateView, EmitClause, LifetimeClause, Statement};

impl Input<'_> {
    /// Consumes `[TEMPORARY] [RECURSIVE] VIEW`.
    pub(super) fn view_ahead(&mut self) -> Option<(LifetimeClause, bool)> {
        for (words, lifetime) in [
            ("", LifetimeClause::Lasting),
            ("TEMP ", LifetimeClause::OfClient),
            ("TEMPORARY ", LifetimeClause::OfClient),
            ("LOCAL TEMP ", LifetimeClause::OfClient),
            ("LOCAL TEMPORARY ", LifetimeClause::OfClient),
        ] {
            if self.eat(&format!("{words}VIEW")) {
                return Some((lifetime, false));
            }
            if self.eat(&format!("{words}RECURSIVE VIEW")) {
                return Some((lifetime, true));
            }
        }
        None
    }

    pub(super) fn create_plain_view(&mut self, lifetime: LifetimeClause, or_replace: bool) -> Result<Statement> {
        self.create_view(false, lifetime, or_replace)
    }

    /// `RECURSIVE VIEW v (a, b) AS query` is a view of `WITH RECURSIVE v (a, b) AS (query) SELECT
    /// a, b FROM v`.
    pub(super) fn create_recursive_view(&mut self, lifetime: LifetimeClause, or_replace: bool) -> Result<Statement> {
        let name = self.created_name()?;
        let column_names = self.name_list()?;
        self.expect("AS")?;
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let columns = column_names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
        let own = quote(name.rsplit_once('.').map_or(name.as_str(), |(_, own)| own));
        let query_text =
            format!("WITH RECURSIVE {own} ({columns}) AS ({}) SELECT {columns} FROM {own}", self.rest().trim_end());
        self.skip_to_end();
        let query = super::parse_query(&query_text).map_err(|mut error| {
            // (The place is one in the text of the query.)
            (error.position, error.line_column) = (None, None);
            error
        })?;
        Ok(Statement::CreateView(CreateView {
            name,
            materialized: false,
            lifetime,
            if_not_exists: false,
            or_replace,
            column_names,
            query,
            query_text,
            emit: EmitClause::Changes,
        }))
    }

    pub(super) fn create_view(
        &mut self,
        materialized: bool,
        lifetime: LifetimeClause,
        or_replace: bool,
    ) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.created_name()?;
        let column_names = match self.parser.peek_token_ref().token {
            Token::LParen => self.name_list()?,
            _ => vec![],
        };
        if self.word(0).as_deref() == Some("WITH") {
            self.view_options()?;
        }
        self.expect("AS")?;
        let query_text = self.rest().to_string();
        let query = self.query()?;
        let query_end = self.next_offset();
        if ["", "LOCAL ", "CASCADED "].iter().any(|kind| self.eat(&format!("WITH {kind}CHECK OPTION"))) {
            let hint = "Rows are written to the table: give it the condition, as in ALTER TABLE t ADD CHECK (..).";
            let mut error = SqlError::unsupported("WITH CHECK OPTION of a view", hint);
            error.position = Some(query_end);
            return Err(error);
        }
        let emit = self.emit();
        if emit == EmitClause::OnWindowClose && !materialized {
            return Err(SqlError::unsupported(
                "EMIT ON WINDOW CLOSE of a plain view",
                "Write CREATE MATERIALIZED VIEW.",
            ));
        }
        let query_text = query_text[..query_text.len() - (self.range.end - query_end)].trim_end().to_string();
        Ok(Statement::CreateView(CreateView {
            name,
            materialized,
            lifetime,
            if_not_exists,
            or_replace,
            column_names,
            query,
            query_text,
            emit,
        }))
    }

    /// `EMIT ON WINDOW CLOSE`, if it stands here.
    pub(super) fn emit(&mut self) -> EmitClause {
        match self.eat("EMIT ON WINDOW CLOSE") || self.eat("EMIT AFTER WATERMARK") {
            true => EmitClause::OnWindowClose,
            false => EmitClause::Changes,
        }
    }

    /// `WITH (security_barrier, ..)`, which say how PostgreSQL guards rows that others may not see.
    fn view_options(&mut self) -> Result<()> {
        let offset = self.next_offset();
        for (name, value) in self.with_options()? {
            let is_known = matches!(name.as_str(), "security_barrier" | "security_invoker" | "fillfactor");
            if !is_known {
                let hint = match name.as_str() {
                    "split" | "width" | "route" | "broadcast" => {
                        "Say it in the query: SELECT .. FROM SPLIT(table, route, width [, broadcast])."
                    }
                    _ => "Leave it out.",
                };
                let mut error = SqlError::unsupported(format!("option \"{name}\" = {value} of a view"), hint);
                error.position = Some(offset);
                return Err(error);
            }
        }
        Ok(())
    }
}
