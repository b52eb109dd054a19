//! Bytes into records and cells.
//!
//! Law: cells are byte ranges of the block; none crosses a record; `consumed` ends right after a
//! record. Cost: one look at each byte, no allocation beyond the cell list, which is reused.

/// The characters that shape a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub delimiter: u8,
    /// `None`: quotes are ordinary characters.
    pub quote: Option<u8>,
    /// A delimiter also follows the last cell.
    pub trailing: bool,
}

/// One value, as a range of the block without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SplitCell {
    pub start: u32,
    pub end: u32,
    pub form: SplitForm,
}

/// How a cell is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitForm {
    Plain,
    Quoted,
    /// Quoted, with doubled quotes inside.
    Escaped,
    /// Something stands between the closing quote and the delimiter.
    Broken,
}

/// The records found in a block.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub cells: Vec<SplitCell>,
    /// For each record: where its bytes start and its cells end.
    pub records: Vec<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub start: u32,
    pub cells_end: u32,
}

/// What stopped splitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// As many records as asked for, or no further complete one in these bytes.
    Enough,
    /// The bytes end inside a quoted cell of the record that starts at `consumed`.
    OpenQuote,
}

impl Records {
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.records.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The cells of a record.
    pub(crate) fn cells_of(&self, record: usize) -> &[SplitCell] {
        &self.cells[self.first_cell(record)..self.records[record].cells_end as usize]
    }

    pub(crate) fn first_cell(&self, record: usize) -> usize {
        if record == 0 { 0 } else { self.records[record - 1].cells_end as usize }
    }

    /// Appends up to `records_max` records; returns the bytes consumed. With `at_end` the end of
    /// the bytes ends a record too.
    pub(crate) fn split(&mut self, bytes: &[u8], at_end: bool, records_max: usize, dialect: Dialect) -> (usize, Stop) {
        let mut at = 0;
        while self.len() < records_max {
            at += blank_lines(&bytes[at..]);
            if at == bytes.len() {
                break;
            }
            let cells_before = self.cells.len();
            match self.split_record(bytes, at, at_end, dialect) {
                Ok(next) => {
                    if dialect.trailing {
                        self.drop_trailing(cells_before);
                    }
                    self.records.push(Record { start: at as u32, cells_end: self.cells.len() as u32 });
                    at = next;
                }
                Err(stop) => {
                    self.cells.truncate(cells_before);
                    return (at, stop);
                }
            }
        }
        (at, Stop::Enough)
    }

    /// One record from `at`; the offset after its line end.
    fn split_record(&mut self, bytes: &[u8], mut at: usize, at_end: bool, dialect: Dialect) -> Result<usize, Stop> {
        let delimiter = dialect.delimiter;
        loop {
            let cell = if dialect.quote.is_some() && bytes.get(at).copied() == dialect.quote {
                let (cell, next) = quoted_cell(bytes, at, at_end, dialect)?;
                at = next;
                cell
            } else {
                let length = bytes[at..].iter().position(|&byte| byte == delimiter || byte == b'\n');
                let end = match length {
                    Some(length) => at + length,
                    None if at_end => bytes.len(),
                    None => return Err(Stop::Enough),
                };
                let cell = SplitCell { start: at as u32, end: end as u32, form: SplitForm::Plain };
                at = end;
                cell
            };
            self.cells.push(cell);
            match bytes.get(at) {
                Some(&byte) if byte == delimiter => at += 1,
                end => {
                    let last = self.cells.last_mut().expect("a cell was just pushed");
                    if last.form == SplitForm::Plain && last.end > last.start && bytes[last.end as usize - 1] == b'\r' {
                        last.end -= 1;
                    }
                    return Ok(if end.is_some() { at + 1 } else { at });
                }
            }
        }
    }

    /// Takes away the empty cell that a delimiter at the line's end makes.
    fn drop_trailing(&mut self, cells_before: usize) {
        if let Some(last) = self.cells.last()
            && last.start == last.end
            && self.cells.len() > cells_before + 1
        {
            self.cells.pop();
        }
    }
}

/// A cell that starts with a quote at `open`, and the offset of the delimiter or line end behind
/// it.
fn quoted_cell(bytes: &[u8], open: usize, at_end: bool, dialect: Dialect) -> Result<(SplitCell, usize), Stop> {
    let quote = dialect.quote.unwrap_or_default();
    let start = open + 1;
    let mut at = start;
    let mut form = SplitForm::Quoted;
    let end = loop {
        match bytes[at..].iter().position(|&byte| byte == quote) {
            None => return Err(Stop::OpenQuote),
            Some(length) => at += length,
        }
        match bytes.get(at + 1) {
            Some(&next) if next == quote => {
                form = SplitForm::Escaped;
                at += 2;
            }
            None if !at_end => return Err(Stop::Enough),
            _ => break at,
        }
    };
    at = end + 1;
    if bytes[at..].starts_with(b"\r\n") || (at_end && bytes[at..] == *b"\r") {
        at += 1;
    }
    match bytes.get(at) {
        None if !at_end => return Err(Stop::Enough),
        None | Some(b'\n') => {}
        Some(&byte) if byte == dialect.delimiter => {}
        Some(b'\r') if bytes.len() == at + 1 && !at_end => return Err(Stop::Enough),
        Some(_) => {
            form = SplitForm::Broken;
            match bytes[at..].iter().position(|&byte| byte == dialect.delimiter || byte == b'\n') {
                Some(length) => at += length,
                None if at_end => at = bytes.len(),
                None => return Err(Stop::Enough),
            }
            return Ok((SplitCell { start: open as u32, end: at as u32, form }, at));
        }
    }
    Ok((SplitCell { start: start as u32, end: end as u32, form }, at))
}

/// Bytes of empty lines at the front.
fn blank_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &bytes[at..] {
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Dialect = Dialect { delimiter: b',', quote: Some(b'"'), trailing: false };
    const TBL: Dialect = Dialect { delimiter: b'|', quote: None, trailing: true };

    fn texts(bytes: &str, dialect: Dialect) -> (Vec<Vec<String>>, usize, Stop) {
        let mut records = Records::default();
        let (consumed, stop) = records.split(bytes.as_bytes(), true, usize::MAX, dialect);
        let rows = (0..records.len())
            .map(|r| records.cells_of(r).iter().map(|c| bytes[c.start as usize..c.end as usize].to_string()).collect())
            .collect();
        (rows, consumed, stop)
    }

    #[test]
    fn cells_end_at_delimiters_and_lines() {
        let (rows, consumed, _) = texts("a,b\r\n\n1,\"x,\"\"\ny\"\n,", CSV);
        assert_eq!(rows, vec![vec!["a", "b"], vec!["1", "x,\"\"\ny"], vec!["", ""]]);
        assert_eq!(consumed, 18);
    }

    #[test]
    fn a_tbl_line_ends_with_a_delimiter() {
        assert_eq!(texts("1|a|\n2||\n3|c\n", TBL).0, vec![vec!["1", "a"], vec!["2", ""], vec!["3", "c"]]);
    }

    #[test]
    fn an_open_quote_stops_at_its_record() {
        let (rows, consumed, stop) = texts("1\n\"2\n3\n", CSV);
        assert_eq!((rows.len(), consumed, stop), (1, 2, Stop::OpenQuote));
    }

    #[test]
    fn text_after_a_closing_quote_breaks_the_cell() {
        let mut records = Records::default();
        records.split(b"\"a\"b,1\n", true, 9, CSV);
        assert_eq!(records.cells[0].form, SplitForm::Broken);
        assert_eq!(records.cells.len(), 2);
    }

    #[test]
    fn any_cut_gives_the_same_records() {
        let text = "a,\"b\"\"c\"\r\n\"d\ne\",f\n\"g\",\"h\"\r\n";
        let whole = texts(text, CSV).0;
        for cut in 0..text.len() {
            let mut records = Records::default();
            let (consumed, _) = records.split(&text.as_bytes()[..cut], false, usize::MAX, CSV);
            let (rest, _, _) = texts(&text[consumed..], CSV);
            let front: Vec<Vec<String>> = (0..records.len())
                .map(|r| {
                    records.cells_of(r).iter().map(|c| text[c.start as usize..c.end as usize].to_string()).collect()
                })
                .collect();
            assert_eq!([front, rest].concat(), whole, "cut at {cut}");
        }
    }
}
