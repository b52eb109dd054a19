//! Text functions of PostgreSQL that DataFusion lacks: the digest of `md5`, `quote_ident`,
//! `quote_literal`, `quote_nullable`, `format`, `pg_typeof`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use crate::resolve::documents::{elements_limit_of, shown_form_of};
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_vector, sql_name};

/// A function of one text to another.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextFunction {
    verb: Quoted,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Quoted {
    Ident,
    Literal,
    Nullable,
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Quoted::Ident, Quoted::Literal, Quoted::Nullable].into_iter().map(|verb| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(TextFunction { verb, signature }))
    })
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        match self.verb {
            Quoted::Ident => "quote_ident",
            Quoted::Literal => "quote_literal",
            Quoted::Nullable => "quote_nullable",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let texts = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
        let texts = texts.as_string_view().iter();
        let out: StringViewArray = match self.verb {
            Quoted::Ident => texts.map(|text| Some(quote_ident(text?))).collect(),
            Quoted::Literal => texts.map(|text| Some(quote_literal(text?))).collect(),
            Quoted::Nullable => {
                texts.map(|text| Some(text.map_or_else(|| "NULL".to_string(), quote_literal))).collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(out) as ArrayRef))
    }
}

/// In double quotes, unless it is a plain lower-case name. Reserved words are quoted by PostgreSQL,
/// and here too.
fn quote_ident(name: &str) -> String {
    use datafusion_expr::sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS};
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    let starts_well = name.bytes().next().is_some_and(|byte| plain(byte) && !byte.is_ascii_digit());
    let keyword = ALL_KEYWORDS.binary_search(&name.to_uppercase().as_str()).ok();
    let reserved = keyword.is_some_and(|at| RESERVED_FOR_COLUMN_ALIAS.contains(&ALL_KEYWORDS_INDEX[at]));
    if starts_well && name.bytes().all(plain) && !reserved {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// In single quotes, inner ones doubled; with an `E` in front where there are backslashes.
fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// `format('%s is %I', a, b)`: `%s` as it is, `%I` as a name, `%L` as a literal, `%%` a per cent
/// sign; `%1$s` names the argument, `%-10s` has a width.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextFormat {
    signature: Signature,
}

impl TextFormat {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::variadic_any(Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for TextFormat {
    fn name(&self) -> &str {
        "format"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let texts = args.args.iter().map(|arg| Ok(cast(&arg.to_array(args.number_rows)?, &DataType::Utf8View)?));
        let texts: Vec<ArrayRef> = texts.collect::<DfResult<_>>()?;
        let value = |at: usize, row: usize| {
            let texts = texts.get(at)?.as_string_view();
            Some((!texts.is_null(row)).then(|| texts.value(row)))
        };
        let mut out: Vec<Option<String>> = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            match value(0, row).flatten().map(|pattern| formatted(pattern, |at| value(at, row))) {
                None => out.push(None),
                Some(Ok(text)) => out.push(Some(text)),
                Some(Err(problem)) => return exec_err!("{problem}"),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(out.into_iter().collect::<StringViewArray>()) as ArrayRef))
    }
}

/// The greatest width of a value in `format`.
const WIDTH_MAX: u32 = 0x0fff_ffff;

/// The pattern filled in; `value` gives an argument by position from 1, or `None` where there is
/// none.
fn formatted<'t>(pattern: &str, value: impl Fn(usize) -> Option<Option<&'t str>>) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut last = 0;
    let mut rest = pattern;
    let mut argument = |at: Option<usize>| {
        last = at.unwrap_or(last + 1);
        value(last).ok_or("too few arguments for format()")
    };
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (specifier, after) = Specifier::read(after)?;
        rest = after;
        let width = match specifier.width {
            Width::Of(n) => n,
            Width::Argument(at) => match argument(at)? {
                Some(text) => {
                    text.trim().parse().map_err(|_| format!("invalid input syntax for type integer: \"{text}\""))?
                }
                None => 0,
            },
        };
        if width.unsigned_abs() > WIDTH_MAX {
            return Err("requested length too large".into());
        }
        let value = argument(specifier.at)?;
        let text = match (specifier.verb, value) {
            ('s', value) => value.unwrap_or_default().to_string(),
            ('I', Some(value)) => quote_ident(value),
            ('I', None) => return Err("null values cannot be formatted as an SQL identifier".into()),
            ('L', value) => value.map_or_else(|| "NULL".to_string(), quote_literal),
            (other, _) => return Err(format!("unrecognized format() type specifier \"{other}\"")),
        };
        pad(&text, width, specifier.is_left || width < 0, &mut out);
    }
    out.push_str(rest);
    Ok(out)
}

/// Adds a text and the spaces that fill it up to a width.
fn pad(text: &str, width: i32, is_left: bool, out: &mut String) {
    let n = (width.unsigned_abs() as usize).saturating_sub(text.chars().count());
    let spaces = std::iter::repeat_n(' ', n);
    if is_left {
        out.push_str(text);
        out.extend(spaces);
    } else {
        out.extend(spaces);
        out.push_str(text);
    }
}

/// `%1$-10s` without its first sign.
struct Specifier {
    at: Option<usize>,
    is_left: bool,
    width: Width,
    verb: char,
}

enum Width {
    Of(i32),
    /// That of an argument: the next one, if no place is given.
    Argument(Option<usize>),
}

impl Specifier {
    /// The specifier at the start of a text, and what follows.
    fn read(text: &str) -> Result<(Self, &str), String> {
        let (at, rest) = place(text)?;
        let unsigned = rest.trim_start_matches('-');
        let is_left = unsigned.len() < rest.len();
        let (width, rest) = match unsigned.strip_prefix('*') {
            Some(rest) => {
                let (at, rest) = place(rest)?;
                (Width::Argument(at), rest)
            }
            None => {
                let (n, rest) = number(unsigned);
                (Width::Of(n.unwrap_or(Ok(0)).map_err(|()| "number is out of range")?), rest)
            }
        };
        let mut letters = rest.chars();
        let verb = letters.next().ok_or("unterminated format() type specifier")?;
        Ok((Self { at, is_left, width, verb }, letters.as_str()))
    }
}

/// `1$` at the start of a text.
fn place(text: &str) -> Result<(Option<usize>, &str), String> {
    match number(text) {
        (Some(n), rest) if rest.starts_with('$') => match n {
            Ok(n @ 1..) => Ok((Some(n as usize), &rest[1..])),
            Ok(_) => Err("format specifies argument 0, but arguments are numbered from 1".into()),
            Err(()) => Err("number is out of range".into()),
        },
        _ => Ok((None, text)),
    }
}

/// The digits at the start of a text as a number, if there are some and it is in range.
fn number(text: &str) -> (Option<Result<i32, ()>>, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    ((!digits.is_empty()).then(|| digits.parse().map_err(|_| ())), rest)
}

/// `pg_typeof(x)`: the name of the argument's type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TypeOf {
    signature: Signature,
    aliases: Vec<String>,
}

impl TypeOf {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { signature, aliases: vec!["typeof".into()] }))
    }
}

impl ScalarUDFImpl for TypeOf {
    fn name(&self) -> &str {
        "pg_typeof"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    /// (Columns have marks in plans only.)
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        let field = args.first().map(|arg| arg.to_field(info.schema().as_ref())).transpose()?;
        let name = field.as_ref().and_then(|(_, field)| {
            let brackets = if matches!(field.data_type(), DataType::List(_)) { "[]" } else { "" };
            EnumMark::of_elements(field).map(|mark| format!("{}{brackets}", mark.name))
        });
        if let Some(name) = name {
            return Ok(ExprSimplifyResult::Simplified(lit(ScalarValue::Utf8View(Some(name)))));
        }
        if let Some((_, list)) = &field
            && let Some(limit) = elements_limit_of(list)
        {
            let name = type_name_of(list.data_type()).replacen("text", limit.type_name(), 1);
            return Ok(ExprSimplifyResult::Simplified(lit(ScalarValue::Utf8View(Some(name)))));
        }
        Ok(match field.and_then(|(_, field)| shown_form_of(&field)) {
            Some(form) => ExprSimplifyResult::Simplified(lit(ScalarValue::Utf8View(Some(form.type_name().into())))),
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let field = &args.arg_fields[0];
        let marked = shown_form_of(field).map(|form| form.type_name().to_string());
        let name = match marked.unwrap_or_else(|| type_name_of(field.data_type())) {
            name if name == "timestamp" => "timestamp without time zone".to_string(),
            name if name == "timestamptz" => "timestamp with time zone".to_string(),
            name if name == "time" => "time without time zone".to_string(),
            name => name,
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(Some(name))))
    }
}

/// The name of a type, of which an array has one whatever its dimensions.
fn type_name_of(is: &DataType) -> String {
    match is {
        DataType::List(element) if matches!(element.data_type(), DataType::List(_)) => {
            type_name_of(element.data_type())
        }
        DataType::List(element) if !is_vector(element) => format!("{}[]", type_name_of(element.data_type())),
        DataType::Struct(_) => "record".to_string(),
        DataType::UInt64 | DataType::LargeBinary => "numeric".to_string(),
        is if is.is_decimal() => "numeric".to_string(),
        _ => sql_name(is),
    }
}

/// Bits that each step rotates by, by round and step modulo four (RFC 1321, 3.4).
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The message digest of RFC 1321. For checksums, as in PostgreSQL; it keeps no secrets.
pub(crate) fn md5(message: &[u8]) -> [u8; 16] {
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut chunks = message.chunks_exact(64);
    for chunk in &mut chunks {
        digest(&mut state, chunk);
    }
    let rest = chunks.remainder();
    let mut tail = [0u8; 128];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = 0x80;
    let end = if rest.len() < 56 { 64 } else { 128 };
    tail[end - 8..end].copy_from_slice(&(message.len() as u64 * 8).to_le_bytes());
    tail[..end].chunks_exact(64).for_each(|chunk| digest(&mut state, chunk));
    let mut out = [0; 16];
    for (four, word) in out.chunks_exact_mut(4).zip(state) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// Takes in 64 bytes.
fn digest(state: &mut [u32; 4], chunk: &[u8]) {
    let word = |at: usize| u32::from_le_bytes([chunk[at * 4], chunk[at * 4 + 1], chunk[at * 4 + 2], chunk[at * 4 + 3]]);
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64usize {
        let (mix, at) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        // 2^32 times the sine of the step's number, counted from one.
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mix).wrapping_add(sine).wrapping_add(word(at % 16));
        a = d;
        d = c;
        c = b;
        b = b.wrapping_add(sum.rotate_left(ROTATIONS[step / 16][step % 4]));
    }
    for (word, by) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_rfc() {
        let of = |text: &str| md5(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(of(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(of("abc"), "900150983cd24fb0d6963f7d28e17f72");
        let digits = "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(of(digits), "57edf4a22be3c955ac49da2e2107b67a");
        assert_eq!(of(&"a".repeat(56)), "3b0c8ac703f828b04c6c197006d17218");
    }

    #[test]
    fn patterns_are_filled_in() {
        let value = |at: usize| [Some(Some("a b")), Some(None)].get(at - 1).copied().flatten();
        assert_eq!(
            formatted("%s %I %% %1$L", value),
            Err("null values cannot be formatted as an SQL identifier".into())
        );
        assert_eq!(formatted("%s|%s|%1$I 100%%", value).as_deref(), Ok("a b||\"a b\" 100%"));
        assert!(formatted("%s %s %s", value).is_err());
        assert!(formatted("%x", value).is_err());
        assert_eq!(formatted("[%6s|%-6s|%1$-5I]", value).as_deref(), Ok("[   a b|      |\"a b\"]"));
        assert!(formatted("%0$s", value).is_err());
    }

    #[test]
    fn quotes_double() {
        assert_eq!(quote_literal("it's"), "'it''s'");
        assert_eq!(quote_literal("a\\b"), "E'a\\\\b'");
        assert_eq!(quote_ident("plain_1"), "plain_1");
        assert_eq!(quote_ident("Foo bar"), "\"Foo bar\"");
        assert_eq!(quote_ident("select"), "\"select\"");
    }
}
