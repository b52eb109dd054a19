//! The templates of `to_char(number, '9,990.00')`, and numbers written by them.
//!
//! A number comes as its digits, so that all types of numbers are written alike. Digits of the
//! template that the number does not fill are blanks, or zeros from the first `0` on; a sign stands
//! before the first digit, unless `S`, `MI`, `PL`, `SG` or `PR` say where. A number with too many
//! digits is written as `#`. Law: the answer is PostgreSQL 15's in the C locale.

mod reading;

use super::to_char::ordinal_ending;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// `9`, `0`.
    Digit {
        is_zero: bool,
    },
    /// `.`, `D`.
    Point,
    /// `,`, `G`.
    Group,
    /// `L`.
    Currency,
    /// `RN`, `rn`.
    Roman {
        is_upper: bool,
    },
    /// `TH`, `th`.
    Ordinal {
        is_upper: bool,
    },
    /// `MI`.
    Minus,
    /// `PL`.
    Plus,
    /// `SG`.
    Sign,
    /// `FM`, `S`, `PR`, `V`, `EEEE`, `B`: what they say is known from the whole template.
    Silent,
    Character(char),
}

/// Where `S` writes the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locale {
    None,
    Before,
    After,
}

/// A template, read.
#[derive(Clone, Debug)]
pub(crate) struct NumberTemplate {
    marks: Vec<Mark>,
    /// Digits before and behind the point, and those behind `V`.
    before: usize,
    behind: usize,
    shifted: usize,
    /// Place of the first `0`, from 1, and of the last; 0 where there is none.
    zero_start: usize,
    zero_end: usize,
    is_bare: bool,
    has_point: bool,
    has_shift: bool,
    has_minus: bool,
    has_plus: bool,
    has_brackets: bool,
    is_scientific: bool,
    is_roman: bool,
    locale: Locale,
    /// Digits before `S`.
    before_sign: usize,
}

const NAMES: [&str; 20] =
    [",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V"];

impl NumberTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Marks that exclude each other; marks that are not supported.
    pub(crate) fn parse(template: &str) -> Result<NumberTemplate, String> {
        let mut read = NumberTemplate {
            marks: Vec::with_capacity(template.len()),
            before: 0,
            behind: 0,
            shifted: 0,
            zero_start: 0,
            zero_end: 0,
            is_bare: false,
            has_point: false,
            has_shift: false,
            has_minus: false,
            has_plus: false,
            has_brackets: false,
            is_scientific: false,
            is_roman: false,
            locale: Locale::None,
            before_sign: 0,
        };
        let mut rest = template;
        while let Some(first) = rest.chars().next() {
            let name = NAMES.into_iter().find(|name| {
                rest.get(..name.len()).is_some_and(|start| start == *name || start == name.to_lowercase())
            });
            if let Some(name) = name {
                let is_upper = first.is_ascii_uppercase();
                let mark = read.take(name, is_upper)?;
                read.marks.push(mark);
                rest = &rest[name.len()..];
            } else if let Some(quoted) = rest.strip_prefix('"') {
                rest = read.take_quoted(quoted);
            } else {
                rest = rest.strip_prefix('\\').filter(|after| after.starts_with('"')).unwrap_or(rest);
                let first = rest.chars().next().unwrap_or(first);
                read.marks.push(Mark::Character(first));
                rest = &rest[first.len_utf8()..];
            }
        }
        Ok(read)
    }

    fn take_quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return &text[at + 1..],
                '\\' => self.marks.push(Mark::Character(chars.next().map_or('\\', |(_, escaped)| escaped))),
                other => self.marks.push(Mark::Character(other)),
            }
        }
        ""
    }

    fn take(&mut self, name: &str, is_upper: bool) -> Result<Mark, String> {
        let wrong = |problem: &str| Err(format!("template of a number: {problem}"));
        if self.is_scientific && name != "EEEE" {
            return wrong("\"EEEE\" must be the last pattern used");
        }
        if self.has_brackets && matches!(name, "9" | "0") {
            return wrong("digits must stand before \"PR\"");
        }
        let has_own_sign = self.has_plus || self.has_minus || self.has_brackets;
        if self.locale != Locale::None && matches!(name, "S" | "MI" | "PL" | "SG" | "PR") {
            return wrong("\"S\" stands once, and not beside \"PL\", \"MI\", \"SG\" or \"PR\"");
        }
        Ok(match name {
            "9" if self.has_shift => {
                self.shifted += 1;
                Mark::Digit { is_zero: false }
            }
            "9" => {
                *if self.has_point { &mut self.behind } else { &mut self.before } += 1;
                Mark::Digit { is_zero: false }
            }
            "0" => {
                if self.zero_start == 0 && !self.has_point {
                    self.zero_start = self.before + 1;
                }
                *if self.has_point { &mut self.behind } else { &mut self.before } += 1;
                self.zero_end = self.before + self.behind;
                Mark::Digit { is_zero: true }
            }
            "." | "D" if self.has_point => return wrong("multiple decimal points"),
            "." | "D" if self.has_shift => return wrong("\"V\" and a decimal point exclude each other"),
            "." | "D" => {
                self.has_point = true;
                Mark::Point
            }
            "," | "G" => Mark::Group,
            "L" => Mark::Currency,
            "FM" => {
                self.is_bare = true;
                Mark::Silent
            }
            "S" if has_own_sign => return wrong("\"S\" stands not beside \"PL\", \"MI\", \"SG\" or \"PR\""),
            "S" => {
                self.locale = if self.has_point { Locale::After } else { Locale::Before };
                self.before_sign = self.before;
                Mark::Silent
            }
            "MI" => {
                self.has_minus = true;
                Mark::Minus
            }
            "PL" => {
                self.has_plus = true;
                Mark::Plus
            }
            "SG" => {
                (self.has_minus, self.has_plus) = (true, true);
                Mark::Sign
            }
            "PR" if self.has_plus || self.has_minus => {
                return wrong("\"PR\" stands not beside \"S\", \"PL\", \"MI\" or \"SG\"");
            }
            "PR" => {
                self.has_brackets = true;
                Mark::Silent
            }
            "RN" => {
                self.is_roman = true;
                Mark::Roman { is_upper }
            }
            "TH" => Mark::Ordinal { is_upper },
            "V" if self.has_point => return wrong("\"V\" and a decimal point exclude each other"),
            "V" => {
                self.has_shift = true;
                Mark::Silent
            }
            "EEEE" => {
                let others = self.is_bare || self.locale != Locale::None || has_own_sign;
                if self.is_scientific || others || self.is_roman || self.has_shift {
                    return wrong(
                        "\"EEEE\" stands once, and is incompatible with other formats but digits and the point",
                    );
                }
                self.is_scientific = true;
                Mark::Silent
            }
            "B" => Mark::Silent,
            other => return Err(format!("pattern \"{other}\" of a number's template is not supported")),
        })
    }

    /// Writes a float, of which so many digits are certain; further ones are cut off, as PostgreSQL
    /// does.
    pub(crate) fn write_float(&self, value: f64, digits_max: usize, out: &mut String) {
        if !value.is_finite() {
            return self.write_word(value < 0.0, if value.is_nan() { "NaN" } else { "Infinity" }, out);
        }
        let (is_negative, behind) = (value.is_sign_negative() && value != 0.0, self.behind);
        let value = value.abs();
        if self.is_scientific {
            let text = format!("{value:.behind$e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            out.push_str(&format!("{}{mantissa}e{sign}{exponent:0>2}", if is_negative { '-' } else { ' ' }));
            return;
        }
        if self.is_roman {
            self.write_rounded(is_negative, format!("{:.0}", value.round_ties_even()), out);
            return;
        }
        let value = value * 10f64.powi(i32::try_from(self.shifted).unwrap_or(i32::MAX));
        let n_whole = format!("{value:.0}").len();
        let behind = behind.min(digits_max.saturating_sub(n_whole));
        let digits = format!("{value:.behind$}");
        let is_negative = is_negative && digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        NumberTemplate { behind, ..self.clone() }.write_rounded(is_negative, digits, out);
    }

    /// Writes `NaN` or `Infinity` in the places of digits, if there are enough.
    fn write_word(&self, is_negative: bool, word: &str, out: &mut String) {
        match self.is_scientific {
            true => out.push_str(&format!(" {}.{}", "#".repeat(self.before), "#".repeat(self.behind + 4))),
            false => self.write_rounded(is_negative, word.to_owned(), out),
        }
    }

    /// Writes a number of the digits `12.340`, which are exact.
    pub(crate) fn write(&self, digits: &str, out: &mut String) {
        let (is_negative, digits) = match digits.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, digits),
        };
        if !digits.starts_with(|first: char| first.is_ascii_digit()) {
            return self.write_word(is_negative, digits, out);
        }
        if self.is_scientific {
            return write_scientific(is_negative, digits, self.behind, out);
        }
        let rounded = if self.is_roman { rounded(digits, 0, 0) } else { rounded(digits, self.behind, self.shifted) };
        // Nothing is left of a small negative number, nor of its sign.
        let is_negative = is_negative && rounded.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0');
        self.write_rounded(is_negative, rounded, out);
    }

    /// Writes digits that have as many places as the template.
    fn write_rounded(&self, is_negative: bool, digits: String, out: &mut String) {
        let before = self.before + self.shifted;
        let whole = digits.find('.').unwrap_or(digits.len());
        let (digits, blanks) = if self.is_roman {
            (digits, 0)
        } else if whole > before {
            (format!("{}.{}", "#".repeat(before), "#".repeat(self.behind)), 0)
        } else {
            (digits, before - whole)
        };
        let is_pending = if self.has_plus || self.has_minus {
            self.has_plus && !self.has_minus
        } else {
            is_negative || !self.is_bare || self.locale != Locale::None
        };
        let locale = match self.locale {
            Locale::Before if before == self.before_sign => Locale::After,
            locale => locale,
        };
        let mut writer = Writer {
            template: self,
            is_negative,
            blanks,
            last: self.last_relevant(&digits, blanks),
            digits: digits.into_bytes(),
            at: 0,
            place: 0,
            is_pending,
            has_brackets: self.has_brackets && (is_negative || !self.is_bare),
            locale,
            has_digit: false,
            is_over: false,
            n_places: 0,
        };
        let n_digits = (before + self.behind).saturating_sub(1) + usize::from(writer.is_pending && blanks == 0);
        writer.n_places = n_digits + usize::from(blanks > 0) + usize::from(self.has_point);
        for mark in &self.marks {
            writer.write(*mark, out);
            if writer.is_over {
                return;
            }
        }
    }

    /// The last character of the digits that `FM` leaves: no zeros at the end, but where the
    /// template has a `0`.
    fn last_relevant(&self, digits: &str, blanks: usize) -> Option<usize> {
        if !self.is_bare || !self.has_point {
            return None;
        }
        let point = digits.find('.')?;
        let last = digits.rfind(|c| c != '0' || c == '.').unwrap_or(point).max(point);
        let wanted = self.zero_end.saturating_sub(blanks).min(digits.len().saturating_sub(1));
        Some(if self.zero_end > blanks { last.max(wanted) } else { last })
    }
}

/// A number that is being written.
struct Writer<'t> {
    template: &'t NumberTemplate,
    is_negative: bool,
    digits: Vec<u8>,
    /// Places of the template that the digits do not fill.
    blanks: usize,
    last: Option<usize>,
    /// The next of the digits.
    at: usize,
    /// The next place of the template.
    place: usize,
    /// A sign is still to be written.
    is_pending: bool,
    has_brackets: bool,
    locale: Locale,
    /// A digit was written just before.
    has_digit: bool,
    is_over: bool,
    n_places: usize,
}

impl Writer<'_> {
    fn write(&mut self, mark: Mark, out: &mut String) {
        let is_bare = self.template.is_bare;
        match mark {
            Mark::Digit { is_zero } => self.write_place(is_zero, out),
            Mark::Point => self.write_place(false, out),
            Mark::Group if self.has_digit => out.push(','),
            Mark::Group if is_bare => {}
            Mark::Group | Mark::Currency => out.push(' '),
            Mark::Roman { is_upper } => self.write_roman(is_upper, out),
            Mark::Ordinal { is_upper } => {
                let is_plain = !self.template.is_roman && !self.is_negative && !self.template.has_point;
                if is_plain && self.digits.first() != Some(&b'#') {
                    let ending = ordinal_ending(&String::from_utf8_lossy(&self.digits));
                    out.push_str(&if is_upper { ending.to_ascii_uppercase() } else { ending.to_string() });
                }
            }
            Mark::Minus if self.is_negative => out.push('-'),
            Mark::Plus if !self.is_negative => out.push('+'),
            Mark::Minus | Mark::Plus if is_bare => {}
            Mark::Minus | Mark::Plus => out.push(' '),
            Mark::Sign => out.push(if self.is_negative { '-' } else { '+' }),
            Mark::Silent => {}
            Mark::Character(c) => out.push(c),
        }
    }

    fn is_zero_from(&self, place: usize) -> bool {
        self.template.zero_start != 0 && self.template.zero_start <= place + 1
    }

    /// Whether the next digit is the zero of `0.1`, which a `9` does not write.
    fn is_leading_zero(&self) -> bool {
        let template = self.template;
        template.zero_start == 0 && self.at == 0 && self.digits.first() == Some(&b'0') && template.behind != 0
    }

    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits.get(last) == Some(&b'.'))
    }

    fn write_place(&mut self, is_zero: bool, out: &mut String) {
        let template = self.template;
        if template.is_roman {
            return;
        }
        self.has_digit = false;
        let begins = self.place >= self.blanks || (template.zero_start != 0 && template.zero_start == self.place + 1);
        if self.is_pending && begins && (!self.is_leading_zero() || self.ends_at_point()) {
            self.write_sign(out);
        }
        if self.place < self.blanks && !self.is_zero_from(self.place) {
            if !template.is_bare {
                out.push(' ');
            }
        } else if self.place < self.blanks {
            out.push('0');
            self.has_digit = true;
        } else {
            self.write_digit(is_zero, out);
        }
        if self.is_over {
            return;
        }
        let end = match self.last {
            Some(last) if last == self.at => self.place,
            _ => self.n_places,
        };
        if self.place + 1 == end {
            self.close(out);
        }
        self.place += 1;
    }

    fn write_sign(&mut self, out: &mut String) {
        let is_bare = self.template.is_bare;
        match (self.locale, self.is_negative) {
            (Locale::After, _) => return,
            (Locale::Before, is_negative) => out.push(if is_negative { '-' } else { '+' }),
            (Locale::None, true) if self.has_brackets => out.push('<'),
            (Locale::None, false) if self.has_brackets => out.push(' '),
            (Locale::None, true) => out.push('-'),
            (Locale::None, false) if is_bare => {}
            (Locale::None, false) => out.push(' '),
        }
        self.is_pending = false;
    }

    fn write_digit(&mut self, is_zero: bool, out: &mut String) {
        let Some(digit) = self.digits.get(self.at).copied() else {
            // A point without decimals: PostgreSQL's text ends there.
            self.is_over = true;
            return;
        };
        if digit == b'.' {
            out.push('.');
        } else if self.last.is_some_and(|last| self.at > last) && !is_zero {
            // `FM` leaves zeros at the end out.
        } else if self.is_leading_zero() {
            if !self.template.is_bare {
                out.push(' ');
            } else if self.ends_at_point() {
                out.push('0');
            }
        } else {
            out.push(char::from(digit));
            self.has_digit = true;
        }
        self.at += 1;
    }

    /// Writes what stands behind the last digit.
    fn close(&mut self, out: &mut String) {
        if !self.is_pending && self.has_brackets {
            out.push(if self.is_negative { '>' } else { ' ' });
        } else if self.locale == Locale::After {
            out.push(if self.is_negative { '-' } else { '+' });
        }
    }

    /// In fifteen places, of which the longest number takes all.
    fn write_roman(&self, is_upper: bool, out: &mut String) {
        let value = String::from_utf8_lossy(&self.digits).parse::<usize>().ok();
        let value = value.filter(|value| (1..4000).contains(value) && !self.is_negative);
        let text = value.map_or_else(|| "#".repeat(ROMAN_PLACES), roman);
        let text = if is_upper { text } else { text.to_ascii_lowercase() };
        match self.template.is_bare {
            true => out.push_str(&text),
            false => out.push_str(&format!("{text:>ROMAN_PLACES$}")),
        }
    }
}

const ROMAN_PLACES: usize = 15;

fn roman(mut value: usize) -> String {
    const SIGNS: [(usize, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut out = String::new();
    for (worth, sign) in SIGNS {
        while value >= worth {
            out.push_str(sign);
            value -= worth;
        }
    }
    out
}

/// Digits with so many decimals, halves away from zero, after the point was moved to the right.
fn rounded(digits: &str, decimals: usize, shift: usize) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let point = whole.len() + shift;
    let n_kept = point + decimals;
    let goes_up = all.get(n_kept).is_some_and(|digit| *digit >= b'5');
    all.resize(n_kept, b'0');
    let carried = if goes_up { carry(&mut all) } else { false };
    let mut text: String = all.iter().map(|digit| char::from(*digit)).collect();
    let mut point = point;
    if carried {
        text.insert(0, '1');
        point += 1;
    }
    let zeros = text[..point].len() - text[..point].trim_start_matches('0').len();
    let zeros = zeros.min(point.saturating_sub(1));
    if decimals > 0 {
        text.insert(point, '.');
    }
    text.split_off(zeros)
}

/// Adds one to the last digit; whether there is one more digit in front.
fn carry(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    true
}

/// ` 1.23e+04`.
fn write_scientific(is_negative: bool, digits: &str, decimals: usize, out: &mut String) {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let first = all.find(|c| c != '0');
    let exponent = first.map_or(0, |first| whole.len() as i64 - 1 - first as i64);
    let mut kept: Vec<u8> = all.bytes().skip(first.unwrap_or(0)).collect();
    let goes_up = kept.get(decimals + 1).is_some_and(|digit| *digit >= b'5');
    kept.resize(decimals + 1, b'0');
    // (PostgreSQL writes a mantissa that is rounded up to ten as 10.)
    let is_ten = goes_up && carry(&mut kept);
    let mantissa: String = kept.iter().map(|digit| char::from(*digit)).collect();
    let sign = if is_negative { '-' } else { ' ' };
    let point = if decimals > 0 { "." } else { "" };
    let (exponent_sign, exponent) = if exponent < 0 { ('-', -exponent) } else { ('+', exponent) };
    let ten = if is_ten { "1" } else { "" };
    out.push_str(&format!("{sign}{ten}{}{point}{}e{exponent_sign}{exponent:02}", &mantissa[..1], &mantissa[1..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_postgresql_does() {
        for (number, template, expected) in [
            ("1234.5", "9,999.99", " 1,234.50"),
            ("-0.1", "9.9", " -.1"),
            ("-0.1", "FM9.9", "-.1"),
            ("0.1", "0.9", " 0.1"),
            ("12", "9990999.9", "    0012.0"),
            ("12", "FM9990999.9", "0012."),
            ("485", "9 9 9", " 4 8 5"),
            ("1485", "999", " ###"),
            ("-485", "999PR", "<485>"),
            ("-485", "999S", "485-"),
            ("485", "L999", "  485"),
            ("485", "RN", "        CDLXXXV"),
            ("5.2", "FMRN", "V"),
            ("482", "999th", " 482nd"),
            ("12.4", "99V999", " 12400"),
            ("0.0004859", "9.99EEEE", " 4.86e-04"),
        ] {
            let mut out = String::new();
            NumberTemplate::parse(template).expect("it is a template").write(number, &mut out);
            assert_eq!(out, expected, "{number} {template}");
        }
    }
}
