//! SQLSTATE: five letters by which programs tell errors apart.
//!
//! Law: every error has one, PostgreSQL's where PostgreSQL has the same error. An error that knows
//! its code carries it; for the others the message decides, as far as a phrase of the table is in
//! it, and then the kind. (Errors of rows travel through dataflows as their text alone, so the text
//! must do.)

use crate::error::{Error, ErrorKind};

/// Phrases of messages and their codes; the first phrase that occurs decides.
const PHRASES: &[(&str, &str)] = &[
    ("non-recursive term but type", "42804"),
    ("MUTUALLY RECURSIVE query", "42804"),
    ("columns available but", "42P10"),
    ("WITH query column list", "42601"),
    ("column name are the same", "42601"),
    ("recursive reference to query", "42P19"),
    ("non-recursive-term UNION", "42P19"),
    ("recursive term", "42P19"),
    ("does not reach a fixed point", "54000"),
    ("syntax error", "42601"),
    ("permission denied to", "42501"),
    ("value of sequence", "2200H"),
    ("out of bounds for sequence", "22003"),
    ("defined in this session", "55000"),
    ("missing FROM-clause entry", "42P01"),
    ("could not identify a", "42883"),
    ("does not take these arguments", "42883"),
    ("aggregate functions are not allowed", "42803"),
    ("aggregate function calls cannot be nested", "42803"),
    ("not recognized: write", "22023"),
    ("window functions are not allowed", "42P20"),
    ("cannot copy window", "42P20"),
    ("clause of window", "42P20"),
    ("is already defined", "42P20"),
    ("window \"", "42704"),
    ("must return only one column", "42601"),
    ("is a table, not", "42809"),
    ("is a view, not", "42809"),
    ("is a materialized view, not", "42809"),
    ("is a source, not", "42809"),
    ("is an index, not", "42809"),
    ("is not in select list", "42P10"),
    ("matching the ON CONFLICT specification", "42P10"),
    ("must match initial ORDER BY", "42P10"),
    ("for SELECT DISTINCT, ORDER BY", "42P10"),
    ("must not contain variables", "42P10"),
    ("LIMIT must", "2201W"),
    ("OFFSET must", "2201X"),
    ("must be boolean", "42804"),
    ("must be type boolean", "42804"),
    ("not boolean", "42804"),
    ("invalid input syntax for type date", "22007"),
    ("invalid input syntax for type time", "22007"),
    ("invalid input syntax for type interval", "22007"),
    ("division by zero", "22012"),
    ("unit \"", "22023"),
    ("character number must be", "22023"),
    ("null character not permitted", "54000"),
    ("negative count not allowed", "22011"),
    ("field position must", "22023"),
    ("invalid hexadecimal digit", "22023"),
    ("unrecognized encoding", "22023"),
    ("step size cannot equal zero", "22023"),
    ("too many rows for the memory", "54000"),
    ("requires an OVER clause", "42809"),
    ("unterminated", "42601"),
    ("must be of type bigint", "42804"),
    ("function unnest takes", "42883"),
    ("elements of an array are numbered", "42804"),
    ("unequal number of entries", "42601"),
    ("subquery has too many columns", "42601"),
    ("factorial of a negative", "22003"),
    ("a row is routed to branch", "22003"),
    ("of SPLIT is a", "42804"),
    ("SPLIT of rows with a column", "42701"),
    ("percentile value", "22003"),
    ("must be at least 1", "22023"),
    ("cannot convert NaN", "0A000"),
    ("time zone \"", "22023"),
    ("out of valid range", "2202E"),
    ("cannot get array length", "22023"),
    ("cannot extract elements", "22023"),
    ("Hour value", "22008"),
    ("cannot infer common argument type for logical", "42804"),
    ("duplicate key", "23505"),
    ("null value in column", "23502"),
    ("cannot change a row a second time", "21000"),
    ("more than one row returned", "21000"),
    ("joins a row of table", "21000"),
    ("is out of range for type", "22003"),
    ("that a value may have", "54000"),
    ("must not end with escape character", "22025"),
    ("requested length too large", "54000"),
    ("array size exceeds the maximum allowed", "54000"),
    ("out of memory", "53200"),
    ("arrays begin at 1", "0A000"),
    ("value too long", "22001"),
    ("invalid input syntax", "22P02"),
    ("invalid input value for enum", "22P02"),
    ("not supported for input", "0A000"),
    ("cannot insert a non-DEFAULT value", "428C9"),
    ("can only be updated to DEFAULT", "428C9"),
    ("cannot subscript type", "42804"),
    ("array subscript must have", "42804"),
    ("cannot slice a value", "42804"),
    ("requires array on right side", "42809"),
    ("unrecognized value for", "22023"),
    ("cannot set path in scalar", "22023"),
    ("even number of elements", "2202E"),
    ("invalid byte sequence for encoding", "22021"),
    ("INCREMENT must not be zero", "22023"),
    ("it must be a whole number", "22007"),
    ("has two primary keys", "42P16"),
    ("operator ! has nothing", "42601"),
    ("in assignment must not be null", "22004"),
    ("must not contain NULLs", "22004"),
    ("source array too small", "2202E"),
    ("upper bound cannot be less", "2202E"),
    ("cannot replace existing key", "22023"),
    ("path element at position", "22023"),
    ("violates check constraint", "23514"),
    ("does not allow null values", "23502"),
    ("enum label \"", "42710"),
    ("is not an existing enum label", "22023"),
    ("is not an enum", "42809"),
    ("could not be cast automatically", "42804"),
    ("applied to", "42809"),
    ("VIEW specifies more column names", "42601"),
    ("assignments to same column", "42601"),
    ("malformed array literal", "22P02"),
    ("with matching dimensions", "2202E"),
    ("cannot concatenate incompatible arrays", "2202E"),
    ("cannot accumulate arrays", "2202E"),
    ("invalid regular expression", "2201B"),
    ("field value out of range", "22008"),
    ("cannot subtract infinite", "22008"),
    ("origin out of range", "22008"),
    ("stride must be greater", "22008"),
    ("timestamp cannot be NaN", "22008"),
    ("infinity lies in no window", "22008"),
    ("has no end: give it finite", "22008"),
    ("step size cannot equal zero", "22023"),
    ("interval time zone", "22023"),
    ("preceding or following size", "22013"),
    ("cannot be binned into", "0A000"),
    ("not supported for type", "0A000"),
    ("value out of range", "22003"),
    ("timestamp out of range", "22008"),
    ("date out of range", "22008"),
    ("interval out of range", "22008"),
    ("numeric field overflow", "22003"),
    ("out of range", "22003"),
    ("overflow", "22003"),
    ("does not fit column", "22003"),
    ("logarithm", "2201E"),
    ("square root of a negative", "2201F"),
    ("raised to", "2201F"),
    ("negative substring length", "22011"),
    ("is not supported", "0A000"),
    ("already exists", "42P07"),
    ("sequence \"", "42P01"),
    ("column reference", "42702"),
    ("specified more than once", "42701"),
    ("appears twice", "42701"),
    ("is ambiguous", "42702"),
    ("others depend on it", "2BP01"),
    ("cannot be replaced", "2BP01"),
    ("nested too deeply", "54001"),
    ("stack depth limit exceeded", "54001"),
    ("generate_series has more than", "54000"),
    ("setting \"", "22023"),
    ("unrecognized configuration parameter", "42704"),
    ("SET requires parameter name", "22004"),
    ("format()", "22023"),
    ("arguments are numbered from 1", "22023"),
    ("number of elements to trim", "2202E"),
    ("is not a valid identifier", "22023"),
    ("invalid size:", "22023"),
    ("could not identify column", "42703"),
    ("was dropped", "42P01"),
    ("keeps no rows", "55000"),
    ("cannot be read as of", "55000"),
    ("there is no parameter", "42P02"),
    ("could not determine data type of parameter", "42P18"),
    ("in a read-only transaction", "25006"),
    ("more expressions than target columns", "42601"),
    ("must be the same length", "42601"),
    ("same number of columns", "42601"),
    ("cannot be matched", "42804"),
    ("cannot be cast", "42846"),
    ("cannot cast type", "42846"),
    ("cannot cast jsonb", "22023"),
    ("is of type", "42804"),
    ("must appear in", "42803"),
];

/// Kinds of objects that do not exist, and the code of that.
const UNKNOWN: &[(&str, &str)] = &[
    ("column", "42703"),
    ("function", "42883"),
    ("aggregate", "42883"),
    ("operator", "42883"),
    ("schema", "3F000"),
    ("type", "42704"),
    ("index", "42704"),
    ("connector", "42704"),
    ("setting", "42704"),
    ("collation", "42704"),
    ("cursor", "34000"),
    ("portal", "34000"),
    ("prepared statement", "26000"),
    ("savepoint", "3B001"),
    ("database", "3D000"),
    ("role", "42704"),
];

impl Error {
    /// The five letters by which programs tell errors apart, PostgreSQL's where it has the same
    /// error.
    ///
    /// ```
    /// use anabranch_engine::{Database, DatabaseOptions};
    ///
    /// let mut connection = Database::open(DatabaseOptions::default())?.connect()?;
    /// assert_eq!(connection.query("SELECT 1 / 0").unwrap_err().sqlstate(), "22012");
    /// assert_eq!(connection.query("SELECT * FROM nowhere").unwrap_err().sqlstate(), "42P01");
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    pub fn sqlstate(&self) -> &'static str {
        if let Some(code) = self.code {
            return code;
        }
        let message = self.message.as_str();
        if message.starts_with("column") && message.ends_with("already exists") {
            return "42701";
        }
        if message.contains("does not exist") {
            let kind = UNKNOWN.iter().find(|(kind, _)| message.starts_with(kind));
            return kind.map_or("42P01", |(_, code)| code);
        }
        if let Some((_, code)) = PHRASES.iter().find(|(phrase, _)| message.contains(phrase)) {
            return code;
        }
        match self.kind {
            ErrorKind::Invalid => "42000",
            ErrorKind::Data => "22000",
            ErrorKind::Unavailable => "58000",
            ErrorKind::Closed => "55000",
            ErrorKind::Cancelled => "57014",
            ErrorKind::Internal => "XX000",
        }
    }
}

/// The code of an error of the planner, where its kind alone decides.
pub(crate) fn of_planner(kind: anabranch_sql::ErrorKind) -> Option<&'static str> {
    match kind {
        anabranch_sql::ErrorKind::Syntax => Some("42601"),
        anabranch_sql::ErrorKind::Unsupported => Some("0A000"),
        anabranch_sql::ErrorKind::Internal => Some("XX000"),
        _ => None,
    }
}
