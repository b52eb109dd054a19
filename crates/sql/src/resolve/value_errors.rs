//! What PostgreSQL says of values that do not fit a type.

use arrow::datatypes::DataType;

use crate::operation_messages::of_operation;
use crate::resolve::type_names::sql_name;

/// The message for a number that is too large for a decimal.
pub(crate) fn field_overflow(to: &DataType) -> String {
    match to {
        DataType::Decimal128(precision, scale) => format!(
            "numeric field overflow: precision {precision} and scale {scale} take absolute values below 10^{}",
            i32::from(*precision) - i32::from(*scale)
        ),
        _ => "numeric field overflow".to_string(),
    }
}

/// A message of Arrow's about a value, in PostgreSQL's words where it has some.
pub fn in_words(message: &str) -> String {
    let known = ["Cast error: ", "Invalid argument error: ", "Parser error: ", "Compute error: ", "Arrow error: "];
    let mut plain = message;
    while let Some(rest) = known.iter().find_map(|layer| plain.strip_prefix(layer)) {
        plain = rest;
    }
    if let Some((text, name)) = plain.strip_prefix("Cannot cast string '").and_then(|r| r.split_once("' to value of "))
    {
        let name = type_in_words(name.trim_end_matches(" type"));
        return format!("invalid input syntax for type {name}: \"{text}\"");
    }
    if let Some((text, _)) = plain.strip_prefix("Error parsing timestamp from '").and_then(|r| r.split_once("': ")) {
        return format!("invalid input syntax for type timestamp: \"{text}\"");
    }
    if let Some((unit, _)) =
        plain.strip_prefix("Unsupported date_trunc granularity: '").and_then(|rest| rest.split_once('\''))
    {
        return format!(
            "unit \"{unit}\" not recognized: write microsecond .. second, minute, hour, day, week, month, quarter, year, decade, century or millennium"
        );
    }
    if let Some((_, name)) = plain.strip_prefix("Can't cast value ").and_then(|rest| rest.split_once(" to type ")) {
        return format!("{} out of range", type_in_words(name));
    }
    if let Some(words) = of_functions(plain) {
        return words;
    }
    if let Some((_, name)) = plain.strip_prefix("value of ").and_then(|rest| rest.split_once(" is out of range ")) {
        return format!("{} out of range", type_in_words(name));
    }
    // The value in the message is without its point.
    let stored = plain
        .split_once(" is too large to store in a Decimal")
        .or(plain.split_once(" is too small to store in a Decimal"));
    if let Some((_, limit)) = stored {
        let digits = limit.split("precision ").nth(1).and_then(|rest| rest.split(['.', ' ']).next());
        return format!("numeric field overflow: the value has more than {} digits", digits.unwrap_or("38"));
    }
    of_operation(plain).map_or_else(|| plain.to_string(), |error| error.message)
}

/// What functions of the libraries say of their arguments, in other words.
pub(crate) fn of_functions(message: &str) -> Option<String> {
    if message.starts_with("Range too large to materialize") {
        return Some("generate_series has too many rows for the memory that there is".into());
    }
    if message.starts_with("step can't be 0 for function") {
        return Some("step size cannot equal zero".into());
    }
    let (unit, _) = message.strip_prefix("Date part '")?.split_once('\'')?;
    Some(format!("unit \"{unit}\" not recognized"))
}

/// Arrow's name of a type, as SQL's.
fn type_in_words(name: &str) -> String {
    let data_type = name.parse::<DataType>().ok();
    let name = data_type.map_or_else(|| name.to_lowercase(), |data_type| sql_name(&data_type));
    name.split('(').next().unwrap_or_default().to_string()
}
