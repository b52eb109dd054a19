//! Words of libraries in messages: users know SQL, and not what it is planned by.

/// Words of libraries that no message may show.
const LIBRARY_WORDS: &[&str] = &[
    "expression names",
    "Identifier(",
    "Substring {",
    "Physical plan",
    "Utf8",
    "List(",
    "Int64",
    "Int32",
    "Int16",
    "Float64",
    "Decimal128",
    "Timestamp(",
    "DataFusion",
    "Arrow",
    "__",
    "LogicalPlan",
    "TableScan",
    "NativeType",
    "ScalarValue",
    "BinaryExpr",
    "WindowUDF",
    "Struct(",
    "Signature",
    "NULLS LAST",
    "common type to coerce",
    "Consider using",
    "temporal operation",
    "Invalid argument error",
    "when present",
    "jsonb_in",
    "1[])",
    "similar_to_escape",
    "array_element",
    "(os error",
    "logical boolean operation",
    "common argument type",
];

/// The word of a library that a message shows.
pub fn library_word(message: &str) -> Option<&'static str> {
    LIBRARY_WORDS.iter().copied().find(|word| message.contains(word))
}
