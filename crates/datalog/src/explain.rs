//! Errors with their place in the text of a program.

use anabranch_engine::Error;

/// The whole error, for people: the file, line and column, the line with a caret, detail and hint.
///
/// ```
/// use anabranch_datalog::{Program, render};
///
/// let text = ".decl a(x: number)\na(\"b\").";
/// let error = Program::parse(text)?.check().unwrap_err();
/// assert_eq!(
///     render("a.dl", text, &error),
///     "a.dl:2:3: error: the value is of type symbol, but its place wants type number\n  \
///      a(\"b\").\n    ^\nhint: to_number(..) makes a number of a symbol."
/// );
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
pub fn render(file: &str, text: &str, error: &Error) -> String {
    let mut out = String::new();
    let position = error.position.filter(|at| *at <= text.len() && text.is_char_boundary(*at));
    match position {
        None => out.push_str(&format!("{file}: error: {}", error.message)),
        Some(at) => {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let line = text[start..].lines().next().unwrap_or_default();
            let number = text[..start].matches('\n').count() + 1;
            let column = text[start..at].chars().count();
            out.push_str(&format!("{file}:{number}:{}: error: {}", column + 1, error.message));
            // Tabs stay tabs, so that the caret stands below its place.
            let blank: String = text[start..at].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            out.push_str(&format!("\n  {line}\n  {blank}^"));
        }
    }
    if let Some(detail) = &error.detail {
        out.push_str(&format!("\ndetail: {detail}"));
    }
    if let Some(hint) = &error.hint {
        out.push_str(&format!("\nhint: {hint}"));
    }
    out
}
