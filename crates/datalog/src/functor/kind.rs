//! Functors by name: which there are, and what types their values have.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

/// A functor on values of known types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Functor {
    /// `+`, of numbers or of floats.
    Add,
    Subtract,
    /// `-` of unsigned numbers: an error below zero.
    SubtractUnsigned,
    Multiply,
    Divide,
    Modulo,
    /// `^` of numbers.
    Power,
    PowerFloat,
    Negate,
    NegateFloat,
    Band,
    Bor,
    Bxor,
    Bshl,
    Bshr,
    Bshru,
    Bnot,
    Land,
    Lor,
    Lxor,
    Lnot,
    Min,
    Max,
    Cat,
    Length,
    Substring,
    Ord,
    NumberToText,
    FloatToText,
    TextToNumber,
    TextToUnsigned,
    TextToFloat,
    NumberToFloat,
    NumberToUnsigned,
    FloatToNumber,
    FloatToUnsigned,
    /// The value itself, in a type of the same values.
    Same,
    Match,
    Contains,
    /// `range(..)` of numbers, a list.
    Range,
    RangeFloat,
    /// A record of the arguments, in text form. Which of them are text tells the first argument:
    /// a letter each, `s` for symbols and `r` for records.
    Record,
    /// As [`Record`](Functor::Record), with the branch's name as second argument.
    Branch,
    /// Whether a text is of the branch that the second argument names; `""` for records.
    IsOf,
    /// A symbol in a record, by its position.
    TextPart,
    NumberPart,
    FloatPart,
    /// A record in a record.
    InnerPart,
}

impl Functor {
    /// Whether the functor has no value for some arguments (an overflow apart).
    pub fn may_fail(self) -> bool {
        use Functor as F;
        matches!(
            self,
            F::SubtractUnsigned
                | F::Divide
                | F::Modulo
                | F::Power
                | F::TextToNumber
                | F::TextToUnsigned
                | F::TextToFloat
                | F::NumberToUnsigned
                | F::FloatToNumber
                | F::FloatToUnsigned
                | F::Range
                | F::RangeFloat
                | F::Match
        )
    }

    /// What the engine calls it.
    pub fn name(self) -> &'static str {
        use Functor as F;
        match self {
            F::Add | F::Subtract | F::Multiply | F::Divide | F::Modulo | F::Negate | F::Same => "datalog_operator",
            F::SubtractUnsigned => "datalog_minus",
            F::Power => "datalog_power",
            F::PowerFloat => "datalog_power_float",
            F::NegateFloat => "datalog_negate",
            F::Band => "datalog_band",
            F::Bor => "datalog_bor",
            F::Bxor => "datalog_bxor",
            F::Bshl => "datalog_bshl",
            F::Bshr => "datalog_bshr",
            F::Bshru => "datalog_bshru",
            F::Bnot => "datalog_bnot",
            F::Land => "datalog_land",
            F::Lor => "datalog_lor",
            F::Lxor => "datalog_lxor",
            F::Lnot => "datalog_lnot",
            F::Min => "datalog_min",
            F::Max => "datalog_max",
            F::Cat => "datalog_cat",
            F::Length => "datalog_strlen",
            F::Substring => "datalog_substr",
            F::Ord => "datalog_ord",
            F::NumberToText => "datalog_number_to_string",
            F::FloatToText => "datalog_float_to_string",
            F::TextToNumber => "datalog_to_number",
            F::TextToUnsigned => "datalog_to_unsigned",
            F::TextToFloat => "datalog_to_float",
            F::NumberToFloat => "datalog_number_to_float",
            F::NumberToUnsigned => "datalog_number_to_unsigned",
            F::FloatToNumber => "datalog_float_to_number",
            F::FloatToUnsigned => "datalog_float_to_unsigned",
            F::Match => "datalog_match",
            F::Contains => "datalog_contains",
            F::Range => "datalog_range",
            F::RangeFloat => "datalog_range_float",
            F::Record => "datalog_record",
            F::Branch => "datalog_branch",
            F::IsOf => "datalog_is_of",
            F::TextPart => "datalog_text_part",
            F::NumberPart => "datalog_number_part",
            F::FloatPart => "datalog_float_part",
            F::InnerPart => "datalog_inner_part",
        }
    }

    /// The type of the functor's values; of min and max, that of the first argument.
    pub fn output(self, arguments: &[DataType]) -> DataType {
        use Functor as F;
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        match self {
            F::Min | F::Max => arguments.first().cloned().unwrap_or(DataType::Int64),
            F::PowerFloat | F::NegateFloat | F::TextToFloat | F::NumberToFloat | F::FloatPart => DataType::Float64,
            F::Cat | F::Substring | F::NumberToText | F::FloatToText => DataType::Utf8View,
            F::Record | F::Branch | F::TextPart | F::InnerPart => DataType::Utf8View,
            F::Match | F::Contains | F::IsOf => DataType::Boolean,
            F::Range => list(DataType::Int64),
            F::RangeFloat => list(DataType::Float64),
            _ => DataType::Int64,
        }
    }
}
