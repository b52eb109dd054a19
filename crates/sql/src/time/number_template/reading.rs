//! `to_number(text, template)`: the digits of a text that is written like a template.
//!
//! Law: the answer is PostgreSQL 15's in the C locale. Each mark of the template looks at the next
//! character of the text: digits are kept, a sign may stand before the first or behind the last,
//! and a character of the template that is no mark skips one of the text.

use super::{Locale, Mark, NumberTemplate};

/// A text that is being read.
struct NumberReader<'t> {
    template: &'t NumberTemplate,
    letters: Vec<char>,
    at: usize,
    /// What was read of the number: its sign, and its digits with the point.
    sign: char,
    digits: String,
    n_before: usize,
    n_behind: usize,
    has_point: bool,
    locale: Locale,
}

impl NumberTemplate {
    /// The number that a text shows, as digits.
    ///
    /// # Errors
    /// `RN`, which is not read.
    pub(crate) fn read(&self, text: &str) -> Result<String, String> {
        if self.is_roman {
            return Err("\"RN\" not supported for input".into());
        }
        if self.is_scientific {
            return Err("\"EEEE\" not supported for input".into());
        }
        let locale = match self.locale {
            Locale::Before if self.before == self.before_sign => Locale::After,
            locale => locale,
        };
        let mut reader = NumberReader {
            template: self,
            letters: text.chars().collect(),
            at: 0,
            sign: ' ',
            digits: String::new(),
            n_before: 0,
            n_behind: 0,
            has_point: false,
            locale,
        };
        for mark in &self.marks {
            if reader.at >= reader.letters.len() {
                break;
            }
            reader.take(*mark);
        }
        Ok(reader.number())
    }
}

impl NumberReader<'_> {
    fn next(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn take(&mut self, mark: Mark) {
        match mark {
            Mark::Digit { .. } => self.digit(true),
            Mark::Point => self.digit(false),
            Mark::Group if self.template.is_bare || self.next() != Some(',') => return,
            Mark::Group => {}
            Mark::Currency => return self.skip(1),
            Mark::Ordinal { .. } => return self.skip(2),
            Mark::Minus if self.next() == Some('-') => self.sign = '-',
            Mark::Plus if self.next() == Some('+') => self.sign = '+',
            Mark::Sign if matches!(self.next(), Some('-' | '+')) => self.sign = self.next().unwrap_or(' '),
            Mark::Minus | Mark::Plus | Mark::Sign => return self.skip(1),
            Mark::Silent | Mark::Roman { .. } => return,
            Mark::Character(_) => {}
        }
        self.at += 1;
    }

    /// Passes characters that are no part of a number.
    fn skip(&mut self, n: usize) {
        for _ in 0..n {
            match self.next() {
                Some(next) if !"0123456789.,+-".contains(next) => self.at += 1,
                _ => return,
            }
        }
    }

    fn digit(&mut self, is_digit: bool) {
        if self.next() == Some(' ') {
            self.at += 1;
        }
        let n_digits = self.n_before + self.n_behind;
        if self.sign == ' ' && is_digit && n_digits == 0 {
            match self.next() {
                Some(sign @ ('-' | '+')) => self.signed(sign),
                Some('<') if self.template.has_brackets && self.locale != Locale::Before => self.signed('-'),
                _ => {}
            }
        }
        let mut is_read = false;
        match self.next() {
            None => return,
            Some(digit) if digit.is_ascii_digit() => {
                if self.has_point && self.n_behind == self.template.behind {
                    return;
                }
                self.digits.push(digit);
                *if self.has_point { &mut self.n_behind } else { &mut self.n_before } += 1;
                is_read = true;
            }
            Some('.') if self.template.has_point && !self.has_point => {
                self.digits.push('.');
                (self.has_point, is_read) = (true, true);
            }
            Some(_) => {}
        }
        if self.sign != ' ' || self.n_before + self.n_behind == 0 {
            return;
        }
        let has_locale = self.template.locale != Locale::None;
        let behind = self.letters.get(self.at + 1).copied();
        if has_locale {
            if let (true, Some(sign @ ('-' | '+'))) = (is_read, behind) {
                self.at += 1;
                self.sign = sign;
            }
        } else if !is_read
            && (self.template.has_plus || self.template.has_minus)
            && let Some(sign @ ('-' | '+')) = self.next()
        {
            self.sign = sign;
        }
    }

    fn signed(&mut self, sign: char) {
        self.sign = sign;
        self.at += 1;
    }

    /// The digits read, divided by the power of ten that `V` says.
    fn number(self) -> String {
        let mut digits = self.digits;
        if digits.ends_with('.') {
            digits.pop();
        }
        if self.template.shifted > 0 && !digits.is_empty() {
            let missing = (self.template.shifted + 1).saturating_sub(digits.len());
            digits.insert_str(0, &"0".repeat(missing));
            digits.insert(digits.len() - self.template.shifted, '.');
        }
        format!("{}{digits}", self.sign)
    }
}
