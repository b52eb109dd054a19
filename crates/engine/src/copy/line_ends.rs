//! Where lines end.
//!
//! Law: as in PostgreSQL, the first end says how all lines of the data end; another end is an
//! error, unless it is quoted or escaped. Cost: bytes that mean something are looked for many at a
//! time, and each byte once, however the data are cut.

use memchr::{memchr, memchr_iter, memchr3};

use super::options::{CopyFormat, CopyKind};

/// What lines end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndStyle {
    Newline,
    Return,
    ReturnAndNewline,
}

/// An end that is not that of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StrayEnd {
    pub message: &'static str,
    pub hint: &'static str,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundLine {
    /// Bytes of the line, and of the line with its end.
    pub length: usize,
    pub with_end: usize,
}

/// The ends of the lines of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct LineEnds {
    style: Option<EndStyle>,
    /// Bytes of the present line that were looked through, and the state behind them.
    looked: usize,
    is_quoted: bool,
}

impl LineEnds {
    /// The line that bytes begin with; `None` if its end is not among them. The next call has the
    /// bytes behind it, or the same bytes with more at the end.
    pub fn next(&mut self, bytes: &[u8], format: &CopyFormat) -> Result<Option<FoundLine>, StrayEnd> {
        let is_csv = format.kind == CopyKind::Csv;
        let has_escapes = !is_csv || format.escape != format.quote;
        let escape = if is_csv { format.escape } else { b'\\' };
        let mut at = self.looked;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let found = match is_csv {
                true if has_escapes => quoted_sign(rest, format),
                true => memchr3(b'\n', b'\r', format.quote, rest),
                false => memchr3(b'\n', b'\r', escape, rest),
            };
            let Some(found) = found else {
                self.looked = bytes.len();
                return Ok(None);
            };
            at += found;
            match bytes[at] {
                b'\n' | b'\r' if !self.is_quoted => {
                    self.looked = at;
                    let Some(with_end) = self.end_at(bytes, is_csv)? else { return Ok(None) };
                    self.looked = 0;
                    return Ok(Some(FoundLine { length: at, with_end }));
                }
                // What is escaped is not looked at; it may not be there yet.
                byte if has_escapes && byte == escape && (self.is_quoted || !is_csv) => {
                    if at + 1 == bytes.len() {
                        self.looked = at;
                        return Ok(None);
                    }
                    at += 1;
                }
                byte if is_csv && byte == format.quote => self.is_quoted = !self.is_quoted,
                _ => {}
            }
            at += 1;
        }
    }

    /// The last line, which has no end, or one that might have been the half of one.
    pub fn last(&mut self, bytes: &[u8], format: &CopyFormat) -> Result<FoundLine, StrayEnd> {
        if self.is_quoted || bytes.get(self.looked) != Some(&b'\r') {
            return Ok(FoundLine { length: bytes.len(), with_end: bytes.len() });
        }
        match self.style {
            Some(EndStyle::Newline | EndStyle::ReturnAndNewline) => Err(stray(b'\r', format.kind == CopyKind::Csv)),
            _ => Ok(FoundLine { length: self.looked, with_end: bytes.len() }),
        }
    }

    /// Whether the bytes so far end within quotes.
    pub fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    /// How many lines the bytes of a row take.
    pub fn n_lines(&self, row: &[u8]) -> u64 {
        let end = if self.style == Some(EndStyle::Return) { b'\r' } else { b'\n' };
        1 + memchr_iter(end, row).count() as u64
    }

    /// Where the end stops that begins behind what was looked through; `None` if the byte behind it
    /// decides, and is not there yet.
    fn end_at(&mut self, bytes: &[u8], is_csv: bool) -> Result<Option<usize>, StrayEnd> {
        let at = self.looked;
        let found = match (bytes[at], bytes.get(at + 1)) {
            (b'\n', _) => EndStyle::Newline,
            // (No byte behind it matters where lines end with one.)
            (_, _) if self.style == Some(EndStyle::Return) => EndStyle::Return,
            (_, None) => return Ok(None),
            (_, Some(b'\n')) => EndStyle::ReturnAndNewline,
            (_, Some(_)) => EndStyle::Return,
        };
        if *self.style.get_or_insert(found) != found {
            return Err(stray(bytes[at], is_csv));
        }
        Ok(Some(at + if found == EndStyle::ReturnAndNewline { 2 } else { 1 }))
    }
}

/// The first sign of csv that is escaped by another byte than the quote.
fn quoted_sign(bytes: &[u8], format: &CopyFormat) -> Option<usize> {
    let found = memchr3(b'\n', format.quote, format.escape, bytes);
    memchr(b'\r', &bytes[..found.unwrap_or(bytes.len())]).or(found)
}

/// What is said of an end that begins with this byte.
fn stray(byte: u8, is_csv: bool) -> StrayEnd {
    let (message, hint) = match (byte, is_csv) {
        (b'\n', true) => ("unquoted newline found in data", "Use quoted CSV field to represent newline."),
        (b'\n', false) => ("literal newline found in data", "Use \"\\n\" to represent newline."),
        (_, true) => ("unquoted carriage return found in data", "Use quoted CSV field to represent carriage return."),
        (_, false) => ("literal carriage return found in data", "Use \"\\r\" to represent carriage return."),
    };
    StrayEnd { message, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::options::named as format;

    /// The lines of bytes that come one by one.
    fn lines(bytes: &[u8], format: &CopyFormat) -> Result<Vec<String>, &'static str> {
        let (mut ends, mut lines, mut from) = (LineEnds::default(), vec![], 0);
        for to in 0..=bytes.len() {
            while let Some(line) = ends.next(&bytes[from..to], format).map_err(|stray| stray.message)? {
                lines.push(String::from_utf8_lossy(&bytes[from..from + line.length]).into_owned());
                from += line.with_end;
            }
        }
        if from < bytes.len() {
            let line = ends.last(&bytes[from..], format).map_err(|stray| stray.message)?;
            lines.push(String::from_utf8_lossy(&bytes[from..from + line.length]).into_owned());
        }
        Ok(lines)
    }

    #[test]
    fn a_line_ends_where_nothing_is_quoted_or_escaped() {
        let (text, csv) = (format("text", None), format("csv", Some("'")));
        assert_eq!(lines(b"ab\\\nc\nd", &text).unwrap(), ["ab\\\nc", "d"]);
        assert_eq!(lines(b"a,\"b\nc\",d\ne", &csv).unwrap(), ["a,\"b\nc\",d", "e"]);
        assert_eq!(lines(b"a,\"b'\"\nc\"'\ne", &csv).unwrap(), ["a,\"b'\"\nc\"'", "e"]);
        assert_eq!(lines(b"a\r\nb\r\n", &text).unwrap(), ["a", "b"]);
        assert_eq!(lines(b"a\rb\r", &text).unwrap(), ["a", "b"]);
        assert_eq!(lines(b"a\r", &format("csv", None)).unwrap(), ["a"]);
    }

    #[test]
    fn all_lines_end_as_the_first_does() {
        let (text, csv) = (format("text", None), format("csv", None));
        assert_eq!(lines(b"a\nb\r\n", &text), Err("literal carriage return found in data"));
        assert_eq!(lines(b"a\nb\r", &csv), Err("unquoted carriage return found in data"));
        assert_eq!(lines(b"a\r\nb\n", &csv), Err("unquoted newline found in data"));
        assert_eq!(lines(b"a\r\nb\rc\r\n", &text), Err("literal carriage return found in data"));
        assert_eq!(lines(b"a\rb\n", &text), Err("literal newline found in data"));
        assert_eq!(lines(b"a\r\n\"b\n\r\"\r\n", &csv).unwrap(), ["a", "\"b\n\r\""]);
    }
}
