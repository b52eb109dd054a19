//! What to know of the columns that were found in files of text.
//!
//! - Numbers with a point are read as floats, in which sums of money are not exact.
//! - A header of one name that holds `;`, `|` or a tab likely names several columns.

use std::collections::BTreeMap;

use arrow::datatypes::Field;

/// What reads a file of text: how a user says there of which type a column is, and what separates
/// the values.
pub(super) enum FileReader<'a> {
    /// A source of this name, whose statement declares columns.
    Source(&'a str),
    /// An entry of FROM for the file of this path, whose columns are cast.
    Entry(&'a str),
}

impl FileReader<'_> {
    /// What makes columns with these quoted names exact, which have been read as floats.
    fn exact(&self, names: &[String]) -> String {
        let one = if names.len() == 1 { "the column" } else { "the columns" };
        match self {
            FileReader::Source(name) => {
                format!("declare {one}: CREATE SOURCE {name} ({} numeric, ..) WITH (..)", names[0])
            }
            FileReader::Entry(_) => format!("cast {one}: {}::numeric", names[0]),
        }
    }

    /// The option with this value.
    fn delimiter(&self, shown: &str) -> String {
        match self {
            FileReader::Source(_) => format!("WITH (.., delimiter = {shown})"),
            FileReader::Entry(path) => format!("FROM read_csv('{path}', delimiter => {shown})"),
        }
    }
}

/// What to know of the columns, by options of the connector `file`.
pub(super) fn told_columns(
    options: &BTreeMap<String, String>,
    fields: &[Field],
    reader: &FileReader<'_>,
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
            reader.delimiter(&shown)
        ));
    }
    let floats = fields.iter().filter(|field| field.data_type().is_floating());
    let names: Vec<String> = floats.map(|field| format!("\"{}\"", field.name())).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!("{} {is} read as double precision; for exact sums {}.", names.join(", "), reader.exact(&names))
    })
}
