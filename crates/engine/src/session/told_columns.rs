//! What to know of the columns that were found in files of text.
//!
//! - Numbers with a point are read as floats, in which sums of money are not exact.
//! - A header of one name that holds `;`, `|` or a tab likely names several columns.

use std::collections::BTreeMap;

use arrow::datatypes::Field;

/// How a user says of which type a column is, and what separates the values.
pub(super) trait Advice {
    /// Of the columns with these quoted names, which have been read as floats.
    fn exact(&self, names: &[String]) -> String;

    /// The option with this value.
    fn delimiter(&self, shown: &str) -> String;
}

/// Of a source: its statement declares columns.
pub(super) struct OfSource<'a>(pub(super) &'a str);

impl Advice for OfSource<'_> {
    fn exact(&self, names: &[String]) -> String {
        let one = if names.len() == 1 { "the column" } else { "the columns" };
        format!("declare {one}: CREATE SOURCE {} ({} numeric, ..) WITH (..)", self.0, names[0])
    }

    fn delimiter(&self, shown: &str) -> String {
        format!("WITH (.., delimiter = {shown})")
    }
}

/// Of a file in FROM: its columns are cast.
pub(super) struct OfFile<'a>(pub(super) &'a str);

impl Advice for OfFile<'_> {
    fn exact(&self, names: &[String]) -> String {
        let one = if names.len() == 1 { "the column" } else { "the columns" };
        format!("cast {one}: {}::numeric", names[0])
    }

    fn delimiter(&self, shown: &str) -> String {
        format!("FROM read_csv('{}', delimiter => {shown})", self.0)
    }
}

/// What to know of the columns, by options of the connector `file`.
pub(super) fn told_columns(
    options: &BTreeMap<String, String>,
    fields: &[Field],
    advice: &dyn Advice,
) -> Option<String> {
    let option = |name: &str| options.get(name).map(|value| value.to_lowercase()).unwrap_or_default();
    let (format, path) = (option("format"), option("path"));
    let is_text = match format.is_empty() {
        true => [".csv", ".tsv", ".tbl"].iter().any(|ending| path.contains(ending)),
        false => format == "csv" || format == "tbl",
    };
    if !is_text {
        return None;
    }
    if let ([only], false) = (fields, options.contains_key("delimiter"))
        && let Some(found) = [';', '|', '\t'].into_iter().find(|separator| only.name().contains(*separator))
    {
        let shown = if found == '\t' { "'\\t'".to_owned() } else { format!("'{found}'") };
        let name = only.name().replace('\t', "\\t");
        return Some(format!(
            "the file has one column, \"{name}\"; if {shown} separates its values, write {}.",
            advice.delimiter(&shown)
        ));
    }
    let floats = fields.iter().filter(|field| field.data_type().is_floating());
    let names: Vec<String> = floats.map(|field| format!("\"{}\"", field.name())).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!("{} {is} read as double precision; for exact sums {}.", names.join(", "), advice.exact(&names))
    })
}
